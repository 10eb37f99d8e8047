//===- OnnxEinsum.cpp - sums of products by labels ------------------------===//
//
// Operands are joined from left to right. Labels that two share and nobody
// needs any more are contracted, those that are needed are paired; repeated
// labels of one operand are its diagonal.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

namespace {

/// A value and the label of each of its dims.
struct Term {
  Value value;
  std::string labels;
};

/// Ellipses become labels of their own, counted from the last dim: bytes that
/// no equation holds.
constexpr char kFirstEllipsis = 1;

class Einsum {
public:
  explicit Einsum(OnnxNode &node) : node(node), math(node) {}

  LogicalResult run(Results &results) {
    if (failed(parse()))
      return failure();
    for (Term &term : terms)
      if (failed(takeDiagonals(term)))
        return failure();
    Term joined = terms.front();
    for (size_t i = 1; i < terms.size(); ++i) {
      std::string needed = output;
      for (const Term &later : ArrayRef(terms).drop_front(i + 1))
        needed += later.labels;
      auto next = join(joined, terms[i], needed);
      if (failed(next))
        return failure();
      joined = *next;
    }
    sumOut(joined, output);
    SmallVector<int64_t> order;
    for (char label : output)
      order.push_back(joined.labels.find(label));
    if (llvm::is_contained(order, int64_t(std::string::npos)) ||
        order.size() != joined.labels.size())
      return node.error() << "equation '" << node.stringField("equation", "")
                          << "' has an output label that no operand has, or "
                             "twice";
    results.push_back(node.transpose(joined.value, order));
    return success();
  }

private:
  LogicalResult parse() {
    std::string text;
    for (char c : node.stringField("equation", ""))
      if (c != ' ')
        text += c;
    auto [left, right] = StringRef(text).split("->");
    SmallVector<StringRef> parts;
    left.split(parts, ',');
    if (parts.size() != node.numOperands() ||
        failed(node.needOperands(parts.size())))
      return node.error() << "equation '" << text << "' is of " << parts.size()
                          << " operands, but there are " << node.numOperands();
    unsigned ellipsis = 0;
    std::string implicit, seen;
    for (auto [i, part] : llvm::enumerate(parts)) {
      size_t dots = part.find("...");
      int64_t named = part.size() - (dots == StringRef::npos ? 0 : 3);
      int64_t hidden = dots == StringRef::npos ? 0 : node.rank(i) - named;
      if (hidden < 0 || named + hidden != node.rank(i))
        return node.error() << "'" << part << "' does not label the dims of "
                            << node.type(i);
      std::string labels;
      for (size_t c = 0; c < part.size(); ++c) {
        if (c != dots) {
          labels += part[c];
          (StringRef(seen).contains(part[c]) ? repeated : seen) += part[c];
          continue;
        }
        for (int64_t d = hidden; d-- > 0;)
          labels += char(kFirstEllipsis + d);
        ellipsis = std::max<unsigned>(ellipsis, hidden);
        c += 2;
      }
      terms.push_back({node.operand(i), labels});
    }
    std::string dots;
    for (unsigned d = ellipsis; d-- > 0;)
      dots += char(kFirstEllipsis + d);
    if (!StringRef(text).contains("->")) {
      // Without an output: labels that occur once, in the alphabet's order.
      output = dots;
      llvm::sort(seen);
      for (char label : seen)
        if (!StringRef(repeated).contains(label))
          output += label;
      return success();
    }
    output = right.str();
    if (size_t at = output.find("..."); at != std::string::npos)
      output.replace(at, 3, dots);
    return success();
  }

  /// [.., n, n] becomes [.., n * n], of which every n + 1st is the diagonal.
  LogicalResult takeDiagonals(Term &term) {
    for (size_t first = 0; first < term.labels.size(); ++first) {
      size_t second = term.labels.find(term.labels[first], first + 1);
      if (second == std::string::npos)
        continue;
      auto type = tensorType(term.value);
      int64_t extent = type.getDimSize(first);
      if (extent != type.getDimSize(second))
        return node.error()
               << "label '" << term.labels[first] << "' is of extents "
               << extent << " and " << type.getDimSize(second);
      SmallVector<int64_t> order, shape;
      std::string labels;
      for (int64_t d = 0; d < type.getRank(); ++d)
        if (d != int64_t(first) && d != int64_t(second)) {
          order.push_back(d);
          shape.push_back(type.getDimSize(d));
          labels += term.labels[d];
        }
      order.append({int64_t(first), int64_t(second)});
      shape.push_back(extent * extent);
      Value flat = node.reshape(node.transpose(term.value, order), shape);
      term.value = math.slice(flat, shape.size() - 1, 0, extent, extent + 1);
      term.labels = labels + term.labels[first];
      first = -1; // dims have moved: look again
    }
    return success();
  }

  void sumOut(Term &term, StringRef needed) {
    SmallVector<int64_t> dims;
    std::string kept;
    for (auto [d, label] : llvm::enumerate(term.labels)) {
      if (needed.contains(label))
        kept += label;
      else
        dims.push_back(d);
    }
    term.value = math.sum(term.value, dims, /*keep=*/false);
    term.labels = kept;
  }

  FailureOr<Term> join(Term a, Term b, StringRef needed) {
    sumOut(a, needed.str() + b.labels);
    sumOut(b, needed.str() + a.labels);
    SmallVector<int64_t> aBatch, bBatch, aContract, bContract;
    std::string batch, aFree, bFree;
    for (auto [d, label] : llvm::enumerate(a.labels)) {
      size_t other = b.labels.find(label);
      if (other == std::string::npos) {
        aFree += label;
        continue;
      }
      int64_t mine = tensorType(a.value).getDimSize(d);
      if (mine != tensorType(b.value).getDimSize(other))
        return node.error() << "labels of " << a.value.getType() << " and "
                            << b.value.getType() << " differ in extent";
      bool keep = needed.contains(label);
      (keep ? aBatch : aContract).push_back(d);
      (keep ? bBatch : bContract).push_back(other);
      if (keep)
        batch += label;
    }
    for (char label : b.labels)
      if (a.labels.find(label) == std::string::npos)
        bFree += label;
    if (!aContract.empty() && isFloatTensor(a.value)) {
      Value product = node.create<het::MatmulOp>(
          a.value, b.value, ArrayRef<int64_t>(aBatch),
          ArrayRef<int64_t>(bBatch), ArrayRef<int64_t>(aContract),
          ArrayRef<int64_t>(bContract));
      return Term{product, batch + aFree + bFree};
    }
    // No sum, or none of floats: multiply over all labels of both.
    std::string all = a.labels + bFree;
    Term product{math.mul(align(a, all), align(b, all)), all};
    sumOut(product, needed);
    return product;
  }

  /// The value with a dim for each label, of extent 1 where it has none.
  Value align(const Term &term, StringRef labels) {
    SmallVector<int64_t> order, shape;
    for (char label : labels) {
      size_t at = term.labels.find(label);
      shape.push_back(
          at == std::string::npos ? 1 : tensorType(term.value).getDimSize(at));
      if (at != std::string::npos)
        order.push_back(at);
    }
    return node.reshape(node.transpose(term.value, order), shape);
  }

  OnnxNode &node;
  OnnxMath math;
  std::vector<Term> terms;
  std::string output, repeated;
};

LogicalResult convertEinsum(OnnxNode &node, Results &results) {
  return Einsum(node).run(results);
}

} // namespace

void autohet::addEinsumHandlers(OnnxHandlers &handlers) {
  handlers["Einsum"] = convertEinsum;
}

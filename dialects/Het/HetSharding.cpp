//===- HetSharding.cpp - how the het ops may be split -----------------------===//
//
// The factors of each op. In the comments, capitals are parallel factors, lower
// case ones are summed over, those in <> may not be split:
//
//   matmul            [B M k] [B N k] -> [B M N]
//   softmax           [R <h>] -> [R <h>]
//   layer_norm        [R <h>] [<h>] [<h>] -> [R <h>] [R] [R]
//   its adjoint       ... -> [R <h>] [<h>] [<h>]; R missing there: partial sums
//   attention         [B H <s> <d>] [B K <t> <d>] ...
//                       -> [B H <s> <e>] [B H <s>]
//   embedding         [v H] [I] -> [I H]; v by first_row
//   its adjoint       [i] [i H] -> [V H]; V by first_row
//   top_k             [R <n>] -> [R <k>] [R <k>]
//   cross_entropy     [R <v>] [R] -> [] [R]
//   its adjoint       [R V] [R] [R] [] -> [R V]; V by first_class
//
// A dim of extent 1 has no factor: it is whole everywhere. What follows from a
// rule, and what ops do beyond it, is in HetShards.cpp.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

llvm::raw_ostream &autohet::het::operator<<(llvm::raw_ostream &os,
                                            const ShardingRule &rule) {
  auto letter = [](unsigned factor) { return char('a' + factor); };
  for (auto [i, factor] : llvm::enumerate(rule.factors)) {
    os << (i ? " " : "");
    if (factor.kind == FactorKind::Reduction)
      os << "reduction ";
    if (factor.kind == FactorKind::Blocked)
      os << "blocked ";
    os << letter(i) << "=" << factor.size;
  }
  os << ":";
  auto print = [&](ArrayRef<TensorFactors> tensors) {
    for (const TensorFactors &tensor : tensors) {
      os << " [";
      llvm::interleave(
          tensor, os,
          [&](const DimFactors &dim) {
            os << (dim.size() > 1 ? "(" : dim.empty() ? "1" : "");
            llvm::interleave(
                dim, os, [&](unsigned f) { os << letter(f); }, " ");
            os << (dim.size() > 1 ? ")" : "");
          },
          " ");
      os << "]";
    }
  };
  print(rule.operands);
  os << " ->";
  print(rule.results);
  if (!rule.linear.empty()) {
    os << ", linear in ";
    llvm::interleave(rule.linear, os, " ");
  }
  return os;
}

namespace {

/// No factor: the dim has extent 1.
constexpr unsigned kNone = ~0u;

/// Collects an op's rule; every tensor starts as dims without factors.
class RuleBuilder {
public:
  explicit RuleBuilder(Operation *op) : op(op) {
    for (Value operand : op->getOperands())
      rule.operands.emplace_back(typeOf(operand).getRank());
    for (Value result : op->getResults())
      rule.results.emplace_back(typeOf(result).getRank());
  }

  unsigned add(int64_t size, FactorKind kind) {
    if (size == 1)
      return kNone;
    rule.factors.push_back({size, kind});
    return rule.factors.size() - 1;
  }
  unsigned parallel(int64_t size) { return add(size, FactorKind::Parallel); }
  unsigned reduction(int64_t size) { return add(size, FactorKind::Reduction); }
  unsigned blocked(int64_t size) { return add(size, FactorKind::Blocked); }

  /// Says that a dim consists of (one more, minor) factor.
  void operand(unsigned index, int64_t dim, unsigned factor) {
    if (factor != kNone)
      rule.operands[index][dim].push_back(factor);
  }
  void result(unsigned index, int64_t dim, unsigned factor) {
    if (factor != kNone)
      rule.results[index][dim].push_back(factor);
  }
  /// Gives all dims of a tensor, from its first, the factors in turn.
  void operand(unsigned index, ArrayRef<unsigned> factors) {
    for (auto [dim, factor] : llvm::enumerate(factors))
      operand(index, dim, factor);
  }
  void result(unsigned index, ArrayRef<unsigned> factors) {
    for (auto [dim, factor] : llvm::enumerate(factors))
      result(index, dim, factor);
  }
  /// An operand that broadcasts against a shape with these factors.
  void broadcastOperand(unsigned index, ArrayRef<unsigned> factors) {
    ArrayRef<int64_t> shape = shapeOf(index);
    for (auto [dim, extent] : llvm::enumerate(shape))
      if (extent != 1)
        operand(index, dim, factors[factors.size() - shape.size() + dim]);
  }
  SmallVector<unsigned> parallel(ArrayRef<int64_t> shape) {
    return llvm::map_to_vector(shape,
                               [&](int64_t size) { return parallel(size); });
  }

  /// Says that the op is linear in an operand; in all of them together.
  void linearIn(unsigned index) { rule.linear.push_back(index); }
  void linear() { llvm::append_range(rule.linear, llvm::seq(numOperands())); }

  ArrayRef<int64_t> shapeOf(unsigned operand) const {
    return typeOf(op->getOperand(operand)).getShape();
  }
  ArrayRef<int64_t> resultShapeOf(unsigned result) const {
    return typeOf(op->getResult(result)).getShape();
  }

  ShardingRule take() { return std::move(rule); }

private:
  unsigned numOperands() const { return op->getNumOperands(); }

  Operation *op;
  ShardingRule rule;
};

} // namespace

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

// Written in the program: every device has it whole.
ShardingRule ConstantOp::getShardingRule() { return RuleBuilder(*this).take(); }
ShardingRule IotaOp::getShardingRule() { return RuleBuilder(*this).take(); }
// Every device does all of it: they stand beside a model's large tensors.
ShardingRule ArgReduceOp::getShardingRule() {
  return RuleBuilder(*this).take();
}
ShardingRule CumulativeSumOp::getShardingRule() {
  return RuleBuilder(*this).take();
}
ShardingRule ScatterNdOp::getShardingRule() {
  return RuleBuilder(*this).take();
}

// Any box of a parameter can be loaded, any box of a gradient be delivered.
ShardingRule ParameterOp::getShardingRule() {
  RuleBuilder b(*this);
  b.result(0, b.parallel(b.resultShapeOf(0)));
  return b.take();
}
ShardingRule GradientOp::getShardingRule() {
  RuleBuilder b(*this);
  b.operand(0, b.parallel(b.shapeOf(0)));
  return b.take();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Every dim of the result is parallel; operands have those that they do not
/// broadcast along.
static ShardingRule elementwiseRule(Operation *op, bool isLinear = false) {
  RuleBuilder b(op);
  if (isLinear)
    b.linear();
  SmallVector<unsigned> factors = b.parallel(b.resultShapeOf(0));
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    b.broadcastOperand(i, factors);
  b.result(0, factors);
  return b.take();
}

#define ELEMENTWISE(OP)                                                        \
  ShardingRule OP::getShardingRule() { return elementwiseRule(*this); }
#define LINEAR_ELEMENTWISE(OP)                                                 \
  ShardingRule OP::getShardingRule() { return elementwiseRule(*this, true); }
LINEAR_ELEMENTWISE(NegOp)
ELEMENTWISE(AbsOp)
ELEMENTWISE(ExpOp)
ELEMENTWISE(LogOp)
ELEMENTWISE(SqrtOp)
ELEMENTWISE(RsqrtOp)
ELEMENTWISE(ReciprocalOp)
ELEMENTWISE(TanhOp)
ELEMENTWISE(ErfOp)
ELEMENTWISE(SigmoidOp)
ELEMENTWISE(SiluOp)
ELEMENTWISE(ReluOp)
ELEMENTWISE(SinOp)
ELEMENTWISE(CosOp)
LINEAR_ELEMENTWISE(AddOp)
LINEAR_ELEMENTWISE(SubOp)
ELEMENTWISE(MulOp)
ELEMENTWISE(DivOp)
ELEMENTWISE(ModOp)
ELEMENTWISE(PowOp)
ELEMENTWISE(MaxOp)
ELEMENTWISE(MinOp)
ELEMENTWISE(AndOp)
ELEMENTWISE(FloorOp)
ELEMENTWISE(CeilOp)
ELEMENTWISE(RoundOp)
ELEMENTWISE(RemOp)
ELEMENTWISE(ShiftLeftOp)
ELEMENTWISE(ShiftRightOp)
ELEMENTWISE(OrOp)
ELEMENTWISE(XorOp)
ELEMENTWISE(NotOp)
ELEMENTWISE(IsNanOp)
ELEMENTWISE(CompareOp)
ELEMENTWISE(SelectOp)
ELEMENTWISE(CastOp)
ELEMENTWISE(GeluOp)
ELEMENTWISE(GeluBackwardOp)
ELEMENTWISE(SiluBackwardOp)
// Its mask goes by global index: offsets say where a box is.
ELEMENTWISE(DropoutOp)
// As if added to zeros of the result's shape.
LINEAR_ELEMENTWISE(BroadcastOp)
#undef LINEAR_ELEMENTWISE
#undef ELEMENTWISE

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

ShardingRule MatmulOp::getShardingRule() {
  RuleBuilder b(*this);
  ArrayRef<int64_t> lhs = b.shapeOf(0), rhs = b.shapeOf(1);
  int64_t at = 0; // the result's next dim
  for (auto [l, r] : llvm::zip_equal(getLhsBatch(), getRhsBatch())) {
    unsigned batch = b.parallel(lhs[l]);
    b.operand(0, l, batch);
    b.operand(1, r, batch);
    b.result(0, at++, batch);
  }
  auto addFree = [&](unsigned index, ArrayRef<int64_t> shape,
                     ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    for (auto [dim, size] : llvm::enumerate(shape)) {
      if (llvm::is_contained(batch, dim) || llvm::is_contained(contract, dim))
        continue;
      unsigned free = b.parallel(size);
      b.operand(index, dim, free);
      b.result(0, at++, free);
    }
  };
  addFree(0, lhs, getLhsBatch(), getLhsContract());
  addFree(1, rhs, getRhsBatch(), getRhsContract());
  for (auto [l, r] : llvm::zip_equal(getLhsContract(), getRhsContract())) {
    unsigned contracted = b.reduction(lhs[l]);
    b.operand(0, l, contracted);
    b.operand(1, r, contracted);
  }
  return b.take();
}

/// Sums of shards add up. Means of uneven shards do not, nor do the others by
/// addition: they are blocked. The mean of a sum is the sum of the means.
ShardingRule ReduceOp::getShardingRule() {
  RuleBuilder b(*this);
  if (getKind() == ReduceKind::sum || getKind() == ReduceKind::mean)
    b.linear();
  int64_t at = 0;
  for (auto [dim, size] : llvm::enumerate(b.shapeOf(0))) {
    if (!llvm::is_contained(getDims(), dim)) {
      unsigned kept = b.parallel(size);
      b.operand(0, dim, kept);
      b.result(0, at++, kept);
      continue;
    }
    b.operand(0, dim,
              getKind() == ReduceKind::sum ? b.reduction(size)
                                           : b.blocked(size));
    at += getKeep();
  }
  return b.take();
}

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

/// Rows are independent, a row is whole. Each tensor of rank 1 or more has the
/// rows, the rows and the last dim, or the last dim alone, by its rank; scales
/// and their gradients are the tensors in `vectors` (operands) and all results
/// of rank 1 where `vectorResults` is set.
static ShardingRule rowsRule(Operation *op, ArrayRef<unsigned> vectors,
                             bool vectorResults = false) {
  RuleBuilder b(op);
  ArrayRef<int64_t> shape = b.shapeOf(0);
  SmallVector<unsigned> factors = b.parallel(shape.drop_back());
  factors.push_back(b.blocked(shape.back()));
  ArrayRef<unsigned> rows = ArrayRef(factors).drop_back();
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (llvm::is_contained(vectors, i))
      b.operand(i, 0, factors.back());
    else
      b.operand(i,
                b.shapeOf(i).size() == shape.size() ? ArrayRef(factors) : rows);
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    if (vectorResults && i > 0)
      b.result(i, 0, factors.back());
    else
      b.result(i, b.resultShapeOf(i).size() == shape.size() ? ArrayRef(factors)
                                                            : rows);
  }
  return b.take();
}

ShardingRule SoftmaxOp::getShardingRule() { return rowsRule(*this, {}); }
ShardingRule SoftmaxBackwardOp::getShardingRule() {
  return rowsRule(*this, {});
}
ShardingRule LayerNormOp::getShardingRule() { return rowsRule(*this, {1, 2}); }
ShardingRule LayerNormBackwardOp::getShardingRule() {
  return rowsRule(*this, {1}, true);
}
ShardingRule RmsNormOp::getShardingRule() { return rowsRule(*this, {1}); }
ShardingRule RmsNormBackwardOp::getShardingRule() {
  return rowsRule(*this, {1}, true);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// Attention splits by batch and by query heads. Where query and key/value
/// heads are one to one they are one factor. Otherwise key/value heads are a
/// blocked factor of their own: a set of query heads needs those that
/// `kv_heads` maps it to, which whoever splits query heads reads from there.
/// Gradients by key and value then lack the factor of query heads and are
/// partial sums.
struct AttentionFactors {
  unsigned batch, heads, kvHeads, queries, keys, depth, valueDepth;

  AttentionFactors(RuleBuilder &b, ArrayRef<int64_t> query,
                   ArrayRef<int64_t> key, ArrayRef<int64_t> value,
                   ArrayRef<int64_t> map) {
    batch = b.parallel(query[0]);
    heads = b.parallel(query[1]);
    bool oneToOne =
        query[1] == key[1] && llvm::equal(map, llvm::seq<int64_t>(0, query[1]));
    kvHeads = oneToOne ? heads : b.blocked(key[1]);
    queries = b.blocked(query[2]);
    keys = b.blocked(key[2]);
    depth = b.blocked(query[3]);
    valueDepth = b.blocked(value[3]);
  }
  SmallVector<unsigned> query() const { return {batch, heads, queries, depth}; }
  SmallVector<unsigned> key() const { return {batch, kvHeads, keys, depth}; }
  SmallVector<unsigned> value() const {
    return {batch, kvHeads, keys, valueDepth};
  }
  SmallVector<unsigned> result() const {
    return {batch, heads, queries, valueDepth};
  }
  SmallVector<unsigned> rows() const { return {batch, heads, queries}; }
  SmallVector<unsigned> scores() const { return {batch, heads, queries, keys}; }
};
} // namespace

ShardingRule AttentionOp::getShardingRule() {
  RuleBuilder b(*this);
  AttentionFactors f(b, b.shapeOf(0), b.shapeOf(1), b.shapeOf(2), getKvHeads());
  b.operand(0, f.query());
  b.operand(1, f.key());
  b.operand(2, f.value());
  if (getMask())
    b.broadcastOperand(3, f.scores());
  b.result(0, f.result());
  b.result(1, f.rows());
  return b.take();
}

ShardingRule AttentionBackwardOp::getShardingRule() {
  RuleBuilder b(*this);
  AttentionFactors f(b, b.shapeOf(0), b.shapeOf(1), b.shapeOf(2), getKvHeads());
  b.operand(0, f.query());
  b.operand(1, f.key());
  b.operand(2, f.value());
  b.operand(3, f.result());
  b.operand(4, f.rows());
  b.operand(5, f.result());
  if (getMask())
    b.broadcastOperand(6, f.scores());
  b.result(0, f.query());
  b.result(1, f.key());
  b.result(2, f.value());
  return b.take();
}

/// Pairs of the last dim are rotated together: it is whole.
ShardingRule RotaryOp::getShardingRule() {
  RuleBuilder b(*this);
  b.linearIn(0);
  SmallVector<unsigned> factors = b.parallel(b.shapeOf(0).drop_back());
  factors.push_back(b.blocked(b.shapeOf(0).back()));
  b.operand(0, factors);
  b.result(0, factors);
  factors.back() = b.blocked(b.shapeOf(1).back()); // R/2
  b.broadcastOperand(1, factors);
  b.broadcastOperand(2, factors);
  return b.take();
}

//===----------------------------------------------------------------------===//
// Index
//===----------------------------------------------------------------------===//

ShardingRule EmbeddingOp::getShardingRule() {
  RuleBuilder b(*this);
  SmallVector<unsigned> factors = b.parallel(b.shapeOf(1));
  b.operand(1, factors);
  factors.push_back(b.parallel(b.shapeOf(0)[1]));
  b.operand(0, {b.reduction(b.shapeOf(0)[0]), factors.back()});
  b.result(0, factors);
  return b.take();
}

ShardingRule EmbeddingBackwardOp::getShardingRule() {
  RuleBuilder b(*this);
  SmallVector<unsigned> factors = llvm::map_to_vector(
      b.shapeOf(0), [&](int64_t size) { return b.reduction(size); });
  b.operand(0, factors);
  factors.push_back(b.parallel(b.shapeOf(1).back()));
  b.operand(1, factors);
  b.result(0, {b.parallel(b.resultShapeOf(0)[0]), factors.back()});
  return b.take();
}

/// Rows are independent, a row is whole.
ShardingRule TopKOp::getShardingRule() {
  RuleBuilder b(*this);
  SmallVector<unsigned> rows = b.parallel(b.shapeOf(0).drop_back());
  int64_t last = rows.size();
  b.operand(0, rows);
  b.operand(0, last, b.blocked(b.shapeOf(0).back()));
  unsigned chosen = b.blocked(b.resultShapeOf(0).back());
  for (unsigned i : {0, 1}) {
    b.result(i, rows);
    b.result(i, last, chosen);
  }
  return b.take();
}

/// The result's dims are the operand's with `dim` replaced by the indices'.
ShardingRule GatherOp::getShardingRule() {
  RuleBuilder b(*this);
  int64_t dim = getDim(), at = 0;
  for (auto [d, size] : llvm::enumerate(b.shapeOf(0))) {
    if (int64_t(d) == dim) {
      b.operand(0, d, b.blocked(size));
      for (auto [i, count] : llvm::enumerate(b.shapeOf(1))) {
        unsigned index = b.parallel(count);
        b.operand(1, i, index);
        b.result(0, at++, index);
      }
      continue;
    }
    unsigned kept = b.parallel(size);
    b.operand(0, d, kept);
    b.result(0, at++, kept);
  }
  return b.take();
}

/// The dims that tuples index are whole, and so are tuples.
ShardingRule GatherNdOp::getShardingRule() {
  RuleBuilder b(*this);
  ArrayRef<int64_t> operand = b.shapeOf(0), indices = b.shapeOf(1);
  int64_t batch = getBatchDims(), tuple = indices.back(), at = 0;
  for (int64_t i = 0; i + 1 < int64_t(indices.size()); ++i) {
    unsigned index = b.parallel(indices[i]);
    b.operand(1, i, index);
    if (i < batch)
      b.operand(0, i, index);
    b.result(0, at++, index);
  }
  b.operand(1, indices.size() - 1, b.blocked(tuple));
  for (int64_t d = batch; d < int64_t(operand.size()); ++d) {
    unsigned factor =
        d < batch + tuple ? b.blocked(operand[d]) : b.parallel(operand[d]);
    b.operand(0, d, factor);
    if (d >= batch + tuple)
      b.result(0, at++, factor);
  }
  return b.take();
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// Takes both shapes apart from the major end. Of the two extents at hand the
/// smaller is a factor of both sides if it divides the larger, whose rest goes
/// on:
///
///   [2, 5, 24] to [2, 5, 3, 8]   [a b (c d)] -> [a b c d]
///   [2, 5, 8]  to [10, 8]        [a b c]     -> [(a b) c]
///   [4, 6]     to [6, 4]         2 and 3 left over: no common factor. Dims up
///                                to where the products agree are blocked.
ShardingRule ReshapeOp::getShardingRule() {
  RuleBuilder b(*this);
  b.linear();
  ArrayRef<int64_t> from = b.shapeOf(0), to = b.resultShapeOf(0);
  if (llvm::is_contained(from, 0)) // nothing to split
    return b.take();
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    // One group of dims with equal products on both sides.
    size_t firstFrom = i, firstTo = j;
    int64_t left = 1, right = 1; // not yet matched
    struct Match {
      size_t from, to;
      int64_t size;
    };
    SmallVector<Match> matches;
    bool nests = true;
    do {
      if (left == 1 && i < from.size())
        left = from[i++];
      if (right == 1 && j < to.size())
        right = to[j++];
      if (left == 1 || right == 1) {
        // A dim of extent 1, which has no factor, or one that goes on.
        if (left == 1 && right == 1)
          break;
        continue;
      }
      int64_t common = std::min(left, right);
      if (std::max(left, right) % common != 0) {
        nests = false;
        // To the end of the group: until the products agree.
        while (left != right)
          (left < right ? left *= from[i++] : right *= to[j++]);
        left = right = 1;
        break;
      }
      matches.push_back({i - 1, j - 1, common});
      left /= common;
      right /= common;
    } while (left != 1 || right != 1);

    if (nests) {
      for (const Match &match : matches) {
        unsigned factor = b.parallel(match.size);
        b.operand(0, match.from, factor);
        b.result(0, match.to, factor);
      }
      continue;
    }
    for (size_t d = firstFrom; d < i; ++d)
      b.operand(0, d, b.blocked(from[d]));
    for (size_t d = firstTo; d < j; ++d)
      b.result(0, d, b.blocked(to[d]));
  }
  return b.take();
}

ShardingRule TransposeOp::getShardingRule() {
  RuleBuilder b(*this);
  b.linear();
  SmallVector<unsigned> factors = b.parallel(b.resultShapeOf(0));
  b.result(0, factors);
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    b.operand(0, from, factors[to]);
  return b.take();
}

/// Dims that are taken whole stay parallel.
static ShardingRule sliceRule(Operation *op, ArrayRef<int64_t> strides) {
  RuleBuilder b(op);
  b.linear();
  for (auto [dim, in, out, stride] :
       llvm::enumerate(b.shapeOf(0), b.resultShapeOf(0), strides)) {
    bool isWhole = in == out && stride == 1;
    unsigned factor = isWhole ? b.parallel(in) : b.blocked(in);
    b.operand(0, dim, factor);
    b.result(0, dim, isWhole ? factor : b.blocked(out));
  }
  return b.take();
}
ShardingRule SliceOp::getShardingRule() {
  return sliceRule(*this, getStrides());
}
ShardingRule SliceBackwardOp::getShardingRule() {
  return sliceRule(*this, getStrides());
}

ShardingRule ConcatOp::getShardingRule() {
  RuleBuilder b(*this);
  b.linear();
  for (auto [dim, size] : llvm::enumerate(b.resultShapeOf(0))) {
    bool isJoined = int64_t(dim) == int64_t(getDim());
    unsigned whole = isJoined ? b.blocked(size) : b.parallel(size);
    b.result(0, dim, whole);
    for (unsigned i = 0; i < getNumOperands(); ++i)
      b.operand(i, dim, isJoined ? b.blocked(b.shapeOf(i)[dim]) : whole);
  }
  return b.take();
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// A maximum and a sum of exponentials over all classes: the partitioning of
/// the op itself exchanges them, no factor does.
ShardingRule CrossEntropyOp::getShardingRule() {
  RuleBuilder b(*this);
  SmallVector<unsigned> factors = b.parallel(b.shapeOf(1));
  b.operand(1, factors);
  b.result(1, factors);
  factors.push_back(b.blocked(b.shapeOf(0).back()));
  b.operand(0, factors);
  return b.take();
}

ShardingRule CrossEntropyPartOp::getShardingRule() {
  RuleBuilder b(*this);
  SmallVector<unsigned> factors = b.parallel(b.shapeOf(1));
  b.operand(1, factors);
  b.result(0, factors);
  b.result(1, factors);
  factors.push_back(b.blocked(b.shapeOf(0).back()));
  b.operand(0, factors);
  return b.take();
}

ShardingRule CrossEntropyBackwardOp::getShardingRule() {
  RuleBuilder b(*this);
  SmallVector<unsigned> factors = b.parallel(b.shapeOf(0));
  ArrayRef<unsigned> rows = ArrayRef(factors).drop_back();
  b.operand(0, factors);
  b.operand(1, rows);
  b.operand(2, rows);
  b.result(0, factors);
  return b.take();
}

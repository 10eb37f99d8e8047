//===- OnnxPad.cpp - elements around a tensor -----------------------------===//
//
// One dim after the other: constants are joined on, all else is a lookup of
// rows that are there.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"
#include "autohet/Support/Extents.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

/// Rows are looked up by a list of them.
static constexpr int64_t kMostRows = int64_t(1) << 24;

/// Which row of `extent` stands at each place from -before on; nothing where
/// the mode is unknown.
static std::optional<SmallVector<int64_t>>
paddedRows(StringRef mode, int64_t extent, int64_t before, int64_t after) {
  SmallVector<int64_t> rows;
  for (int64_t at = -before; at < extent + after; ++at) {
    if (mode == "edge") {
      rows.push_back(std::clamp<int64_t>(at, 0, extent - 1));
    } else if (mode == "wrap") {
      rows.push_back(((at % extent) + extent) % extent);
    } else if (mode == "reflect") {
      // There and back again, without the ends twice.
      int64_t period = std::max<int64_t>(1, 2 * (extent - 1));
      int64_t place = ((at % period) + period) % period;
      rows.push_back(place < extent ? place : period - place);
    } else {
      return std::nullopt;
    }
  }
  return rows;
}

static LogicalResult convertPad(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  OnnxMath math(node);
  bool hasOperands = node.opset() >= 11;
  SmallVector<int64_t> pads;
  if (hasOperands) {
    if (failed(node.needOperands(2)))
      return failure();
    auto given = node.constantInts(1, "pads");
    if (failed(given))
      return failure();
    pads = *given;
  } else {
    pads = node.intsField(node.opset() < 2 ? "paddings" : "pads")
               .value_or(SmallVector<int64_t>());
  }
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
  if (node.has(3)) {
    auto given = node.constantInts(3, "axes");
    if (failed(given))
      return failure();
    axes = *given;
  }
  if (pads.size() != 2 * axes.size())
    return node.error() << "has " << pads.size() << " pads for " << axes.size()
                        << " axes, wanted two for each";
  StringRef mode = node.stringField("mode", "constant");
  Value x = node.operand(0), filler;
  if (mode == "constant") {
    filler = math.like(x, node.floatField("value", 0));
    if (hasOperands && node.has(2)) {
      if (node.type(2).getNumElements() != 1 ||
          node.type(2).getElementType() != node.type(0).getElementType())
        return node.error() << "constant_value is " << node.type(2)
                            << ", wanted one element of " << node.type(0);
      filler = node.reshape(node.operand(2), {});
    }
  }
  for (auto [i, signedAxis] : llvm::enumerate(axes)) {
    auto axis = node.normalizeAxis(signedAxis, node.rank(0));
    if (failed(axis))
      return failure();
    int64_t before = pads[i], after = pads[i + axes.size()];
    for (int64_t pad : {before, after})
      if (pad < -kMaxElements || pad > kMaxElements)
        return node.error() << "pads by " << pad << ", wanted at most 2^40";
    int64_t extent = tensorType(x).getDimSize(*axis);
    // Negative ones cut off.
    int64_t cutBefore = std::max<int64_t>(0, -before),
            cutAfter = std::max<int64_t>(0, -after);
    if (cutBefore + cutAfter > extent)
      return node.error() << "cuts off more than dim " << *axis << " of "
                          << tensorType(x) << " has";
    if (cutBefore || cutAfter)
      x = math.slice(x, *axis, cutBefore, extent - cutBefore - cutAfter);
    before = std::max<int64_t>(0, before), after = std::max<int64_t>(0, after);
    extent = tensorType(x).getDimSize(*axis);
    if (before + after == 0)
      continue;
    if (filler) {
      SmallVector<Value> parts = {x};
      SmallVector<int64_t> shape(tensorType(x).getShape());
      auto around = [&](int64_t count) {
        shape[*axis] = count;
        return node.broadcast(filler, shape);
      };
      if (before)
        parts.insert(parts.begin(), around(before));
      if (after)
        parts.push_back(around(after));
      x = math.concat(parts, *axis);
      continue;
    }
    if (before + after > kMostRows - extent)
      return node.error() << "pads dim " << *axis << " of " << tensorType(x)
                          << " by " << before << " and " << after
                          << " in mode '" << mode
                          << "', wanted at most 2^24 rows together";
    auto rows = extent ? paddedRows(mode, extent, before, after) : std::nullopt;
    if (!rows)
      return node.error() << "cannot pad " << tensorType(x) << " in mode '"
                          << mode << "', known are constant, edge, reflect "
                          << "and wrap";
    x = node.create<het::GatherOp>(x, node.constantInts(*rows), *axis);
  }
  results.push_back(x);
  return success();
}

void autohet::addPadHandlers(OnnxHandlers &handlers) {
  handlers["Pad"] = convertPad;
}

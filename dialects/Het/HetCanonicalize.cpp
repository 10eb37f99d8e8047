//===- HetCanonicalize.cpp - one way to write what means the same
//-----------===//
//
// Rewrites that need new ops; what can be done without is a fold. Exporters
// write broadcasts, neutral operands and nested slices that say nothing; the
// passes that recognise patterns should not each have to look through them.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

std::optional<double> autohet::het::getSplatValue(Value value) {
  DenseElementsAttr dense;
  if (!matchPattern(value, m_Constant(&dense)) || !dense.isSplat())
    return std::nullopt;
  if (auto real = dyn_cast<FloatAttr>(dense.getSplatValue<Attribute>()))
    return real.getValueAsDouble();
  auto integer = cast<IntegerAttr>(dense.getSplatValue<Attribute>());
  return integer.getType().isInteger(1)
             ? double(integer.getValue().getZExtValue())
             : double(integer.getInt());
}

namespace {

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

/// The shape that the operands broadcast to, operand `index` having `shape`.
FailureOr<SmallVector<int64_t>> shapeWith(Operation *op, unsigned index,
                                          ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    auto both = broadcastShapes(
        result, i == index ? shape : typeOf(operand).getShape());
    if (failed(both))
      return failure();
    result = *both;
  }
  return result;
}

/// Whether operand `index` may have `shape` instead, the result being the same.
bool mayHaveShape(Operation *op, unsigned index, ArrayRef<int64_t> shape) {
  auto result = shapeWith(op, index, shape);
  return succeeded(result) &&
         typeOf(op->getResult(0)).getShape() == ArrayRef<int64_t>(*result);
}

/// add(broadcast(x), y) -> add(x, y): elementwise ops broadcast by themselves.
/// A reshape that only adds leading dims of 1 is such a broadcast too.
struct DropBroadcast : OpInterfaceRewritePattern<ElementwiseOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(ElementwiseOpInterface op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &operand : op->getOpOperands()) {
      Value source = getSource(operand.get());
      if (!source || !mayHaveShape(op, operand.getOperandNumber(),
                                   typeOf(source).getShape()))
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(source); });
      changed = true;
    }
    return success(changed);
  }

  static Value getSource(Value operand) {
    if (auto broadcast = operand.getDefiningOp<BroadcastOp>())
      return broadcast.getOperand();
    auto reshape = operand.getDefiningOp<ReshapeOp>();
    if (!reshape)
      return {};
    ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
    ArrayRef<int64_t> to = reshape.getShape();
    if (to.size() < from.size() || to.take_back(from.size()) != from ||
        llvm::any_of(to.drop_back(from.size()),
                     [](int64_t extent) { return extent != 1; }))
      return {};
    return reshape.getOperand();
  }
};

/// The constant without the repetitions that broadcasting restores, or null: a
/// splat becomes a scalar, a mask with equal rows for all samples loses the
/// batch dim.
DenseElementsAttr withoutRepetitions(DenseElementsAttr dense) {
  auto type = cast<RankedTensorType>(dense.getType());
  if (type.getNumElements() <= 1)
    return {};
  if (dense.isSplat())
    return dense.resizeSplat(RankedTensorType::get({}, type.getElementType()));
  // Bits, for attributes are slow to compare one by one.
  std::vector<uint64_t> bits;
  bits.reserve(type.getNumElements());
  if (isa<FloatType>(type.getElementType()))
    for (const APFloat &value : dense.getValues<APFloat>())
      bits.push_back(value.bitcastToAPInt().getZExtValue());
  else
    for (const APInt &value : dense.getValues<APInt>())
      bits.push_back(value.getZExtValue());

  SmallVector<int64_t> shape(type.getShape());
  bool changed = false;
  int64_t inner = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; inner *= shape[dim--]) {
    if (shape[dim] == 1)
      continue;
    int64_t block = inner * shape[dim], count = bits.size();
    bool repeats = true;
    for (int64_t i = 0; i < count && repeats; ++i)
      repeats = bits[i] == bits[i / block * block + i % inner];
    if (!repeats)
      continue;
    std::vector<uint64_t> kept;
    for (int64_t i = 0; i < count; ++i)
      if (i % block < inner)
        kept.push_back(bits[i]);
    bits = std::move(kept);
    shape[dim] = 1;
    changed = true;
  }
  if (!changed)
    return {};
  auto small = RankedTensorType::get(shape, type.getElementType());
  unsigned width = type.getElementTypeBitWidth();
  if (auto floatType = dyn_cast<FloatType>(type.getElementType())) {
    SmallVector<APFloat> values;
    for (uint64_t value : bits)
      values.emplace_back(floatType.getFloatSemantics(), APInt(width, value));
    return DenseElementsAttr::get(small, values);
  }
  SmallVector<APInt> values;
  for (uint64_t value : bits)
    values.emplace_back(width, value);
  return DenseElementsAttr::get(small, values);
}

struct ShrinkConstant : OpInterfaceRewritePattern<ElementwiseOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(ElementwiseOpInterface op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &operand : op->getOpOperands()) {
      DenseElementsAttr dense;
      // With nothing but constants the op is folded, not shrunk.
      if (op->getNumOperands() == 1 ||
          !matchPattern(operand.get(), m_Constant(&dense)))
        continue;
      // Comparing elements costs time: only where the shape may shrink at all.
      if (!mayHaveShape(op, operand.getOperandNumber(), {}) &&
          !couldShrink(op, operand.getOperandNumber()))
        continue;
      DenseElementsAttr small = withoutRepetitions(dense);
      if (!small || !mayHaveShape(op, operand.getOperandNumber(),
                                  cast<ShapedType>(small.getType()).getShape()))
        continue;
      Value constant = ConstantOp::create(rewriter, op.getLoc(), small);
      rewriter.modifyOpInPlace(op, [&] { operand.set(constant); });
      changed = true;
    }
    return success(changed);
  }

  /// Whether some dim of operand `index` could have extent 1.
  static bool couldShrink(Operation *op, unsigned index) {
    SmallVector<int64_t> shape(typeOf(op->getOperand(index)).getShape());
    for (int64_t &extent : shape) {
      int64_t whole = std::exchange(extent, 1);
      if (whole != 1 && mayHaveShape(op, index, shape))
        return true;
      extent = whole;
    }
    return false;
  }
};

/// Replaces a binary op by one operand where the other is neutral. Folds do
/// this where the types agree; here the operand is broadcast.
template <typename OpT>
struct DropNeutral : OpRewritePattern<OpT> {
  DropNeutral(MLIRContext *context, double neutral, bool commutes)
      : OpRewritePattern<OpT>(context), neutral(neutral), commutes(commutes) {}

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    Value kept;
    if (getSplatValue(op.getRhs()) == neutral)
      kept = op.getLhs();
    else if (commutes && getSplatValue(op.getLhs()) == neutral)
      kept = op.getRhs();
    if (!kept)
      return failure();
    if (kept.getType() == op.getType())
      rewriter.replaceOp(op, kept);
    else
      rewriter.replaceOpWithNewOp<BroadcastOp>(op, kept,
                                               op.getType().getShape());
    return success();
  }
  double neutral;
  bool commutes;
};

/// neg(neg(x)) -> x, not(not(x)) -> x.
template <typename OpT>
struct DropDouble : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getOperand().template getDefiningOp<OpT>();
    if (!inner)
      return failure();
    rewriter.replaceOp(op, inner.getOperand());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

struct ComposeSlices : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getOperand().getDefiningOp<SliceOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> offsets, strides;
    for (auto [size, outerOffset, outerStride, offset, stride] :
         llvm::zip_equal(op.getSizes(), op.getOffsets(), op.getStrides(),
                         inner.getOffsets(), inner.getStrides())) {
      // What has no element is nowhere, and no stride leads to the only one:
      // such numbers may be of any size.
      offsets.push_back(size > 0 ? offset + outerOffset * stride : 0);
      strides.push_back(size > 1 ? outerStride * stride : 1);
    }
    rewriter.replaceOpWithNewOp<SliceOp>(op, inner.getOperand(), offsets,
                                         op.getSizes(), strides);
    return success();
  }
};

/// broadcast(broadcast(x)) -> broadcast(x), also through leading dims of 1.
struct ComposeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    Value source = DropBroadcast::getSource(op.getOperand());
    if (!source)
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, source, op.getShape());
    return success();
  }
};

} // namespace

void autohet::het::populateCanonicalizationPatterns(
    RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<DropBroadcast, ShrinkConstant, DropDouble<NegOp>,
               DropDouble<NotOp>, ComposeSlices, ComposeBroadcasts>(context);
  patterns.add<DropNeutral<AddOp>>(context, 0, /*commutes=*/true);
  patterns.add<DropNeutral<MulOp>>(context, 1, /*commutes=*/true);
  patterns.add<DropNeutral<AndOp>>(context, 1, /*commutes=*/true);
  patterns.add<DropNeutral<OrOp>>(context, 0, /*commutes=*/true);
  patterns.add<DropNeutral<SubOp>>(context, 0, /*commutes=*/false);
  patterns.add<DropNeutral<DivOp>>(context, 1, /*commutes=*/false);
  patterns.add<DropNeutral<PowOp>>(context, 1, /*commutes=*/false);
}

void HetDialect::getCanonicalizationPatterns(
    RewritePatternSet &patterns) const {
  populateCanonicalizationPatterns(patterns);
}

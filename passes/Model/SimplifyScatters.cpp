//===- SimplifyScatters.cpp - scattered updates, sample by sample ---------===//
//
// Writing to a part of each sample (`x[:, 2:4] = y`) is exported as tuples that
// begin with the sample's number. Where the tuples of all samples are the same
// but for it, samples are part of the slices that the rest of a tuple points
// to: they are seen to stay apart, whatever their number.
//
//===----------------------------------------------------------------------===//

#include "SimplifyScatters.h"
#include "Match.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

/// The tuples of row 0 without their first index, if the tuples of each row are
/// these behind the row's number; null else.
DenseElementsAttr tuplesOfEachRow(Value indices, int64_t rows) {
  DenseIntElementsAttr dense;
  ArrayRef<int64_t> shape = typeOf(indices).getShape();
  if (shape.size() < 2 || shape[0] != rows || shape.back() < 2 ||
      !matchPattern(indices, m_Constant(&dense)) || dense.empty())
    return {};
  auto values = llvm::to_vector(dense.getValues<APInt>());
  int64_t width = shape.back(), inRow = int64_t(values.size()) / rows;
  SmallVector<APInt> rest;
  for (auto [i, value] : llvm::enumerate(values)) {
    int64_t row = int64_t(i) / inRow;
    if (int64_t(i) % width == 0) {
      if (value.getSExtValue() != row)
        return {};
    } else if (row == 0) {
      rest.push_back(value);
    } else if (value != values[int64_t(i) % inRow]) {
      return {};
    }
  }
  SmallVector<int64_t> restShape(shape.drop_front());
  --restShape.back();
  return DenseElementsAttr::get(typeOf(indices).clone(restShape), rest);
}

/// Moves dim 0 behind the `count` dims that follow it; or back.
Value moveFirstDim(OpBuilder &b, Location loc, Value value, int64_t count,
                   bool back) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank()));
  auto begin = order.begin(), end = begin + count + 1;
  std::rotate(begin, back ? end - 1 : begin + 1, end);
  return b.createOrFold<TransposeOp>(loc, value, order);
}

struct KeepRowsApart : OpRewritePattern<ScatterNdOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScatterNdOp op,
                                PatternRewriter &rewriter) const override {
    auto operand = typeOf(op.getOperand());
    int64_t rows = operand.getRank() ? operand.getDimSize(0) : 0;
    DenseElementsAttr tuples = tuplesOfEachRow(op.getIndices(), rows);
    if (!tuples)
      return failure();
    Location loc = op.getLoc();
    auto indices = cast<RankedTensorType>(tuples.getType());
    int64_t indexed = indices.getShape().back(), places = indices.getRank() - 1;
    Value result = ScatterNdOp::create(
        rewriter, loc, op.getKind(),
        moveFirstDim(rewriter, loc, op.getOperand(), indexed, /*back=*/false),
        ConstantOp::create(rewriter, loc, tuples),
        moveFirstDim(rewriter, loc, op.getUpdates(), places, /*back=*/false));
    rewriter.replaceOp(
        op, moveFirstDim(rewriter, loc, result, indexed, /*back=*/true));
    return success();
  }
};

} // namespace

void autohet::populateScatterPatterns(RewritePatternSet &patterns) {
  patterns.add<KeepRowsApart>(patterns.getContext());
}

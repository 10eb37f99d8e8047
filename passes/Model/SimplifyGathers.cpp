//===- SimplifyGathers.cpp - lookups at constant places are views
//-----------===//
//
// Masks are read from the padding mask by index: GatherND with the numbers of
// the row and the column, or Gather from the flattened mask at row * length +
// column. Once the dims are bound the indices are constants that only count, so
// the lookup is a slice, a reshape or a broadcast, and the batch dim is seen to
// stay one. Where only the number of the row is constant, rows are paired; so
// are rows of samples laid end to end. Updates at constant places are in
// SimplifyScatters.cpp.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "SimplifyScatters.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_SIMPLIFYGATHERS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

/// An index as a function of its position: `base + sum steps[d] * position[d]`.
struct AffineIndex {
  int64_t base;
  SmallVector<int64_t> steps; // 0 also for dims of extent 1

  /// Reads `values[first + i * stride]`, i the row-major position in `shape`.
  static std::optional<AffineIndex> fit(ArrayRef<int64_t> values, int64_t first,
                                        int64_t stride,
                                        ArrayRef<int64_t> shape) {
    AffineIndex index;
    index.base = values[first];
    index.steps.assign(shape.size(), 0);
    int64_t inner = 1;
    for (size_t d = shape.size(); d-- > 0; inner *= shape[d])
      if (shape[d] > 1)
        index.steps[d] = values[first + inner * stride] - index.base;
    SmallVector<int64_t> position(shape.size(), 0);
    for (int64_t i = 0; i < inner; ++i) {
      int64_t expected = index.base;
      for (size_t d = 0; d < shape.size(); ++d)
        expected += index.steps[d] * position[d];
      if (values[first + i * stride] != expected)
        return std::nullopt;
      for (size_t d = shape.size(); d-- > 0;) {
        if (++position[d] < shape[d])
          break;
        position[d] = 0;
      }
    }
    return index;
  }
};

/// How the lookups along one dim of the operand are a slice of it, whose extent
/// is that of `dims`, dims of the index tensor, major to minor.
struct DimView {
  int64_t offset = 0, size = 1, stride = 1;
  SmallVector<int64_t> dims;

  static std::optional<DimView> get(const AffineIndex &index,
                                    ArrayRef<int64_t> shape, int64_t extent) {
    DimView view;
    view.offset = index.base;
    for (auto [d, step] : llvm::enumerate(index.steps))
      if (step != 0)
        view.dims.push_back(d);
    llvm::sort(view.dims, [&](int64_t a, int64_t b) {
      return std::abs(index.steps[a]) > std::abs(index.steps[b]);
    });
    if (!view.dims.empty())
      view.stride = index.steps[view.dims.back()];
    for (int64_t d : llvm::reverse(view.dims)) {
      if (index.steps[d] != view.stride * view.size)
        return std::nullopt;
      view.size *= shape[d];
    }
    int64_t last = view.offset + view.stride * (view.size - 1);
    if (last < 0 || last >= extent)
      return std::nullopt;
    return view;
  }
};

/// The elements of a constant, row-major, or nothing.
std::optional<SmallVector<int64_t>> constantIndices(Value value) {
  DenseIntElementsAttr dense;
  if (!matchPattern(value, m_Constant(&dense)) || dense.empty())
    return std::nullopt;
  return llvm::map_to_vector(dense.getValues<APInt>(),
                             [](const APInt &i) { return i.getSExtValue(); });
}

/// The lookup as views of `operand`: dims [first, first + views.size()) of it
/// are replaced by the dims of the index, which has `shape`.
Value buildViews(OpBuilder &builder, Location loc, Value operand, int64_t first,
                 ArrayRef<DimView> views, ArrayRef<int64_t> shape) {
  auto type = typeOf(operand);
  int64_t behind = first + views.size();

  // Slice, then give each index dim that counts a dim of its own.
  SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1);
  SmallVector<int64_t> sizes(type.getShape());
  SmallVector<int64_t> split(type.getShape().take_front(first)), order;
  for (auto [i, view] : llvm::enumerate(views)) {
    offsets[first + i] = view.offset;
    sizes[first + i] = view.size;
    strides[first + i] = view.stride;
    for (int64_t d : view.dims) {
      split.push_back(shape[d]);
      order.push_back(d);
    }
  }
  llvm::append_range(split, type.getShape().drop_front(behind));
  Value value =
      builder.createOrFold<SliceOp>(loc, operand, offsets, sizes, strides);
  value = builder.createOrFold<ReshapeOp>(loc, value, split);

  // Into the index's order.
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(first));
  for (int64_t d = 0, rank = shape.size(); d < rank; ++d)
    if (auto *at = llvm::find(order, d); at != order.end())
      permutation.push_back(first + (at - order.begin()));
  for (int64_t d = permutation.size(), rank = split.size(); d < rank; ++d)
    permutation.push_back(d);
  value = builder.createOrFold<TransposeOp>(loc, value, permutation);

  // Index dims that do not count repeat what is there.
  SmallVector<int64_t> ones(type.getShape().take_front(first)), whole = ones;
  for (auto [d, extent] : llvm::enumerate(shape)) {
    ones.push_back(llvm::is_contained(order, int64_t(d)) ? extent : 1);
    whole.push_back(extent);
  }
  llvm::append_range(ones, type.getShape().drop_front(behind));
  llvm::append_range(whole, type.getShape().drop_front(behind));
  value = builder.createOrFold<ReshapeOp>(loc, value, ones);
  return builder.createOrFold<BroadcastOp>(loc, value, whole);
}

/// Reads `count` interleaved indices into dims [first, first + count).
std::optional<SmallVector<DimView>> matchViews(SmallVector<int64_t> values,
                                               int64_t count, int64_t first,
                                               RankedTensorType operand,
                                               ArrayRef<int64_t> shape) {
  SmallVector<DimView> views;
  llvm::SmallDenseSet<int64_t> used;
  for (int64_t i = 0; i < count; ++i) {
    int64_t extent = operand.getDimSize(first + i);
    for (size_t j = i; j < values.size(); j += count) {
      if (values[j] < 0)
        values[j] += extent; // counted from the end
      if (values[j] < 0 || values[j] >= extent)
        return std::nullopt; // the run-time error names the index
    }
    auto index = AffineIndex::fit(values, i, count, shape);
    auto view = index ? DimView::get(*index, shape, extent) : std::nullopt;
    if (!view)
      return std::nullopt;
    // A dim that counts along two dims at once is a diagonal: no view.
    for (int64_t d : view->dims)
      if (!used.insert(d).second)
        return std::nullopt;
    views.push_back(std::move(*view));
  }
  return views;
}

struct GatherToViews : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto values = constantIndices(op.getIndices());
    if (!values)
      return failure();
    ArrayRef<int64_t> shape = typeOf(op.getIndices()).getShape();
    int64_t dim = op.getDim();
    auto views = matchViews(*values, 1, dim, typeOf(op.getOperand()), shape);
    if (!views)
      return failure();
    rewriter.replaceOp(op, buildViews(rewriter, op.getLoc(), op.getOperand(),
                                      dim, *views, shape));
    return success();
  }
};

struct GatherNdToViews : OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNdOp op,
                                PatternRewriter &rewriter) const override {
    auto values = constantIndices(op.getIndices());
    if (!values || op.getBatchDims() != 0)
      return failure();
    ArrayRef<int64_t> shape = typeOf(op.getIndices()).getShape();
    auto views = matchViews(*values, shape.back(), 0, typeOf(op.getOperand()),
                            shape.drop_back());
    if (!views)
      return failure();
    rewriter.replaceOp(op, buildViews(rewriter, op.getLoc(), op.getOperand(), 0,
                                      *views, shape.drop_back()));
    return success();
  }
};

/// Tuples that begin with the number of their own row look up in the row of
/// that number: rows of operand and indices are paired.
struct PairRows : OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNdOp op,
                                PatternRewriter &rewriter) const override {
    if (succeeded(pairConstantRows(op, rewriter)))
      return success();
    auto columns = op.getIndices().getDefiningOp<ConcatOp>();
    int64_t row = op.getBatchDims();
    ArrayRef<int64_t> shape = typeOf(op.getIndices()).getShape();
    int64_t last = shape.size() - 1;
    if (!columns || int64_t(columns.getDim()) != last || row >= last ||
        typeOf(op.getOperand()).getDimSize(row) != shape[row])
      return failure();
    SmallVector<Value> parts(columns.getParts());
    auto values = constantIndices(parts.front());
    if (!values)
      return failure();
    int64_t width = typeOf(parts.front()).getShape().back(), inner = width;
    for (int64_t extent : shape.slice(row + 1, last - row - 1))
      inner *= extent;
    for (int64_t i = 0, count = values->size(); i < count; i += width)
      if ((*values)[i] != i / inner % shape[row])
        return failure();
    if (width == 1) {
      parts.erase(parts.begin());
    } else {
      SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1),
          sizes(typeOf(parts.front()).getShape());
      offsets.back() = 1, sizes.back() = width - 1;
      parts.front() = rewriter.createOrFold<SliceOp>(op.getLoc(), parts.front(),
                                                     offsets, sizes, strides);
    }
    Value rest =
        parts.size() == 1
            ? parts.front()
            : rewriter.createOrFold<ConcatOp>(op.getLoc(), parts, last);
    rewriter.replaceOpWithNewOp<GatherNdOp>(op, op.getOperand(), rest, row + 1);
    return success();
  }

private:
  /// Where tuples are constant as a whole.
  static LogicalResult pairConstantRows(GatherNdOp op,
                                        PatternRewriter &rewriter) {
    DenseIntElementsAttr dense;
    int64_t row = op.getBatchDims();
    ArrayRef<int64_t> shape = typeOf(op.getIndices()).getShape();
    int64_t last = shape.size() - 1, width = shape.back();
    if (row >= last || width < 2 ||
        typeOf(op.getOperand()).getDimSize(row) != shape[row] ||
        !matchPattern(op.getIndices(), m_Constant(&dense)) || dense.empty())
      return failure();
    int64_t inner = 1; // tuples in a row
    for (int64_t extent : shape.slice(row + 1, last - row - 1))
      inner *= extent;
    SmallVector<APInt> rest;
    for (auto [i, value] : llvm::enumerate(dense.getValues<APInt>())) {
      int64_t tuple = int64_t(i) / width;
      if (int64_t(i) % width != 0)
        rest.push_back(value);
      else if (value.getSExtValue() != tuple / inner % shape[row])
        return failure();
    }
    SmallVector<int64_t> restShape(shape);
    --restShape.back();
    auto type = typeOf(op.getIndices()).clone(restShape);
    Value indices = ConstantOp::create(rewriter, op.getLoc(),
                                       DenseElementsAttr::get(type, rest));
    rewriter.replaceOpWithNewOp<GatherNdOp>(op, op.getOperand(), indices,
                                            row + 1);
    return success();
  }
};

/// Rows of samples that are laid end to end, by a place in each: row
/// `length * sample + place` of [samples * length, ...]. Places are known to
/// lie within a sample, so that each stays in its own.
template <typename OpT>
struct UnmergeRows : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    auto merged = op->getOperand(0).template getDefiningOp<ReshapeOp>();
    auto sum = op->getOperand(1).template getDefiningOp<AddOp>();
    if (!merged || !sum || dimOf(op) != 0)
      return failure();
    ArrayRef<int64_t> apart = typeOf(merged.getOperand()).getShape();
    if (apart.size() != merged.getShape().size() + 1 ||
        apart[0] * apart[1] != merged.getShape()[0])
      return failure();
    auto indices = typeOf(sum.getResult());
    for (auto [first, place] : {std::pair(sum.getLhs(), sum.getRhs()),
                                std::pair(sum.getRhs(), sum.getLhs())}) {
      if (!isFirstRow(first, indices, apart[0], apart[1]) ||
          typeOf(place) != indices || !isPlaceWithin(place, apart[1]))
        continue;
      SmallVector<int64_t> tuples(indices.getShape());
      tuples.push_back(1);
      rewriter.replaceOpWithNewOp<GatherNdOp>(
          op, merged.getOperand(),
          ReshapeOp::create(rewriter, op.getLoc(), place, tuples),
          /*batch_dims=*/1);
      return success();
    }
    return failure();
  }

  static int64_t dimOf(GatherOp op) { return op.getDim(); }
  static int64_t dimOf(EmbeddingOp) { return 0; }

  /// Whether a constant that is added to indices [samples, ...] is the number
  /// of the first row of each sample.
  static bool isFirstRow(Value value, RankedTensorType indices, int64_t samples,
                         int64_t length) {
    auto values = constantIndices(value);
    ArrayRef<int64_t> shape = typeOf(value).getShape();
    if (!values || shape.empty() ||
        int64_t(shape.size()) != indices.getRank() || shape[0] != samples)
      return false;
    int64_t inner = int64_t(values->size()) / samples;
    return llvm::all_of(llvm::enumerate(*values), [&](auto entry) {
      return entry.value() == int64_t(entry.index()) / inner * length;
    });
  }
};

struct SimplifyGathers : autohet::impl::SimplifyGathersBase<SimplifyGathers> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<GatherToViews, GatherNdToViews, PairRows,
                 UnmergeRows<GatherOp>, UnmergeRows<EmbeddingOp>>(
        &getContext());
    autohet::populateScatterPatterns(patterns);
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

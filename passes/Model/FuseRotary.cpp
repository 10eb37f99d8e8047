//===- FuseRotary.cpp - recognise rotary position embeddings ---------------===//
//
// x * cos + rotate_half(x) * sin, where exporters hold cos and sin twice as
// wide as they need be: each angle stands there once for either element of its
// pair. That the two copies are equal is proved, by elements or by how they
// were made, before one of them is dropped.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "Rotary.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_FUSEROTARY
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

/// Which elements of the last dim are a pair.
enum class Pairs {
  Halves,    // i and i + R/2
  Neighbours // 2i and 2i + 1
};

//===----------------------------------------------------------------------===//
// Angles: from twice to once
//===----------------------------------------------------------------------===//

int64_t lastExtent(Value value) {
  auto type = typeOf(value);
  return type.getRank() ? type.getShape().back() : 1;
}

/// The shape with the last extent halved.
SmallVector<int64_t> halvedShape(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result(shape);
  result.back() /= 2;
  return result;
}

/// Whether a reshape makes [.., R] of [.., R/2, 2].
bool joinsNeighbours(ReshapeOp reshape) {
  ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
  return from.size() >= 2 && from.back() == 2 &&
         from[from.size() - 2] * 2 == lastExtent(reshape);
}

/// Whether a reshape makes [.., R/2, 2] of [.., R].
bool splitsNeighbours(ReshapeOp reshape) {
  ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape(),
                    to = reshape.getShape();
  return to.size() == from.size() + 1 && to.back() == 2 && !from.empty() &&
         from.drop_back() == to.drop_back(2);
}

/// Two equal tensors joined so that each element is beside its copy: the one
/// tensor, [.., R/2] or, for neighbours, [.., R/2, 1].
Value matchJoin(Value value, Pairs pairs) {
  Value joined = value;
  if (pairs == Pairs::Neighbours) {
    // [.., R/2, 2] as [.., R]
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape || !joinsNeighbours(reshape))
      return {};
    joined = reshape.getOperand();
    if (auto broadcast = joined.getDefiningOp<BroadcastOp>();
        broadcast && lastExtent(broadcast.getOperand()) == 1 &&
        typeOf(broadcast.getOperand()).getRank() == typeOf(joined).getRank() &&
        typeOf(broadcast.getOperand()).getShape().drop_back() ==
            typeOf(joined).getShape().drop_back())
      return broadcast.getOperand();
  }
  auto concat = joined.getDefiningOp<ConcatOp>();
  if (!concat || concat.getParts().size() != 2 ||
      int64_t(concat.getDim()) != typeOf(joined).getRank() - 1 ||
      concat.getParts()[0] != concat.getParts()[1])
    return {};
  return concat.getParts()[0];
}

/// Whether each element of a constant's last dim equals its partner.
bool isPaired(DenseElementsAttr dense, Pairs pairs) {
  if (dense.isSplat())
    return true;
  int64_t extent = cast<ShapedType>(dense.getType()).getShape().back();
  auto values = dense.getValues<APFloat>();
  for (int64_t i = 0, count = dense.getNumElements(); i < count; ++i) {
    int64_t row = i / extent * extent, column = i % extent;
    int64_t first =
        pairs == Pairs::Halves ? column % (extent / 2) : column / 2 * 2;
    if (!values[i].bitwiseIsEqual(values[row + first]))
      return false;
  }
  return true;
}

/// Whether an op works on each element of the last dim alike.
bool keepsLastDim(Operation *op) {
  if (isa<ElementwiseOpInterface>(op))
    return true;
  Value result = op->getResult(0);
  int64_t last = typeOf(result).getRank() - 1;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return lastExtent(reshape.getOperand()) == lastExtent(result);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return lastExtent(broadcast.getOperand()) == lastExtent(result);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return transpose.getPermutation().back() == last;
  if (auto slice = dyn_cast<SliceOp>(op))
    return slice.getSizes().back() == lastExtent(slice.getOperand()) &&
           slice.getStrides().back() == 1;
  if (auto gather = dyn_cast<GatherOp>(op))
    return int64_t(gather.getDim()) !=
           typeOf(gather.getOperand()).getRank() - 1;
  return isa<EmbeddingOp>(op);
}

/// Operands that do not have the last dim: they stay as they are.
bool lacksLastDim(Operation *op, OpOperand &operand) {
  if (isa<GatherOp, EmbeddingOp>(op))
    return operand.getOperandNumber() == 1;
  return lastExtent(operand.get()) == 1;
}

/// Whether `value`, [.., R], holds each angle twice.
bool holdsTwice(Value value, Pairs pairs) {
  if (!isa<FloatType>(typeOf(value).getElementType()) ||
      lastExtent(value) % 2 != 0)
    return false;
  DenseElementsAttr dense;
  if (matchPattern(value, m_Constant(&dense)))
    return isPaired(dense, pairs);
  if (matchJoin(value, pairs))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0 || !keepsLastDim(op))
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    return lacksLastDim(op, operand) || holdsTwice(operand.get(), pairs);
  });
}

/// Each angle of `value` once, [.., R/2], computed by ops of half the width.
Value holdOnce(Value value, Pairs pairs, PatternRewriter &rewriter) {
  Location loc = value.getLoc();
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  SmallVector<int64_t> half = halvedShape(shape);
  if (matchPattern(value, m_Constant())) {
    SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1);
    if (pairs == Pairs::Neighbours)
      strides.back() = 2;
    return rewriter.createOrFold<SliceOp>(loc, value, offsets, half, strides);
  }
  if (Value joined = matchJoin(value, pairs))
    return rewriter.createOrFold<ReshapeOp>(loc, joined, half);

  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands())
    operands.push_back(lacksLastDim(op, operand)
                           ? operand.get()
                           : holdOnce(operand.get(), pairs, rewriter));
  if (isa<ReshapeOp>(op))
    return rewriter.createOrFold<ReshapeOp>(loc, operands[0], half);
  if (isa<BroadcastOp>(op))
    return rewriter.createOrFold<BroadcastOp>(loc, operands[0], half);
  if (auto slice = dyn_cast<SliceOp>(op))
    return rewriter.createOrFold<SliceOp>(loc, operands[0], slice.getOffsets(),
                                          half, slice.getStrides());
  Operation *copy = rewriter.clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(typeOf(value).clone(half));
  return copy->getResult(0);
}

//===----------------------------------------------------------------------===//
// Rotations
//===----------------------------------------------------------------------===//

/// A regular range of the last dim of `root`, all other dims whole.
struct Range {
  Value root;
  int64_t offset, size, stride;

  /// Slices of slices are one range, so that two that belong together have one
  /// root: while parameters are classified, they are not one slice yet.
  static Range of(Value value) {
    // [.., R/2, 1] of [.., R/2, 2], which was [.., R]: every second element.
    if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
      auto slice = reshape.getOperand().getDefiningOp<SliceOp>();
      auto pairs =
          slice ? slice.getOperand().getDefiningOp<ReshapeOp>() : ReshapeOp();
      if (pairs && splitsNeighbours(pairs) && lastExtent(slice) == 1 &&
          typeOf(slice).getShape().drop_back() == reshape.getShape() &&
          slice.getSizes().drop_back() == pairs.getShape().drop_back()) {
        Range from = of(pairs.getOperand());
        return {from.root,
                from.offset + slice.getOffsets().back() * from.stride,
                lastExtent(value), 2 * from.stride};
      }
    }
    auto slice = value.getDefiningOp<SliceOp>();
    if (slice) {
      auto type = typeOf(slice.getOperand());
      int64_t last = type.getRank() - 1;
      bool whole = last >= 0;
      for (int64_t d = 0; d < last; ++d)
        whole &= slice.getSizes()[d] == type.getDimSize(d) &&
                 slice.getStrides()[d] == 1;
      if (whole) {
        Range from = of(slice.getOperand());
        return {from.root, from.offset + slice.getOffsets()[last] * from.stride,
                slice.getSizes()[last], slice.getStrides()[last] * from.stride};
      }
    }
    return {value, 0, lastExtent(value), 1};
  }

  bool operator==(const Range &other) const {
    return root == other.root && offset == other.offset && size == other.size &&
           stride == other.stride;
  }
  /// The first or the second elements of this range's pairs.
  Range part(bool first, Pairs pairs) const {
    int64_t half = size / 2;
    if (pairs == Pairs::Halves)
      return {root, first ? offset : offset + half * stride, half, stride};
    return {root, first ? offset : offset + stride, half, 2 * stride};
  }
};

bool isPart(Value value, Value x, bool first, Pairs pairs) {
  return Range::of(value) == Range::of(x).part(first, pairs);
}

/// The two parts that `value` is made of, first and second of each pair.
std::optional<std::pair<Value, Value>> matchParts(Value value, Pairs pairs) {
  Value joined = value;
  if (pairs == Pairs::Neighbours) {
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape || !joinsNeighbours(reshape))
      return std::nullopt;
    joined = reshape.getOperand();
  }
  auto concat = joined.getDefiningOp<ConcatOp>();
  if (!concat || concat.getParts().size() != 2 ||
      int64_t(concat.getDim()) != typeOf(joined).getRank() - 1)
    return std::nullopt;
  Value parts[2] = {concat.getParts()[0], concat.getParts()[1]};
  for (Value &part : parts) {
    if (pairs == Pairs::Halves) {
      if (lastExtent(part) * 2 != lastExtent(value))
        return std::nullopt;
      continue;
    }
    // [.., R/2, 1], which a reshape made of [.., R/2].
    auto reshape = part.getDefiningOp<ReshapeOp>();
    if (!reshape || lastExtent(part) != 1 ||
        typeOf(reshape.getOperand()).getShape() !=
            reshape.getShape().drop_back())
      return std::nullopt;
    part = reshape.getOperand();
  }
  return std::make_pair(parts[0], parts[1]);
}

struct Rotation {
  Value operand, cos, sin;
  Pairs pairs;
  bool twice;   // cos and sin hold each angle twice
  bool inverse; // by the negative angle
};

/// x, where `value` is -x.
Value matchNegation(Value value) {
  if (auto neg = value.getDefiningOp<NegOp>())
    return neg.getOperand();
  auto mul = value.getDefiningOp<MulOp>();
  if (mul && getSplatValue(mul.getRhs()) == -1)
    return mul.getLhs();
  if (mul && getSplatValue(mul.getLhs()) == -1)
    return mul.getRhs();
  return {};
}

/// Whether `value` is (-x2, x1): false, or (x2, -x1), which turns backwards:
/// true.
std::optional<bool> matchQuarterTurn(Value value, Value x, Pairs pairs) {
  auto parts = matchParts(value, pairs);
  if (!parts)
    return std::nullopt;
  auto [first, second] = *parts;
  if (Value negated = matchNegation(first))
    if (isPart(negated, x, false, pairs) && isPart(second, x, true, pairs))
      return false;
  if (Value negated = matchNegation(second))
    if (isPart(first, x, false, pairs) && isPart(negated, x, true, pairs))
      return true;
  return std::nullopt;
}

/// The two orders of a product's factors; none where `value` is none.
SmallVector<std::pair<Value, Value>, 2> factorOrders(Value value) {
  auto mul = value.getDefiningOp<MulOp>();
  if (!mul)
    return {};
  return {{mul.getLhs(), mul.getRhs()}, {mul.getRhs(), mul.getLhs()}};
}

/// x * cos + turn(x) * sin, the angles of either twice or not.
std::optional<Rotation> matchRotation(AddOp add) {
  for (auto [straight, turned] : {std::make_pair(add.getLhs(), add.getRhs()),
                                  std::make_pair(add.getRhs(), add.getLhs())})
    for (auto [x, cos] : factorOrders(straight))
      for (auto [turn, sin] : factorOrders(turned))
        for (Pairs pairs : {Pairs::Halves, Pairs::Neighbours}) {
          if (x.getType() != add.getType() || turn.getType() != add.getType())
            continue;
          auto inverse = matchQuarterTurn(turn, x, pairs);
          if (inverse)
            return Rotation{x, cos, sin, pairs, true, *inverse};
        }
  return std::nullopt;
}

/// Whether two values are computed alike. While parameters are classified each
/// use of a table is an op of its own.
bool isSame(Value a, Value b, unsigned depth = 4) {
  if (a == b)
    return true;
  Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  if (!left || !right || depth == 0 || left->getName() != right->getName() ||
      a.getType() != b.getType() ||
      left->getAttrDictionary() != right->getAttrDictionary() ||
      left->getNumOperands() != right->getNumOperands())
    return false;
  return llvm::all_of(
      llvm::zip_equal(left->getOperands(), right->getOperands()),
      [&](auto both) {
        return isSame(std::get<0>(both), std::get<1>(both), depth - 1);
      });
}

/// Whether `value` is x * angle.
bool isProduct(Value value, Value x, Value angle) {
  return llvm::any_of(factorOrders(value), [&](auto factors) {
    return factors.first == x && isSame(factors.second, angle);
  });
}

/// a and b, where `value` is a - b.
std::optional<std::pair<Value, Value>> matchDifference(Value value) {
  if (auto sub = value.getDefiningOp<SubOp>())
    return std::make_pair(sub.getLhs(), sub.getRhs());
  auto add = value.getDefiningOp<AddOp>();
  if (!add)
    return std::nullopt;
  if (Value negated = matchNegation(add.getRhs()))
    return std::make_pair(add.getLhs(), negated);
  if (Value negated = matchNegation(add.getLhs()))
    return std::make_pair(add.getRhs(), negated);
  return std::nullopt;
}

/// A rotation that lacks its operand: x1 and x2 are the two of each pair of
/// `whole`, a slice where they are not all of their tensor. Pairs of neighbours
/// may come out as halves, as DeepSeek's do.
struct RotationByParts {
  Rotation rotation;
  Range whole;
  bool isShuffled;
  Value first, second;
};

/// (x1 cos - x2 sin, x2 cos + x1 sin).
std::optional<RotationByParts> matchByParts(Value value, Pairs pairs) {
  auto parts = matchParts(value, pairs);
  auto difference = parts ? matchDifference(parts->first) : std::nullopt;
  auto add = parts ? parts->second.getDefiningOp<AddOp>() : AddOp();
  if (!difference || !add)
    return std::nullopt;
  for (auto [x1, cos] : factorOrders(difference->first))
    for (auto [x2, sin] : factorOrders(difference->second)) {
      if (x1.getType() != add.getType() || x2.getType() != add.getType())
        continue;
      Range first = Range::of(x1), second = Range::of(x2);
      auto wholeOf = [&](Pairs from) -> std::optional<Range> {
        Range whole = {first.root, first.offset, 2 * first.size, first.stride};
        if (from == Pairs::Neighbours)
          whole.stride /= 2;
        if (first == whole.part(true, from) &&
            second == whole.part(false, from))
          return whole;
        return std::nullopt;
      };
      std::optional<Range> whole = wholeOf(pairs);
      bool isShuffled = !whole && pairs == Pairs::Halves;
      if (isShuffled)
        whole = wholeOf(Pairs::Neighbours);
      if (!whole)
        continue;
      bool straight =
          isProduct(add.getLhs(), x2, cos) && isProduct(add.getRhs(), x1, sin);
      bool swapped =
          isProduct(add.getRhs(), x2, cos) && isProduct(add.getLhs(), x1, sin);
      if (straight || swapped)
        return RotationByParts{Rotation{{}, cos, sin, pairs, false, false},
                               *whole, isShuffled, x1, x2};
    }
  return std::nullopt;
}

LogicalResult replaceByRotary(PatternRewriter &rewriter, Operation *op,
                              const Rotation &rotation) {
  auto type = typeOf(rotation.operand);
  if (type.getRank() != 4)
    return failure();
  Value angles[2] = {rotation.cos, rotation.sin};
  SmallVector<int64_t> shape; // of both
  for (Value angle : angles) {
    ArrayRef<int64_t> own = typeOf(angle).getShape();
    auto both = broadcastShapes(shape, rotation.twice ? halvedShape(own)
                                                      : llvm::to_vector(own));
    if (failed(both))
      return failure();
    shape = *both;
  }
  SmallVector<int64_t> wanted = halvedShape(type.getShape());
  auto both = broadcastShapes(wanted, shape);
  if (failed(both) || *both != wanted || shape.back() != wanted.back())
    return failure();
  for (Value &angle : angles) {
    if (rotation.twice)
      angle = holdOnce(angle, rotation.pairs, rewriter);
    angle = rewriter.createOrFold<BroadcastOp>(op->getLoc(), angle, shape);
  }
  rewriter.replaceOpWithNewOp<RotaryOp>(
      op, rotation.operand, angles[0], angles[1],
      rotation.pairs == Pairs::Neighbours, rotation.inverse);
  return success();
}

struct FuseWhole : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    auto rotation = matchRotation(op);
    if (!rotation || !holdsTwice(rotation->cos, rotation->pairs) ||
        !holdsTwice(rotation->sin, rotation->pairs))
      return failure();
    return replaceByRotary(rewriter, op, *rotation);
  }
};

template <typename OpT, Pairs pairs>
struct FuseByParts : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    auto match = matchByParts(op.getResult(), pairs);
    if (!match)
      return failure();
    auto &[rotation, range, isShuffled, first, second] = *match;
    SmallVector<int64_t> sizes(typeOf(range.root).getShape());
    SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
    offsets.back() = range.offset;
    sizes.back() = range.size;
    strides.back() = range.stride;
    auto type = typeOf(op.getResult());
    if (type.getShape() != ArrayRef<int64_t>(sizes) || type.getRank() != 4)
      return failure();
    if (isShuffled)
      rotation.operand =
          ConcatOp::create(rewriter, op.getLoc(), ValueRange{first, second}, 3);
    else
      rotation.operand = rewriter.createOrFold<SliceOp>(
          op.getLoc(), range.root, offsets, sizes, strides);
    return replaceByRotary(rewriter, op, rotation);
  }
};

/// concat(rotary(x[:R]), x[R:]) -> rotary(x): only R elements are rotated.
struct AbsorbRest : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getParts().size() != 2)
      return failure();
    auto rotary = op.getParts()[0].getDefiningOp<RotaryOp>();
    if (!rotary || int64_t(op.getDim()) != 3)
      return failure();
    Range rotated = Range::of(rotary.getOperand());
    Range rest = Range::of(op.getParts()[1]);
    if (rotated.root != rest.root || rest.root.getType() != op.getType() ||
        rotated.offset != 0 || rotated.stride != 1 || rest.stride != 1 ||
        rest.offset != rotated.size ||
        lastExtent(rotary.getCos()) * 2 != rotated.size)
      return failure();
    rewriter.replaceOpWithNewOp<RotaryOp>(
        op, rest.root, rotary.getCos(), rotary.getSin(),
        rotary.getInterleaved(), rotary.getInverse());
    return success();
  }
};

struct FuseRotary : autohet::impl::FuseRotaryBase<FuseRotary> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseWhole, FuseByParts<ConcatOp, Pairs::Halves>,
                 FuseByParts<ReshapeOp, Pairs::Neighbours>, AbsorbRest>(
        &getContext());
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void autohet::visitRotaryTables(func::FuncOp function,
                                llvm::function_ref<void(Value)> visit) {
  function.walk([&](Operation *op) {
    if (auto add = dyn_cast<AddOp>(op)) {
      if (auto rotation = matchRotation(add)) {
        visit(rotation->cos);
        visit(rotation->sin);
      }
      return;
    }
    if (!isa<ConcatOp, ReshapeOp>(op))
      return;
    Pairs pairs = isa<ConcatOp>(op) ? Pairs::Halves : Pairs::Neighbours;
    auto match = matchByParts(op->getResult(0), pairs);
    if (!match)
      return;
    // Each of the four products has its own use of a table.
    auto parts = matchParts(op->getResult(0), pairs);
    for (Operation *part :
         {parts->first.getDefiningOp(), parts->second.getDefiningOp()})
      for (Value operand : part->getOperands()) {
        Value negated = matchNegation(operand);
        for (auto [x, angle] : factorOrders(negated ? negated : operand))
          if (isSame(angle, match->rotation.cos) ||
              isSame(angle, match->rotation.sin))
            visit(angle);
      }
  });
}

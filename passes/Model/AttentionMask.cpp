//===- AttentionMask.cpp - what a mask hides
//--------------------------------===//
//
// Finite fills are the subtle part. A score of -3.4e38 is as good as -inf while
// any other key of the row is visible: its exponential is 0 in either case. In
// a row that hides every key it is not: finite fills give the mean of all
// values, -inf gives NaN (or 0). So a finite fill becomes a condition only
// where each row is known to see something, as each does under causality alone;
// beside a padding mask that may hide the rest of a row, it stays a number.
//
//===----------------------------------------------------------------------===//

#include "AttentionMask.h"
#include "Match.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

/// No score in fp32 makes up for this: the exponential is 0.
static constexpr double kHidden = -1e9;
/// Adding a score to this changes nothing in fp32: adding is replacing.
static constexpr double kAbsorbing = -1e30;

static bool isMinusInfinity(double value) {
  return std::isinf(value) && value < 0;
}

/// The attention op broadcasts by itself.
static Value throughBroadcast(Value value) {
  while (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getOperand();
  return value;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

AttentionMask::Condition AttentionMask::read(Value value, bool negated) {
  value = throughBroadcast(value);
  while (auto inverse = value.getDefiningOp<NotOp>()) {
    negated = !negated;
    value = throughBroadcast(inverse.getOperand());
  }
  DenseElementsAttr dense;
  if (matchPattern(value, m_Constant(&dense)))
    return {{}, dense, negated};
  return {value, {}, negated};
}

/// Reads a constant's last two dims as [S, T], for all leading positions. False
/// where the condition is no constant.
bool AttentionMask::visit(
    const Condition &condition,
    llvm::function_ref<void(int64_t, int64_t, bool)> visitor) const {
  if (!condition.constant)
    return false;
  ArrayRef<int64_t> shape =
      cast<ShapedType>(condition.constant.getType()).getShape();
  int64_t rank = shape.size();
  int64_t rows = rank > 1 ? shape[rank - 2] : 1;
  int64_t columns = rank > 0 ? shape[rank - 1] : 1;
  auto values = llvm::to_vector(condition.constant.getValues<bool>());
  for (int64_t first = 0, count = values.size(); first < count;
       first += rows * columns)
    for (int64_t s = 0; s < queries; ++s)
      for (int64_t t = 0; t < keys; ++t) {
        int64_t at = first + (rows == 1 ? 0 : s) * columns;
        visitor(s, t, values[at + (columns == 1 ? 0 : t)] != condition.negated);
      }
  return true;
}

bool AttentionMask::hidesLike(const Condition &condition, double fill) const {
  if (isMinusInfinity(fill))
    return true;
  bool eachRowSees = true, sees = false;
  bool isConstant = visit(condition, [&](int64_t, int64_t t, bool visible) {
    sees = visible || (t > 0 && sees);
    if (t == keys - 1)
      eachRowSees &= sees;
  });
  return fill <= kHidden && isConstant && eachRowSees;
}

void AttentionMask::add(Condition condition) {
  auto both =
      condition.value ? condition.value.getDefiningOp<AndOp>() : AndOp();
  if (both && !condition.negated) {
    add(read(both.getLhs(), false));
    add(read(both.getRhs(), false));
    return;
  }
  bool all = true, triangle = true;
  bool isConstant = visit(condition, [&](int64_t s, int64_t t, bool visible) {
    all &= visible;
    triangle &= visible == (t <= s + keys - queries);
  });
  if (isConstant && triangle && !all)
    causal = true;
  if ((isConstant && (all || triangle)) ||
      llvm::is_contained(conditions, condition)) {
    simplified = true;
    return;
  }
  conditions.push_back(condition);
}

void AttentionMask::hide(const Condition &condition, double fill) {
  if (!isMinusInfinity(fill)) {
    finite.emplace_back(condition, fill);
    return;
  }
  simplified = true;
  add(condition);
}

/// Whether numbers that are added to scores may be low enough to hide keys:
/// something that large is in their making, or they come from outside.
static bool mayHide(Value value) {
  llvm::SmallDenseSet<Operation *> seen;
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!isa<FloatType>(typeOf(next).getElementType()))
      continue; // a condition hides by the floats that it selects
    if (!op)
      return true;
    DenseFPElementsAttr dense;
    if (matchPattern(next, m_Constant(&dense))) {
      if (llvm::any_of(dense.getValues<APFloat>(), [](const APFloat &element) {
            return std::abs(element.convertToDouble()) >= -kHidden;
          }))
        return true;
      continue;
    }
    if (seen.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  return false;
}

void AttentionMask::settle() {
  bool mayBeEmpty =
      llvm::any_of(conditions,
                   [](const Condition &other) { return bool(other.value); }) ||
      llvm::any_of(numbers, [](const Number &number) {
        return number.fill || mayHide(number.value);
      });
  for (auto &[condition, fill] : finite) {
    if (mayBeEmpty) {
      numbers.push_back({{}, 1, condition, fill});
      continue;
    }
    simplified = true;
    add(condition);
  }
  finite.clear();
}

void AttentionMask::addCondition(Value value, bool negated) {
  simplified |= throughBroadcast(value) != value;
  add(read(value, negated));
}

LogicalResult AttentionMask::addFill(Value value, bool negated, double fill) {
  Condition condition = read(value, negated);
  if (hidesLike(condition, fill)) {
    hide(condition, fill);
    return success();
  }
  if (!(fill <= kAbsorbing))
    return failure();
  numbers.push_back({{}, 1, condition, fill});
  return success();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// A constant of 0 and one other number: where it is 0, and the number.
static std::optional<std::pair<DenseElementsAttr, double>>
matchTwoValued(Value value) {
  DenseFPElementsAttr dense;
  if (!matchPattern(value, m_Constant(&dense)) || dense.empty())
    return std::nullopt;
  auto condition = cast<RankedTensorType>(dense.getType())
                       .clone(IntegerType::get(value.getContext(), 1));
  double fill = 0;
  SmallVector<bool> visible;
  for (const APFloat &element : dense.getValues<APFloat>()) {
    visible.push_back(element.isZero());
    if (element.isZero())
      continue;
    double number = element.convertToDouble();
    if (fill != 0 && fill != number)
      return std::nullopt;
    fill = number;
  }
  return std::make_pair(DenseElementsAttr::get(condition, visible), fill);
}

void AttentionMask::addNumbers(Value value, double scale) {
  simplified |= throughBroadcast(value) != value;
  value = throughBroadcast(value);
  if (auto sum = value.getDefiningOp<AddOp>()) {
    addNumbers(sum.getLhs(), scale);
    addNumbers(sum.getRhs(), scale);
    return;
  }
  // 0 where visible, something low elsewhere: rather a condition.
  if (auto select = value.getDefiningOp<SelectOp>()) {
    auto first = getSplatValue(select.getLhs());
    auto second = getSplatValue(select.getRhs());
    if (first && second && (*first == 0 || *second == 0)) {
      bool negated = *first != 0;
      Condition condition = read(select.getCondition(), negated);
      double fill = (negated ? *first : *second) * scale;
      if (hidesLike(condition, fill)) {
        hide(condition, fill);
        return;
      }
    }
  }
  if (auto constant = matchTwoValued(value)) {
    Condition condition{{}, constant->first, false};
    if (constant->second == 0) {
      simplified = true;
      return;
    }
    if (hidesLike(condition, constant->second * scale)) {
      hide(condition, constant->second * scale);
      return;
    }
  }
  numbers.push_back({value, scale, {}, std::nullopt});
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Value AttentionMask::withHeads(Value value, PatternRewriter &rewriter,
                               Location loc) const {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  if (hasHeads || shape.size() < 3)
    return value;
  shape.insert(shape.begin() + 1, 1);
  return rewriter.createOrFold<ReshapeOp>(loc, value, shape);
}

Value AttentionMask::materialize(const Condition &condition,
                                 PatternRewriter &rewriter,
                                 Location loc) const {
  Value value = condition.value;
  if (condition.constant)
    value = ConstantOp::create(rewriter, loc, condition.constant);
  if (condition.negated)
    value = rewriter.createOrFold<NotOp>(loc, value);
  return withHeads(value, rewriter, loc);
}

Value AttentionMask::build(PatternRewriter &rewriter, Location loc) const {
  auto scalar = [&](double number) {
    return createSplat(rewriter, loc,
                       RankedTensorType::get({}, rewriter.getF32Type()),
                       number);
  };
  Value condition, number;
  for (const Condition &next : conditions) {
    Value value = materialize(next, rewriter, loc);
    condition =
        condition ? rewriter.createOrFold<AndOp>(loc, condition, value) : value;
  }
  for (const Number &next : numbers) {
    Value value;
    if (next.fill)
      value = rewriter.createOrFold<SelectOp>(
          loc, materialize(next.condition, rewriter, loc), scalar(0),
          scalar(*next.fill));
    else
      value = withHeads(next.value, rewriter, loc);
    if (next.scale != 1)
      value = rewriter.createOrFold<MulOp>(loc, value, scalar(next.scale));
    number = number ? rewriter.createOrFold<AddOp>(loc, number, value) : value;
  }
  if (!condition || !number)
    return condition ? condition : number;
  return rewriter.createOrFold<SelectOp>(loc, condition, number,
                                         scalar(-INFINITY));
}

bool autohet::dependsOnTrained(Value value) {
  llvm::SmallDenseSet<Operation *> seen;
  SmallVector<Operation *> open;
  auto visit = [&](Value v) {
    if (Operation *op = v.getDefiningOp(); op && seen.insert(op).second)
      open.push_back(op);
  };
  visit(value);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (auto parameter = dyn_cast<ParameterOp>(op);
        parameter && parameter.isTrained())
      return true;
    for (Value operand : op->getOperands())
      visit(operand);
  }
  return false;
}

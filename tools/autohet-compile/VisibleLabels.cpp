//===- VisibleLabels.cpp - labels that a model could copy -------------------===//

#include "VisibleLabels.h"

#include "autohet/Dialect/Het/Het.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Whether the rows of a constant's last two dims are not all equal.
static bool hasUnlikeRows(DenseElementsAttr dense) {
  if (dense.isSplat())
    return false;
  ArrayRef<int64_t> shape = dense.getType().getShape();
  int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  auto values = dense.getValues<Attribute>();
  for (int64_t i = 0, count = dense.getNumElements(); i < count; ++i) {
    int64_t sameOfFirstRow =
        i / (rows * columns) * rows * columns + i % columns;
    if (values[i] != values[sameOfFirstRow])
      return true;
  }
  return false;
}

/// Whether a mask may treat one query otherwise than another: queries are its
/// last dim but one. What hides padding alone is the same for all of them.
static bool mayDependOnQuery(Value mask) {
  ArrayRef<int64_t> shape = shapeOf(mask);
  if (shape.size() < 2 || shape[shape.size() - 2] == 1)
    return false;
  DenseElementsAttr dense;
  if (matchPattern(mask, m_Constant(&dense)))
    return hasUnlikeRows(dense);
  Operation *op = mask.getDefiningOp();
  if (!op || !isa<het::BroadcastOp, het::ElementwiseOpInterface>(op))
    return true;
  return llvm::any_of(op->getOperands(), mayDependOnQuery);
}

Operation *autohet::findVisibleFuture(func::FuncOp model) {
  Operation *first = nullptr;
  bool mayHide = false;
  model.walk([&](Operation *op) {
    if (auto attention = dyn_cast<het::AttentionOp>(op)) {
      first = first ? first : op;
      mayHide |= attention.getCausal() ||
                 (attention.getMask() && mayDependOnQuery(attention.getMask()));
    }
    // Scores of an attention that was not recognised, by their square shape.
    if (isa<het::SoftmaxOp>(op)) {
      ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
      mayHide |= shape.size() > 2 && shape.back() == shape[shape.size() - 2];
    }
  });
  return mayHide ? nullptr : first;
}

bool autohet::hasLabelOfEachToken(func::FuncOp model) {
  SmallVector<ArrayRef<int64_t>> tokens, labels;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    auto kind = model.getArgAttrOfType<StringAttr>(i, het::kKindAttr);
    if (kind && kind.getValue() == "tokens")
      tokens.push_back(shapeOf(model.getArgument(i)));
    if (kind && kind.getValue() == "labels")
      labels.push_back(shapeOf(model.getArgument(i)));
  }
  return llvm::any_of(labels, [&](ArrayRef<int64_t> shape) {
    return llvm::is_contained(tokens, shape);
  });
}

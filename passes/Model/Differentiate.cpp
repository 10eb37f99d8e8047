//===- Differentiate.cpp - het-differentiate
//--------------------------------===//
//
// Reverse-mode differentiation of the loss by the trained parameters. What each
// op's gradients are, the ops say (DifferentiableOpInterface); here is only the
// order, the accumulation, and the proof that nothing was forgotten.
//
// The backward half follows the forward half in exactly its reverse order, and
// a parameter's gradient ends in its `het.gradient` as soon as it is complete.
// So activations die and gradients may leave in the order in which a pipeline
// wants them, without a scheduler's help.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace autohet {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet::het;

namespace {

bool isFloat(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Marks each op that an adjoint builds: whose adjoint it is, and that it is
/// one. Adjoints themselves need not know.
class BackwardMarker : public OpBuilder::Listener {
public:
  void setForwardOp(Operation *op) { forward = op; }
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    OpBuilder b(op->getContext());
    op->setLoc(NameLoc::get(b.getStringAttr("adjoint"), forward->getLoc()));
    op->setAttr(kPhaseAttr, b.getStringAttr("backward"));
    op->setAttr(kAdjointOfAttr, forward->getAttr(kIdAttr));
  }

private:
  Operation *forward = nullptr;
};

/// One function's differentiation.
class ReverseSweep {
public:
  ReverseSweep(func::FuncOp function)
      : function(function), block(function.front()),
        builder(function.getContext()) {
    builder.setListener(&marker);
    builder.setInsertionPoint(block.getTerminator());
  }

  LogicalResult run();

private:
  FailureOr<Value> findLoss();
  void separateUses();
  void sinkWeightChains();
  void numberOps();
  void findActiveValues(Value loss);
  LogicalResult visit(Operation *op);
  void accumulate(Value value, Value gradient);
  void finishParameter(ParameterOp op);
  void explainMissing();

  func::FuncOp function;
  Block &block;
  BackwardMarker marker;
  OpBuilder builder;
  llvm::DenseSet<Value> varied; // depends on a trained parameter
  llvm::DenseSet<Value> useful; // the loss depends on it
  llvm::DenseMap<Value, Value> gradients;
  llvm::DenseSet<Operation *> finished;
};

/// The first result, if it is a scalar called "loss".
FailureOr<Value> ReverseSweep::findLoss() {
  if (function.getNumResults() > 0) {
    auto type = dyn_cast<RankedTensorType>(function.getResultTypes().front());
    auto name = function.getResultAttrOfType<StringAttr>(0, kNameAttr);
    if (type && type.getRank() == 0 && type.getElementType().isF32() && name &&
        name.getValue() == "loss")
      return block.getTerminator()->getOperand(0);
  }
  return function.emitError(
      "has no loss to differentiate: the first result must be "
      "tensor<f32> with het.name = \"loss\", as het-attach-loss makes it");
}

/// One op a use, as `het.parameter` promises and CSE forgets: the gradients of
/// a tied parameter's uses may end up on different devices.
void ReverseSweep::separateUses() {
  for (auto op : llvm::make_early_inc_range(block.getOps<ParameterOp>())) {
    if (!op.isTrained())
      continue;
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    // The use list is in no order: go by the users' places.
    if (uses.size() < 2)
      continue;
    llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
      if (a->getOwner() == b->getOwner())
        return a->getOperandNumber() < b->getOperandNumber();
      return a->getOwner()->isBeforeInBlock(b->getOwner());
    });
    for (OpOperand *use : llvm::drop_begin(uses)) {
      Operation *copy = OpBuilder(op->getContext()).clone(*op);
      block.getOperations().insertAfter(op->getIterator(), copy);
      use->set(copy->getResult(0));
    }
  }
}

/// Moves parameters, and what is computed from nothing else, to their first
/// use: the gradients of ops at the function's top would otherwise be complete
/// only at the very end.
void ReverseSweep::sinkWeightChains() {
  llvm::DenseSet<Operation *> chain;
  for (Operation &op : block)
    if (isa<ParameterOp>(op) ||
        (op.getNumOperands() > 0 && op.getNumResults() > 0 &&
         isMemoryEffectFree(&op) &&
         llvm::all_of(op.getOperands(), [&](Value v) {
           return v.getDefiningOp() && chain.contains(v.getDefiningOp());
         })))
      chain.insert(&op);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!chain.contains(&op))
      continue;
    Operation *first = nullptr;
    for (Operation *user : op.getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    if (first)
      op.moveBefore(first);
  }
}

void ReverseSweep::numberOps() {
  OpBuilder b(function.getContext());
  int64_t next = 0;
  for (Operation &op : block.without_terminator())
    op.setAttr(kIdAttr, b.getI64IntegerAttr(next++));
}

/// Gradients flow only through values that are both varied and useful. Integers
/// and booleans end a chain: what is computed from a comparison is a constant
/// to calculus, as in PyTorch.
void ReverseSweep::findActiveValues(Value loss) {
  for (Operation &op : block) {
    auto parameter = dyn_cast<ParameterOp>(op);
    bool isVaried = parameter ? parameter.isTrained()
                              : llvm::any_of(op.getOperands(), [&](Value v) {
                                  return varied.contains(v);
                                });
    if (isVaried)
      for (Value result : op.getResults())
        if (isFloat(result))
          varied.insert(result);
  }
  useful.insert(loss);
  for (Operation &op : llvm::reverse(block))
    if (llvm::any_of(op.getResults(),
                     [&](Value v) { return useful.contains(v); }))
      for (Value operand : op.getOperands())
        if (isFloat(operand))
          useful.insert(operand);
}

void ReverseSweep::finishParameter(ParameterOp op) {
  marker.setForwardOp(op);
  GradientOp::create(builder, op.getLoc(), op.getNameAttr(),
                     gradients.lookup(op.getResult()), op.getOffsetsAttr(),
                     op.getGlobalShapeAttr());
  finished.insert(op);
}

void ReverseSweep::accumulate(Value value, Value gradient) {
  assert(gradient.getType() == value.getType() &&
         "an adjoint has its operand's type");
  Value &sum = gradients[value];
  sum =
      sum ? AddOp::create(builder, gradient.getLoc(), sum, gradient).getResult()
          : gradient;
}

LogicalResult ReverseSweep::visit(Operation *op) {
  SmallVector<Value> resultGradients;
  for (Value result : op->getResults())
    resultGradients.push_back(gradients.lookup(result));
  if (llvm::none_of(resultGradients, [](Value g) { return bool(g); }))
    return success();

  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(varied.contains(operand));
  if (!llvm::is_contained(wanted, true))
    return success();

  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError("has no adjoint, but the loss depends on a trained "
                           "parameter through it");
  marker.setForwardOp(op);
  SmallVector<Value> operandGradients(op->getNumOperands());
  if (failed(differentiable.buildAdjoint(builder, resultGradients, wanted,
                                         operandGradients)))
    return failure();
  for (auto [operand, gradient, isWanted] :
       llvm::zip_equal(op->getOperands(), operandGradients, wanted))
    if (isWanted && gradient)
      accumulate(operand, gradient);
  // Each parameter has one use, so its gradient is complete now.
  for (Value operand : op->getOperands())
    if (auto parameter = operand.getDefiningOp<ParameterOp>())
      if (gradients.contains(operand) && !finished.contains(parameter))
        finishParameter(parameter);
  return success();
}

/// "Every parameter has a gradient or a reason."
void ReverseSweep::explainMissing() {
  for (auto op : block.getOps<ParameterOp>()) {
    if (!op.isTrained() || finished.contains(op))
      continue;
    StringRef reason = "no differentiable path leads from it to the loss";
    op->setAttr(kNoGradientAttr, StringAttr::get(op.getContext(), reason));
    op.emitRemark("parameter '")
        << op.getName() << "' is not trained: " << reason;
  }
}

LogicalResult ReverseSweep::run() {
  FailureOr<Value> loss = findLoss();
  if (failed(loss))
    return failure();
  separateUses();
  sinkWeightChains();
  numberOps();
  findActiveValues(*loss);
  if (!varied.contains(*loss))
    return function.emitError("the loss depends on no trained parameter");

  // Collected first: visiting appends to the block.
  SmallVector<Operation *> forward;
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (llvm::any_of(op.getResults(), [&](Value v) {
          return varied.contains(v) && useful.contains(v);
        }))
      forward.push_back(&op);
  marker.setForwardOp((*loss).getDefiningOp());
  gradients[*loss] = createSplat(builder, (*loss).getLoc(),
                                 cast<RankedTensorType>((*loss).getType()), 1);
  for (Operation *op : forward)
    if (failed(visit(op)))
      return failure();
  explainMissing();

  // The 1 that starts the chain, where an adjoint had no use for it.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isBackward(&op) && isOpTriviallyDead(&op))
      op.erase();
  return success();
}

struct Differentiate : autohet::impl::DifferentiateBase<Differentiate> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(verifyStraightLine(function)))
      return signalPassFailure();
    for (Operation &op : function.front())
      if (isBackward(&op)) {
        op.emitError("is differentiated already");
        return signalPassFailure();
      }
    if (failed(ReverseSweep(function).run()))
      signalPassFailure();
  }
};

} // namespace

//===- AttachLoss.cpp - het-attach-loss
//-------------------------------------===//
//
// Turns a model into a training step's forward half: labels come in, the loss
// goes out first. The loss is a sum times the inverse of a count, because the
// mean is over the labels of the *global* batch, which no microbatch knows.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Het/LossTerms.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {
#define GEN_PASS_DEF_ATTACHLOSS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet::het;

namespace {

struct AttachLoss : autohet::impl::AttachLossBase<AttachLoss> {
  using AttachLossBase::AttachLossBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(verifyStraightLine(function)) || failed(attach(function)))
      signalPassFailure();
  }

  /// The number of the result that the loss is of: the one called `output`, or
  /// else the first float result of rank 2 or more.
  FailureOr<unsigned> findOutput(func::FuncOp function) {
    for (unsigned i = 0, e = function.getNumResults(); i < e; ++i) {
      auto type = dyn_cast<RankedTensorType>(function.getResultTypes()[i]);
      auto name = function.getResultAttrOfType<StringAttr>(i, kNameAttr);
      bool taken = output.empty() ? type && type.getRank() >= 2 &&
                                        isa<FloatType>(type.getElementType())
                                  : name && name.getValue() == output;
      if (!taken)
        continue;
      if (!type || !type.getElementType().isF32() || type.getRank() < 1)
        return function.emitError(
                   "the loss needs an output of f32 of rank 1 or more, but '")
               << (name ? name.getValue() : "") << "' is "
               << function.getResultTypes()[i];
      return i;
    }
    InFlightDiagnostic error =
        function.emitError("no output to compute the loss of: wanted ");
    if (output.empty())
      error << "a float output of rank 2 or more";
    else
      error << "one called '" << output << "'";
    error << ", found [";
    for (unsigned i = 0, e = function.getNumResults(); i < e; ++i) {
      auto name = function.getResultAttrOfType<StringAttr>(i, kNameAttr);
      error << (i ? ", " : "") << "'" << (name ? name.getValue() : "") << "' "
            << function.getResultTypes()[i];
    }
    return error << "]";
  }

  /// Adds the argument `role`, which is also its name.
  FailureOr<Value> addArgument(func::FuncOp function, StringRef role,
                               Type type) {
    OpBuilder b(function);
    unsigned index = function.getNumArguments();
    NamedAttrList attributes;
    attributes.set(kNameAttr, b.getStringAttr(role));
    attributes.set(kRoleAttr, b.getStringAttr(role));
    if (role == "labels") // cut with the inputs, not a scalar for all of them
      attributes.set(kBatchDimAttr, b.getI64IntegerAttr(0));
    if (failed(function.insertArgument(index, type,
                                       attributes.getDictionary(b.getContext()),
                                       function.getLoc())))
      return failure();
    return Value(function.getArgument(index));
  }

  /// The sum of what the model adds to its loss, or null. These results end
  /// here: no batch has them, only each microbatch.
  static Value takeTerms(func::FuncOp function, OpBuilder &b, Location loc) {
    Operation *terminator = function.front().getTerminator();
    Value sum;
    for (unsigned i = function.getNumResults(); i-- > 0;) {
      auto factor = function.getResultAttrOfType<FloatAttr>(i, kLossFactorAttr);
      if (!factor)
        continue;
      Value term = terminator->getOperand(i);
      term = MulOp::create(b, loc, term,
                           createSplat(b, loc, autohet::typeOf(term),
                                       factor.getValueAsDouble()));
      sum = sum ? AddOp::create(b, loc, sum, term).getResult() : term;
      terminator->eraseOperand(i);
      (void)function.eraseResult(i);
    }
    return sum;
  }

  /// Those that count.
  Value countLabels(OpBuilder &b, Location loc, Value labels) {
    RankedTensorType type = autohet::typeOf(labels);
    Value ignored = createSplat(
        b, loc, RankedTensorType::get({}, b.getI64Type()), double(ignoreIndex));
    Value counts =
        CompareOp::create(b, loc, ComparePredicate::ne, labels, ignored);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    return ReduceOp::create(b, loc, ReduceKind::sum,
                            CastOp::create(b, loc, counts, b.getF32Type()),
                            dims, /*keep=*/false);
  }

  LogicalResult attach(func::FuncOp function) {
    for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
      if (auto role = function.getArgAttrOfType<StringAttr>(i, kRoleAttr))
        if (role.getValue() != "input")
          return function.emitError("has a loss already: argument ")
                 << i << " has the role '" << role.getValue() << "'";
    bool isMse = loss == "mse";
    if (!isMse && loss != "cross-entropy")
      return function.emitError("unknown loss '")
             << loss << "', wanted cross-entropy or mse";
    FailureOr<unsigned> index = findOutput(function);
    if (failed(index))
      return failure();

    Operation *terminator = function.front().getTerminator();
    Value prediction = terminator->getOperand(*index);
    auto type = cast<RankedTensorType>(prediction.getType());
    OpBuilder b(terminator);
    auto labelsType = isMse ? type
                            : RankedTensorType::get(type.getShape().drop_back(),
                                                    b.getI64Type());
    auto scalarType = RankedTensorType::get({}, b.getF32Type());
    FailureOr<Value> labels = addArgument(function, "labels", labelsType);
    FailureOr<Value> inverseCount =
        addArgument(function, "inverse_label_count", scalarType);
    if (failed(labels) || failed(inverseCount))
      return failure();

    Location loc = NameLoc::get(b.getStringAttr("loss"));
    Value sum;
    if (isMse) {
      Value difference = SubOp::create(b, loc, prediction, *labels);
      Value square = MulOp::create(b, loc, difference, difference);
      auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
      sum = ReduceOp::create(b, loc, ReduceKind::sum, square, dims,
                             /*keep=*/false);
    } else {
      sum = CrossEntropyOp::create(b, loc, prediction, *labels,
                                   b.getI64IntegerAttr(ignoreIndex))
                .getLossSum();
    }
    Value mean = MulOp::create(b, loc, sum, *inverseCount);
    if (Value terms = takeTerms(function, b, loc)) {
      Value count =
          isMse ? createSplat(b, loc, scalarType, double(type.getNumElements()))
                : countLabels(b, loc, *labels);
      Value weight = MulOp::create(b, loc, count, *inverseCount);
      mean = AddOp::create(b, loc, mean, MulOp::create(b, loc, terms, weight));
    }
    terminator->insertOperands(0, mean);
    return function.insertResult(0, scalarType,
                                 b.getDictionaryAttr(b.getNamedAttr(
                                     kNameAttr, b.getStringAttr("loss"))));
  }
};

} // namespace

//===- VerifyModel.cpp - the fence after the Model phase --------------------===//
//
// What later phases rely on, checked in one place. The subtle rule: samples
// must not meet before the loss, or a batch could not be cut into microbatches.
// Each value is followed for which of its dims counts samples; an op through
// which an element of one sample could reach another is an error.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "autohet/Dialect/Het/LossTerms.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_VERIFYMODEL
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

/// Which dim of a value counts samples; nothing where no sample is in it.
using BatchDim = std::optional<int64_t>;

/// The dim of shape `to` that dim `dim` of `from` is after a reshape; nothing
/// where it is split or merged.
std::optional<int64_t> dimAfterReshape(ArrayRef<int64_t> from,
                                       ArrayRef<int64_t> to, int64_t dim) {
  int64_t before = 1, product = 1;
  for (int64_t extent : from.take_front(dim))
    before *= extent;
  for (auto [d, extent] : llvm::enumerate(to)) {
    if (product == before && extent == from[dim])
      return d;
    product *= extent;
  }
  return std::nullopt;
}

/// Whether a constant repeats itself along dim `dim`, as a folded broadcast of
/// positions to the batch does.
bool repeatsAlong(DenseElementsAttr dense, int64_t dim) {
  if (dense.isSplat())
    return true;
  ArrayRef<int64_t> shape = cast<ShapedType>(dense.getType()).getShape();
  int64_t inner = 1;
  for (int64_t extent : shape.drop_front(dim + 1))
    inner *= extent;
  auto repeats = [&](auto values, auto isEqual) {
    int64_t block = inner * shape[dim];
    for (int64_t i = 0, count = dense.getNumElements(); i < count; ++i)
      if (i % block >= inner && !isEqual(values[i], values[i - inner]))
        return false;
    return true;
  };
  if (isa<FloatType>(dense.getElementType()))
    return repeats(dense.getValues<APFloat>(),
                   [](const APFloat &left, const APFloat &right) {
                     return left.bitwiseIsEqual(right);
                   });
  return repeats(dense.getValues<APInt>(), std::equal_to<APInt>());
}

/// Whether all rows of dim `dim` are equal, whatever the parameters are: as in
/// a broadcast, and in what is made of one by ops that work on each row alike.
/// A dim that the value does not have (negative) has no rows to differ.
bool isUniform(Value value, int64_t dim) {
  if (dim < 0 || typeOf(value).getDimSize(dim) == 1 || getSplatValue(value))
    return true;
  DenseElementsAttr dense;
  if (matchPattern(value, m_Constant(&dense)))
    return repeatsAlong(dense, dim);
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  // Operands are aligned at the last dim.
  auto isUniformIn = [&](Value operand) {
    return isUniform(
        operand, dim - (typeOf(value).getRank() - typeOf(operand).getRank()));
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](BroadcastOp op) { return isUniformIn(op.getOperand()); })
      // Equal ids look up equal rows: one token type for every sample.
      .Case([&](EmbeddingOp op) {
        return dim < typeOf(op.getIds()).getRank() &&
               isUniform(op.getIds(), dim);
      })
      .Case([&](TransposeOp op) {
        return isUniform(op.getOperand(), op.getPermutation()[dim]);
      })
      .Case([&](ReshapeOp op) {
        auto source = dimAfterReshape(op.getShape(),
                                      typeOf(op.getOperand()).getShape(), dim);
        return source && isUniform(op.getOperand(), *source);
      })
      .Case([&](CumulativeSumOp op) {
        return dim != int64_t(op.getDim()) && isUniformIn(op.getOperand());
      })
      .Default([&](Operation *op) {
        return isa<ElementwiseOpInterface>(op) && !isa<DropoutOp>(op) &&
               llvm::all_of(op->getOperands(), isUniformIn);
      });
}

/// Follows the batch dim through a function.
class SampleTracking {
public:
  LogicalResult run(func::FuncOp function);

private:
  BatchDim of(Value value) const { return dims.lookup(value); }
  /// Whether a sample is in it, wherever.
  bool isOfSamples(Value value) const { return dims.contains(value); }
  /// The dim of the op's results, or failure after a diagnostic.
  FailureOr<BatchDim> follow(Operation *op);
  FailureOr<BatchDim> followAligned(Operation *op, ValueRange operands,
                                    int64_t rank);
  FailureOr<BatchDim> followMatmul(MatmulOp op);
  FailureOr<BatchDim> followReduce(ReduceOp op);
  FailureOr<BatchDim> followReshape(ReshapeOp op);
  FailureOr<BatchDim> followGather(GatherOp op);
  FailureOr<BatchDim> followGatherNd(GatherNdOp op);
  FailureOr<BatchDim> followScatterNd(ScatterNdOp op);
  FailureOr<BatchDim> followCrossEntropy(CrossEntropyOp op);
  FailureOr<BatchDim> followDropout(DropoutOp op);
  InFlightDiagnostic mixes(Operation *op) {
    return op->emitOpError("lets one sample reach another: ");
  }
  /// That `operand`, which no sample is in, is the same for every row of the
  /// batch, its dim `dim`.
  LogicalResult checkUniform(Operation *op, Value operand, int64_t dim) {
    if (isUniform(operand, dim))
      return success();
    InFlightDiagnostic error =
        op->emitOpError("treats samples unlike: operand ");
    error << operand.getType() << " has rows of its own along the batch, dim "
          << dim;
    if (auto parameter = operand.getDefiningOp<ParameterOp>())
      error.attachNote(parameter.getLoc())
          << "parameter '" << parameter.getName()
          << "' has a row for each sample; exporters fold lookups in a batch "
             "of fixed size to such constants: export with a symbolic batch";
    return error;
  }

  /// Whether no dim of any input counts samples.
  bool isOneSample() {
    return llvm::all_of(function.getArguments(), [&](BlockArgument argument) {
      auto dim = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                        kBatchDimAttr);
      return dim && dim.getInt() < 0;
    });
  }

  /// The loss, by which alone samples may meet: a sum, scaled by the label
  /// count.
  bool isLoss(ReduceOp op);

  /// Values of all samples of a microbatch, which lead to the loss alone.
  llvm::DenseSet<Value> joint;
  /// Of the values that samples are in; nothing where one sample alone has no
  /// dim of its own left.
  llvm::DenseMap<Value, BatchDim> dims;
  func::FuncOp function;
};

bool SampleTracking::isLoss(ReduceOp op) {
  auto isCount = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return false;
    auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      kRoleAttr);
    return role && role.getValue() == "inverse_label_count";
  };
  auto isScaling = [&](Operation *user) {
    return isa<MulOp>(user) && llvm::any_of(user->getOperands(), isCount);
  };
  return op.getKind() == ReduceKind::sum &&
         llvm::any_of(op->getUsers(), isScaling) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return isBackward(user) || isScaling(user);
         });
}

/// Operands that broadcast against each other, as in elementwise ops.
FailureOr<BatchDim> SampleTracking::followAligned(Operation *op,
                                                  ValueRange operands,
                                                  int64_t rank) {
  BatchDim result;
  for (Value operand : operands) {
    BatchDim dim = of(operand);
    if (!dim)
      continue;
    int64_t aligned = *dim + rank - typeOf(operand).getRank();
    // One sample alone cannot be mixed with others, wherever its dim of 1
    // stands.
    if (result && *result != aligned && typeOf(operand).getDimSize(*dim) == 1)
      continue;
    if (result && *result != aligned)
      return mixes(op) << "samples are counted by dim " << *result
                       << " of one operand and by dim " << aligned
                       << " of another";
    result = aligned;
  }
  if (!result)
    return result;
  for (Value operand : operands) {
    int64_t own = *result - (rank - typeOf(operand).getRank());
    if (!isOfSamples(operand) && failed(checkUniform(op, operand, own)))
      return failure();
  }
  return result;
}

FailureOr<BatchDim> SampleTracking::followMatmul(MatmulOp op) {
  BatchDim result;
  int64_t kept = op.getLhsBatch().size();
  for (bool left : {true, false}) {
    Value side = left ? op.getLhs() : op.getRhs();
    Value other = left ? op.getRhs() : op.getLhs();
    auto batch = left ? op.getLhsBatch() : op.getRhsBatch();
    auto otherBatch = left ? op.getRhsBatch() : op.getLhsBatch();
    auto contract = left ? op.getLhsContract() : op.getRhsContract();
    BatchDim dim = of(side);
    if (dim && llvm::is_contained(contract, *dim))
      return mixes(op) << "it sums over dim " << *dim << " of its "
                       << (left ? "lhs" : "rhs") << ", the batch";
    BatchDim own;
    for (int64_t d = 0, rank = typeOf(side).getRank(); d < rank; ++d) {
      if (llvm::is_contained(contract, d))
        continue;
      const auto *paired = llvm::find(batch, d);
      if (paired == batch.end()) {
        if (dim == d)
          own = kept;
        ++kept;
        continue;
      }
      if (dim != d)
        continue;
      int64_t pair = paired - batch.begin();
      own = pair;
      if (!isOfSamples(other)) {
        if (failed(checkUniform(op, other, otherBatch[pair])))
          return failure();
        continue;
      }
      if (of(other) != BatchDim(otherBatch[pair]) &&
          typeOf(side).getDimSize(d) != 1)
        return mixes(op) << "the batch of one operand, dim " << d
                         << ", is paired with dim " << otherBatch[pair]
                         << " of the other";
    }
    if (own && result && *own != *result)
      return mixes(op) << "each row of one operand's batch meets each of the "
                          "other's";
    if (own)
      result = own;
  }
  return result;
}

FailureOr<BatchDim> SampleTracking::followReduce(ReduceOp op) {
  BatchDim dim = of(op.getOperand());
  if (!dim)
    return dim;
  if (llvm::is_contained(op.getDims(), *dim)) {
    if (isLoss(op) || op->hasAttr(kOfMicrobatchAttr))
      return BatchDim();
    return mixes(op) << "it reduces dim " << *dim << ", the batch";
  }
  if (op.getKeep())
    return dim;
  return BatchDim(*dim - llvm::count_if(op.getDims(), [&](int64_t reduced) {
    return reduced < *dim;
  }));
}

FailureOr<BatchDim> SampleTracking::followReshape(ReshapeOp op) {
  BatchDim dim = of(op.getOperand());
  if (!dim)
    return dim;
  ArrayRef<int64_t> from = typeOf(op.getOperand()).getShape();
  BatchDim after = dimAfterReshape(from, op.getShape(), *dim);
  // One sample alone cannot be mixed with others.
  if (after || from[*dim] == 1)
    return after;
  return mixes(op) << "dim " << *dim << " of " << op.getOperand().getType()
                   << ", the batch, is no dim of " << op.getType();
}

FailureOr<BatchDim> SampleTracking::followGather(GatherOp op) {
  BatchDim operand = of(op.getOperand()), indices = of(op.getIndices());
  int64_t dim = op.getDim();
  if (operand && *operand == dim)
    return mixes(op) << "it looks rows up along dim " << dim << ", the batch";
  if (operand && indices)
    return mixes(op) << "each sample's indices look into all samples";
  if (indices)
    return BatchDim(dim + *indices);
  if (operand && *operand > dim)
    return BatchDim(*operand - 1 + typeOf(op.getIndices()).getRank());
  return operand;
}

FailureOr<BatchDim> SampleTracking::followGatherNd(GatherNdOp op) {
  BatchDim operand = of(op.getOperand()), indices = of(op.getIndices());
  int64_t paired = op.getBatchDims();
  int64_t tuple = typeOf(op.getIndices()).getShape().back();
  if ((operand && *operand < paired) || (indices && *indices < paired)) {
    int64_t dim = operand && *operand < paired ? *operand : *indices;
    for (Value side : op->getOperands()) {
      if (isOfSamples(side) && of(side) != BatchDim(dim))
        return mixes(op) << "its operands count samples by unlike dims";
      if (!isOfSamples(side) && failed(checkUniform(op, side, dim)))
        return failure();
    }
    return BatchDim(dim);
  }
  if (operand && *operand < paired + tuple)
    return mixes(op) << "it looks elements up along dim " << *operand
                     << ", the batch";
  if (operand && indices)
    return mixes(op) << "each sample's indices look into all samples";
  if (operand)
    return BatchDim(*operand - paired - tuple +
                    typeOf(op.getIndices()).getRank() - 1);
  return indices;
}

/// Samples stay apart where the batch is a dim of the slices that tuples point
/// to, in the operand and in the updates alike, and all samples use one list of
/// tuples.
FailureOr<BatchDim> SampleTracking::followScatterNd(ScatterNdOp op) {
  if (isOfSamples(op.getIndices()))
    return mixes(op) << "each sample's indices point into all samples";
  int64_t tuple = typeOf(op.getIndices()).getShape().back();
  int64_t toUpdates = typeOf(op.getIndices()).getRank() - 1 - tuple;
  BatchDim operand = of(op.getOperand()), updates = of(op.getUpdates());
  int64_t dim = operand ? *operand : *updates - toUpdates;
  if (dim < tuple)
    return mixes(op) << "it updates elements by their place along "
                     << (operand
                             ? "dim " + std::to_string(dim) + " of its operand"
                             : "dim " + std::to_string(*updates) +
                                   " of its updates")
                     << ", the batch";
  if (operand && updates && *updates - toUpdates != dim)
    return mixes(op) << "samples are counted by dim " << dim
                     << " of the operand and by dim " << *updates
                     << " of the updates";
  if (!operand && failed(checkUniform(op, op.getOperand(), dim)))
    return failure();
  if (!updates && failed(checkUniform(op, op.getUpdates(), dim + toUpdates)))
    return failure();
  return BatchDim(dim);
}

FailureOr<BatchDim> SampleTracking::followCrossEntropy(CrossEntropyOp op) {
  BatchDim logits = of(op.getLogits()), labels = of(op.getLabels());
  if (logits && *logits == typeOf(op.getLogits()).getRank() - 1)
    return mixes(op) << "it works along dim " << *logits << ", the batch";
  if (logits && labels && *logits != *labels)
    return mixes(op) << "samples are counted by dim " << *logits
                     << " of the logits and by dim " << *labels
                     << " of the labels";
  return logits;
}

/// A mask is drawn by the element's place in the whole batch, of which dim 0
/// counts the samples: elsewhere, each microbatch would draw it differently.
FailureOr<BatchDim> SampleTracking::followDropout(DropoutOp op) {
  BatchDim dim = of(op.getOperand());
  if (!isOfSamples(op.getOperand()))
    return op->emitOpError("draws one mask for all samples, which would change "
                           "with the microbatch");
  ArrayRef<int64_t> shape = op.getType().getShape();
  if (dim ? *dim != 0 : shape.empty() || shape.front() != 1)
    return op->emitOpError("draws a sample's mask by dim 0, but samples are ")
           << (dim ? "counted by dim " + std::to_string(*dim) : "not there");
  return dim;
}

FailureOr<BatchDim> SampleTracking::follow(Operation *op) {
  if (auto dropout = dyn_cast<DropoutOp>(op))
    return followDropout(dropout);
  if (llvm::none_of(op->getOperands(), [&](Value v) { return of(v); }))
    return BatchDim();
  using Result = FailureOr<BatchDim>;
  BatchDim first = of(op->getOperand(0));
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](MatmulOp matmul) { return followMatmul(matmul); })
      .Case([&](ReduceOp reduce) { return followReduce(reduce); })
      .Case([&](ReshapeOp reshape) { return followReshape(reshape); })
      .Case([&](GatherOp gather) { return followGather(gather); })
      .Case([&](GatherNdOp gather) { return followGatherNd(gather); })
      .Case([&](ScatterNdOp scatter) { return followScatterNd(scatter); })
      .Case([&](CrossEntropyOp loss) { return followCrossEntropy(loss); })
      .Case([&](CumulativeSumOp sum) -> Result {
        if (*first == int64_t(sum.getDim()))
          return mixes(op) << "it adds up along dim " << *first
                           << ", the batch";
        return first;
      })
      .Case([&](ArgReduceOp reduce) -> Result {
        int64_t dim = reduce.getDim();
        if (*first == dim)
          return mixes(op) << "it compares along dim " << dim << ", the batch";
        return BatchDim(*first - (*first > dim));
      })
      .Case([&](TopKOp top) -> Result {
        if (*first == typeOf(top.getOperand()).getRank() - 1)
          return mixes(op) << "it orders dim " << *first << ", the batch";
        return first;
      })
      .Case<SoftmaxOp, LayerNormOp, RmsNormOp>([&](auto) -> Result {
        if (first && *first == typeOf(op->getOperand(0)).getRank() - 1)
          return mixes(op) << "it works along dim " << *first << ", the batch";
        if (llvm::any_of(op->getOperands().drop_front(),
                         [&](Value operand) { return isOfSamples(operand); }))
          return mixes(op) << "its scale or shift is made of samples";
        return first;
      })
      .Case([&](EmbeddingOp embedding) -> Result {
        if (of(embedding.getTable()))
          return mixes(op) << "its table is made of samples";
        return of(embedding.getIds());
      })
      .Case([&](TransposeOp transpose) -> Result {
        const auto *at = llvm::find(transpose.getPermutation(), *first);
        return BatchDim(at - transpose.getPermutation().begin());
      })
      .Case([&](BroadcastOp broadcast) -> Result {
        return BatchDim(*first + broadcast.getType().getRank() -
                        typeOf(broadcast.getOperand()).getRank());
      })
      .Case([&](SliceOp slice) -> Result {
        if (slice.getSizes()[*first] ==
                typeOf(slice.getOperand()).getDimSize(*first) &&
            slice.getStrides()[*first] == 1)
          return first;
        return mixes(op) << "it takes a part of dim " << *first
                         << ", the batch";
      })
      .Case([&](ConcatOp concat) -> Result {
        Result dim = followAligned(op, op->getOperands(),
                                   typeOf(concat.getResult()).getRank());
        if (succeeded(dim) && *dim && **dim == int64_t(concat.getDim()))
          return mixes(op) << "it appends along dim " << **dim << ", the batch";
        return dim;
      })
      .Case<AttentionOp, RotaryOp>([&](auto) -> Result {
        Result dim = followAligned(op, op->getOperands(), 4);
        if (succeeded(dim) && *dim && **dim != 0)
          return mixes(op) << "samples are counted by dim " << **dim
                           << ", not by dim 0";
        return dim;
      })
      .Default([&](Operation *) -> Result {
        if (isa<ElementwiseOpInterface>(op))
          return followAligned(op, op->getOperands(),
                               typeOf(op->getResult(0)).getRank());
        return mixes(op) << "it is not known to keep them apart";
      });
}

LogicalResult SampleTracking::run(func::FuncOp func) {
  function = func;
  // The whole input is one sample.
  if (isOneSample()) {
    Builder b(function.getContext());
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      function.setResultAttr(i, kBatchDimAttr, b.getI64IntegerAttr(-1));
    return success();
  }
  // Nobody to meet; and which of the dims of extent 1 is the batch?
  auto size = function->getAttrOfType<IntegerAttr>(kBatchSizeAttr);
  if (size && size.getInt() == 1)
    return success();
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (auto dim =
            function.getArgAttrOfType<IntegerAttr>(number, kBatchDimAttr)) {
      if (dim.getInt() >= 0)
        dims[argument] = dim.getInt();
    } else if (auto role =
                   function.getArgAttrOfType<StringAttr>(number, kRoleAttr);
               role && role.getValue() == "labels") {
      dims[argument] = 0;
    }
  }
  bool failedAny = false;
  for (Operation &op : function.front().without_terminator()) {
    // Weight gradients are sums over samples: the adjoint of what was checked.
    if (isBackward(&op) || op.getNumResults() == 0)
      continue;
    auto dim = follow(&op);
    bool isJoint = op.hasAttr(kOfMicrobatchAttr) ||
                   llvm::any_of(op.getOperands(),
                                [&](Value v) { return joint.contains(v); });
    if (isJoint && succeeded(dim) && *dim)
      dim =
          mixes(&op) << "what is of the whole microbatch meets single samples";
    if (isJoint)
      joint.insert_range(op.getResults());
    failedAny |= failed(dim);
    if (failed(dim) || llvm::none_of(op.getOperands(),
                                     [&](Value v) { return isOfSamples(v); }))
      continue;
    for (Value result : op.getResults())
      dims[result] =
          *dim && **dim < typeOf(result).getRank() ? *dim : BatchDim();
  }
  // Who gathers an output's microbatches puts them together along this dim.
  Builder b(function.getContext());
  for (auto [i, value] :
       llvm::enumerate(function.front().getTerminator()->getOperands()))
    if (function.getResultAttrOfType<StringAttr>(i, kNameAttr))
      function.setResultAttr(i, kBatchDimAttr,
                             b.getI64IntegerAttr(of(value).value_or(-1)));
  return failure(failedAny);
}

//===----------------------------------------------------------------------===//
// The fence
//===----------------------------------------------------------------------===//

struct VerifyModel : autohet::impl::VerifyModelBase<VerifyModel> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(verifyOps(function)) || failed(verifyStraightLine(function)) ||
        failed(verifyGradients(function)) ||
        failed(SampleTracking().run(function)))
      signalPassFailure();
  }

  /// Only het, whose tensors are static.
  LogicalResult verifyOps(func::FuncOp function) {
    bool failedAny = false;
    function.walk([&](Operation *op) {
      if (op == function || isa<func::ReturnOp>(op))
        return;
      if (!isa_and_present<HetDialect>(op->getDialect())) {
        op->emitOpError("is left after the Model phase, which leaves het ops "
                        "only");
        failedAny = true;
      }
    });
    return failure(failedAny);
  }

  /// Once there are gradients: one of each trained parameter, or a reason.
  LogicalResult verifyGradients(func::FuncOp function) {
    llvm::StringSet<> names;
    function.walk([&](GradientOp op) { names.insert(op.getName()); });
    if (names.empty())
      return success();
    bool failedAny = false;
    function.walk([&](ParameterOp op) {
      if (!op.isTrained() || op->hasAttr(kNoGradientAttr) ||
          names.contains(op.getName()))
        return;
      op.emitOpError("has neither a gradient nor a reason to have none");
      failedAny = true;
    });
    return failure(failedAny);
  }
};

} // namespace

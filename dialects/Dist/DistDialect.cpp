//===- DistDialect.cpp - the dist dialect -----------------------------------===//
//
// Registration and verification. What one op cannot say (that a transfer has
// its other end) is the passes' to ensure.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Dist/Dist.h"

#include "autohet/Dialect/Het/Het.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::dist;

#include "autohet/Dialect/Dist/DistDialect.cpp.inc"
#include "autohet/Dialect/Dist/DistEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Dist/DistAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "autohet/Dialect/Dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "autohet/Dialect/Dist/DistOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// c1 and c2 of both attributes.
static LogicalResult verifyPlace(EmitError emitError, ArrayRef<int64_t> ranks,
                                 int64_t world, int64_t replica, int64_t stage,
                                 int64_t stages, int64_t microbatches,
                                 int64_t size, int64_t first, int64_t batch) {
  // What the runtime keeps in 32 bits.
  constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
  if (world > kMaxRanks)
    return emitError() << "a world of " << world << ", at most " << kMaxRanks;
  for (int64_t rank : ranks)
    if (rank < 0 || rank >= world)
      return emitError() << "rank " << rank << " in a world of " << world;
  if (replica < 0 || replica >= world)
    return emitError() << "replica " << replica << " in a world of " << world;
  if (stage < 0 || stage >= stages || stages > world)
    return emitError() << "stage " << stage << " of " << stages
                       << " in a world of " << world;
  if (microbatches < 1 || size < 1)
    return emitError() << "needs positive counts, but has " << microbatches
                       << " microbatches of " << size;
  if (microbatches > kMaxCount || size > kMaxCount || first < 0 ||
      first > kMaxCount || batch > kMaxCount ||
      first + microbatches * size > batch)
    return emitError() << microbatches << " microbatches of " << size
                       << " samples from sample " << first
                       << " on reach outside a batch of " << batch
                       << (batch > kMaxCount ? ", which is too large" : "");
  return success();
}

LogicalResult ProgramAttr::verify(EmitError emitError, StringAttr, int64_t rank,
                                  int64_t world, int64_t replica, int64_t stage,
                                  int64_t stages, int64_t microbatches,
                                  int64_t microbatchSize, int64_t firstSample,
                                  int64_t globalBatch) {
  return verifyPlace(emitError, rank, world, replica, stage, stages,
                     microbatches, microbatchSize, firstSample, globalBatch);
}

LogicalResult StageAttr::verify(EmitError emitError, int64_t replica,
                                int64_t stage, int64_t stages, int64_t world,
                                DenseI64ArrayAttr ranks,
                                DenseI64ArrayAttr weights, ArrayAttr devices,
                                int64_t microbatches, int64_t microbatchSize,
                                int64_t firstSample, int64_t globalBatch) {
  if (failed(verifyPlace(emitError, ranks.asArrayRef(), world, replica, stage,
                         stages, microbatches, microbatchSize, firstSample,
                         globalBatch)))
    return failure();
  if (ranks.empty() || weights.size() != ranks.size() ||
      int64_t(devices.size()) != ranks.size())
    return emitError() << "has " << ranks.size() << " ranks, " << weights.size()
                       << " weights and " << devices.size() << " devices";
  int64_t sum = 0; // of at most 2^16 weights: it cannot overflow
  for (int64_t weight : weights.asArrayRef()) {
    if (weight < 1)
      return emitError() << "a weight is " << weight << ", wanted 1 or more";
    sum += std::min(weight, int64_t(1) << 31);
  }
  if (sum >= int64_t(1) << 31) // stage_c4
    return emitError() << "the weights [" << weights.asArrayRef()
                       << "] add up to 2^31 or more";
  if (!llvm::all_of(devices, llvm::IsaPred<StringAttr>))
    return emitError() << "devices are named by strings, but are " << devices;
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  auto check = [&](StringRef name, bool accepts,
                   StringRef wanted) -> LogicalResult {
    if (attribute.getName() != name || accepts)
      return success();
    return op->emitOpError("attribute '")
           << name << "' must be " << wanted << ", but is "
           << attribute.getValue();
  };
  Attribute value = attribute.getValue();
  bool isFunction = isa<FunctionOpInterface>(op);
  auto nodes = dyn_cast<ArrayAttr>(value);
  bool areNames = nodes && llvm::all_of(nodes, llvm::IsaPred<StringAttr>);
  if (failed(check(kPlanAttr, isa<StringAttr>(value), "a string")) ||
      failed(check(kNodesAttr, areNames, "an array of strings")) ||
      failed(check(kLabelAttr, isa<StringAttr>(value), "a string")) ||
      failed(check(kStageAttr, isFunction && isa<StageAttr>(value),
                   "a #dist.stage of a function")))
    return failure();
  return check(kProgramAttr, isFunction && isa<ProgramAttr>(value),
               "a #dist.program of a function");
}

LogicalResult DistDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  if (!llvm::is_contained({kOffsetsAttr, kGlobalShapeAttr},
                          attribute.getName()))
    return success();
  auto function = dyn_cast<FunctionOpInterface>(op);
  auto type =
      function && result < function.getNumResults()
          ? dyn_cast<RankedTensorType>(function.getResultTypes()[result])
          : RankedTensorType();
  auto list = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  if (type && list && list.size() == type.getRank())
    return success();
  return op->emitOpError("result ")
         << result << ": '" << attribute.getName().getValue()
         << "' must be an array of i64, one a dim, but is "
         << attribute.getValue();
}

/// What a message is and how it is named.
static LogicalResult verifyTransfer(Operation *op, unsigned values,
                                    int64_t peer, int64_t channel) {
  if (values == 0)
    return op->emitOpError("moves no value, wanted at least one");
  if (peer < 0 || peer >= kMaxRanks)
    return op->emitOpError("has peer ")
           << peer << ", wanted 0 to " << kMaxRanks - 1;
  if (channel < 0 || channel >= kMaxChannels)
    return op->emitOpError("has channel ")
           << channel << ", wanted 0 to " << kMaxChannels - 1;
  return success();
}

LogicalResult SendOp::verify() {
  return verifyTransfer(*this, getValues().size(), int64_t(getPeer()),
                        int64_t(getChannel()));
}

LogicalResult RecvOp::verify() {
  return verifyTransfer(*this, getValues().size(), int64_t(getPeer()),
                        int64_t(getChannel()));
}

std::optional<int64_t> autohet::dist::findRun(ArrayRef<int64_t> wholeOffsets,
                                              ArrayRef<int64_t> wholeSizes,
                                              ArrayRef<int64_t> boxOffsets,
                                              ArrayRef<int64_t> boxSizes,
                                              Type element) {
  if (wholeSizes.empty())
    return 0;
  int64_t first = boxOffsets.front() - wholeOffsets.front();
  if (first < 0 || first + boxSizes.front() > wholeSizes.front() ||
      boxOffsets.drop_front() != wholeOffsets.drop_front() ||
      boxSizes.drop_front() != wholeSizes.drop_front())
    return std::nullopt;
  int64_t bytes =
      first * std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
  for (int64_t size : wholeSizes.drop_front())
    bytes *= size;
  if (bytes % kRunAlignment != 0)
    return std::nullopt;
  return bytes;
}

LogicalResult LocalGradientOp::verify() {
  return het::verifyBox(*this, getType(), getOffsets(), getGlobalShape());
}
LogicalResult UpdateOp::verify() {
  return het::verifyBox(*this, getType(), getOffsets(), getGlobalShape());
}
LogicalResult StoreParameterOp::verify() {
  return het::verifyBox(*this, getValue().getType(), getOffsets(),
                        getGlobalShape());
}

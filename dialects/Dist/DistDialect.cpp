//===- DistDialect.cpp - the dist dialect -----------------------------------===//
//
// Registration and verification. What one op cannot say (that a transfer has
// its other end) is the passes' to ensure.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Dist/Dist.h"

#include "autohet/Dialect/Het/Het.h"
#include "mlir/IR/DialectImplementation.h"
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
                                 int64_t world, int64_t stage, int64_t stages,
                                 int64_t microbatches, int64_t size,
                                 int64_t first, int64_t batch) {
  for (int64_t rank : ranks)
    if (rank < 0 || rank >= world)
      return emitError() << "rank " << rank << " in a world of " << world;
  if (stage < 0 || stage >= stages)
    return emitError() << "stage " << stage << " of " << stages;
  if (microbatches < 1 || size < 1)
    return emitError() << "needs positive counts, but has " << microbatches
                       << " microbatches of " << size;
  if (first < 0 || first + microbatches * size > batch)
    return emitError() << microbatches << " microbatches of " << size
                       << " samples from sample " << first
                       << " on reach outside a batch of " << batch;
  return success();
}

LogicalResult ProgramAttr::verify(EmitError emitError, StringAttr, int64_t rank,
                                  int64_t world, int64_t, int64_t stage,
                                  int64_t stages, int64_t microbatches,
                                  int64_t microbatchSize, int64_t firstSample,
                                  int64_t globalBatch) {
  return verifyPlace(emitError, rank, world, stage, stages, microbatches,
                     microbatchSize, firstSample, globalBatch);
}

LogicalResult StageAttr::verify(EmitError emitError, int64_t, int64_t stage,
                                int64_t stages, int64_t world,
                                DenseI64ArrayAttr ranks,
                                DenseI64ArrayAttr weights, ArrayAttr devices,
                                int64_t microbatches, int64_t microbatchSize,
                                int64_t firstSample, int64_t globalBatch) {
  if (failed(verifyPlace(emitError, ranks.asArrayRef(), world, stage, stages,
                         microbatches, microbatchSize, firstSample,
                         globalBatch)))
    return failure();
  if (ranks.empty() || weights.size() != ranks.size() ||
      int64_t(devices.size()) != ranks.size())
    return emitError() << "has " << ranks.size() << " ranks, " << weights.size()
                       << " weights and " << devices.size() << " devices";
  for (int64_t weight : weights.asArrayRef())
    if (weight < 1)
      return emitError() << "a weight is " << weight << ", wanted 1 or more";
  if (!llvm::all_of(devices, llvm::IsaPred<StringAttr>))
    return emitError() << "devices are named by strings, but are " << devices;
  return success();
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

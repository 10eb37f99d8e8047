//===- OnnxComputedConstants.cpp - what exporters have computed -----------===//
//
// Exporters compute what depends on constants alone and write the result, as
// large as it is used: a row that is looked up for each sample of a fixed batch
// is there as often, zeros that are only made to be written into are a tensor
// of zeros, and norms without a scale have ones. Trained as they lie there,
// none of them would be the model's.
//
//===----------------------------------------------------------------------===//

#include "OnnxParameters.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace autohet;
using onnx::InitializerOp;
using onnx::NodeOp;

bool autohet::mayBeComputed(InitializerOp constant) {
  return !constant.getName().contains('.') || constant.getName().front() == '/';
}

/// Whether `bytes` are `unit` again and again.
static bool isRepeated(StringRef bytes, size_t unit) {
  return bytes.drop_front(unit) == bytes.drop_back(unit);
}

/// Whether all that is done with a constant is to write into it.
static bool isWrittenInto(InitializerOp constant) {
  SmallVector<OpOperand *> uses = usesOf(constant);
  return !uses.empty() && llvm::all_of(uses, [](OpOperand *use) {
    auto node = dyn_cast<NodeOp>(use->getOwner());
    return node && node.getOpType().starts_with("Scatter") &&
           use->getOperandNumber() == 0;
  });
}

/// What all elements of a constant are that stands, as a Constant node, where a
/// norm has its scale or its bias, if it is there for a norm without one:
/// parameters are initializers.
static std::optional<float> neutralInNorm(InitializerOp constant) {
  SmallVector<OpOperand *> uses = usesOf(constant);
  if (uses.size() != 1 || !constant.getName().starts_with("/"))
    return std::nullopt;
  auto node = dyn_cast<NodeOp>(uses.front()->getOwner());
  if (!node || node.getOpType() != "InstanceNormalization")
    return std::nullopt;
  return uses.front()->getOperandNumber() == 1 ? 1.0f : 0.0f;
}

LogicalResult OnnxParameters::findFills() {
  for (auto &[op, parameter] : parameters) {
    auto constant = cast<InitializerOp>(op);
    auto type = cast<RankedTensorType>(constant.getType());
    std::optional<float> neutral = neutralInNorm(constant);
    if (!mayBeComputed(constant) || isListed(constant) ||
        !type.getElementType().isF32() ||
        (!neutral && !isWrittenInto(constant)))
      continue;
    auto bytes = readBytes(constant);
    if (!bytes)
      return failure();
    float fill = 0;
    if (!isRepeated(bytes->getBuffer(), sizeof fill))
      continue;
    memcpy(&fill, bytes->getBufferStart(), sizeof fill);
    if (!neutral || *neutral == fill)
      parameter.fill = fill;
  }
  return success();
}

LogicalResult OnnxParameters::findRepeated(int64_t batch) {
  for (auto &[op, parameter] : parameters) {
    auto constant = cast<InitializerOp>(op);
    auto type = cast<RankedTensorType>(constant.getType());
    if (!mayBeComputed(constant) || isListed(constant) || parameter.fill ||
        type.getRank() < 2 || type.getDimSize(0) != batch ||
        parameter.transposed)
      continue;
    auto bytes = readBytes(constant);
    if (!bytes)
      return failure();
    StringRef once = bytes->getBuffer();
    for (int64_t extent : type.getShape().drop_back()) {
      size_t slice = once.size() / extent;
      if (!isRepeated(once, slice))
        break;
      once = once.take_front(slice);
      ++parameter.repeatedDims;
    }
    if (parameter.repeatedDims)
      emitRemark(constant.getLoc())
          << "constant '" << constant.getName() << "' is the same for each of "
          << "the " << batch << " samples of the file; taken once, for all of "
          << "them";
  }
  return success();
}

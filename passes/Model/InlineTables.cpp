//===- InlineTables.cpp - masks and rotary tables become constants ----------===//
//
// Whether a mask is causality, and whether a table of angles holds each angle
// twice, is seen only in the elements. They are few, and nobody trains them, so
// the program may hold them.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Passes.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_INLINETABLES
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

namespace {

/// A causal mask of 2,048 positions; what is larger stays in its file.
constexpr int64_t kMostElements = int64_t(1) << 22;

/// Whether only elementwise ops and views use the parameter: then it is a mask
/// or a table, not a matrix that someone asked not to train.
bool isTable(ParameterOp parameter) {
  return llvm::all_of(parameter->getUsers(), [](Operation *user) {
    return isa<ElementwiseOpInterface, ReshapeOp, TransposeOp, BroadcastOp,
               SliceOp, ConcatOp, RotaryOp, AttentionOp>(user);
  });
}

/// The parameter's elements, in PyTorch's shape as in the file.
FailureOr<DenseElementsAttr> readElements(WeightSourceOp source) {
  RankedTensorType type = source.getStoredType();
  uint64_t bytes = type.getNumElements() * (type.getElementTypeBitWidth() / 8);
  uint64_t offset = source.getOffset(), size = 0;
  std::error_code problem = llvm::sys::fs::file_size(source.getFile(), size);
  // Mapped memory beyond a file's end would read as zeros.
  if (!problem && offset + bytes > size)
    return source.emitError("'")
           << source.getFile() << "' has " << size << " bytes, fewer than the "
           << offset + bytes << " that end with this tensor";
  auto buffer =
      llvm::MemoryBuffer::getFileSlice(source.getFile(), bytes, offset);
  if (problem || !buffer)
    return source.emitError("cannot read '")
           << source.getFile()
           << "': " << (problem ? problem : buffer.getError()).message();
  StringRef read = (*buffer)->getBuffer();
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(read.data(), read.size()));
}

struct InlineTables : autohet::impl::InlineTablesBase<InlineTables> {
  void runOnOperation() override {
    llvm::StringMap<WeightSourceOp> sources;
    for (auto source : getOperation().getOps<WeightSourceOp>())
      sources[source.getName()] = source;

    SmallVector<ParameterOp> tables;
    getOperation().walk([&](ParameterOp parameter) {
      auto found = sources.find(parameter.getName());
      if (parameter.isTrained() || found == sources.end() ||
          parameter.getOffsets() || found->second.getTransposed() ||
          parameter.getType() != found->second.getStoredType() ||
          parameter.getType().getNumElements() > kMostElements ||
          !isTable(parameter))
        return;
      tables.push_back(parameter);
    });
    for (ParameterOp parameter : tables) {
      auto elements = readElements(sources[parameter.getName()]);
      if (failed(elements))
        return signalPassFailure();
      OpBuilder builder(parameter);
      parameter->replaceAllUsesWith(
          ConstantOp::create(builder, parameter.getLoc(), *elements));
      parameter.erase();
    }
  }
};

} // namespace

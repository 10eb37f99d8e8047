//===- AddScratch.cpp - scratch memory for kernels --------------------------===//
//
// What a kernel needs besides operands and results is known once it is lowered;
// the arena holds it like any buffer, so that a program's memory is all
// planned.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Schedule/Passes.h"
#include "autohet/Support/Extents.h"

namespace autohet {
#define GEN_PASS_DEF_ADDSCRATCH
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

struct AddScratch : autohet::impl::AddScratchBase<AddScratch> {
  void runOnOperation() override {
    llvm::StringMap<int64_t> needs;
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (auto bytes =
              kernel->getAttrOfType<IntegerAttr>(exec::kScratchBytesAttr)) {
        if (bytes.getInt() < 0 || bytes.getInt() > kMaxElements) {
          kernel.emitOpError("asks for ")
              << bytes.getInt() << " bytes of scratch memory, wanted 0 to "
              << kMaxElements;
          return signalPassFailure();
        }
        needs[kernel.getName()] = bytes.getInt();
      }
    if (needs.empty())
      return;
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      addTo(program, needs);
  }

  void addTo(exec::ProgramOp program, const llvm::StringMap<int64_t> &needs) {
    SmallVector<exec::LaunchOp> launches;
    int64_t bytes = 0;
    program.walk([&](exec::LaunchOp launch) {
      if (int64_t need = needs.lookup(launch.getKernel())) {
        launches.push_back(launch);
        bytes = std::max(bytes, need);
      }
    });
    if (launches.empty())
      return;
    auto builder = OpBuilder::atBlockBegin(&program.getBody().front());
    auto type = RankedTensorType::get({bytes}, builder.getI8Type());
    Value scratch = exec::BufferOp::create(
        builder, program.getLoc(), exec::BufferType::get(type), kScratchBuffer,
        exec::Space::arena, 1, IntegerAttr());
    for (exec::LaunchOp launch : launches) {
      launch.getBuffersMutable().append(scratch);
      launch.setWriteCount(launch.getWriteCount() + 1);
    }
  }
};

} // namespace

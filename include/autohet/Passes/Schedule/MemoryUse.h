//===- MemoryUse.h - what a program's memory is for ------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE_MEMORYUSE_H
#define AUTOHET_PASSES_SCHEDULE_MEMORYUSE_H

#include "autohet/Dialect/Exec/Exec.h"

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace autohet {

/// Bytes. The arena is shared by liveness: its part is what is alive at the
/// peak, and what of it nothing uses then.
struct MemoryUse {
  int64_t parameters = 0, gradients = 0, states = 0;
  int64_t constants = 0;   ///< tables and scalars
  int64_t activations = 0; ///< kept for backward, and temporaries
  int64_t messages = 0;    ///< received and not yet used
  int64_t scratch = 0;     ///< of kernels
  int64_t gaps = 0;        ///< what placement lost

  int64_t total() const {
    return parameters + gradients + states + constants + arena();
  }
  int64_t arena() const { return activations + messages + scratch + gaps; }
};

/// Of a program whose memory is planned.
MemoryUse memoryUse(exec::ProgramOp program);

/// A buffer of a program, with all its slots.
struct HeldTensor {
  std::string name, what; ///< "block2.attn/matmul", "activation"
  int64_t bytes = 0;
};

/// What a program holds while it holds most, the largest first.
std::vector<HeldTensor> tensorsAtPeak(exec::ProgramOp program);

/// A line a device under a line of headings. `limit` gives a device's memory by
/// its name, 0 where it is unknown.
std::string formatMemoryUse(mlir::ModuleOp programs,
                            llvm::function_ref<double(llvm::StringRef)> limit);

} // namespace autohet

#endif

//===- KernelGroups.h - which ops become one kernel -------------*- C++ -*-===//
//
// exec-form-kernels makes kernels of these groups, the simulator times what it
// made, and the planner's units are priced by the groups that it would make:
// one grouping and one price for all three.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_SCHEDULE_KERNELGROUPS_H
#define AUTOHET_PASSES_SCHEDULE_KERNELGROUPS_H

#include "autohet/Cluster/Work.h"
#include "autohet/Dialect/Het/Het.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include <vector>

namespace autohet {

/// Ops that one kernel will hold, in program order; the kernel runs at the
/// last.
struct KernelGroup {
  llvm::SmallVector<mlir::Operation *> ops;
  mlir::Operation *last() const { return ops.back(); }
};

/// Of all ops that kernels compute; products of libraries, views and names are
/// in none.
std::vector<KernelGroup> groupKernels(mlir::Block &block);

/// What a kernel of these ops reads and writes. Constants are part of it.
struct KernelPorts {
  llvm::SetVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::Value> outputs;
};
KernelPorts portsOf(llvm::ArrayRef<mlir::Operation *> ops);

/// One call of a kernel of these ops, in the model or in the kernel itself.
Work workOf(llvm::ArrayRef<mlir::Operation *> ops);

/// Whether a product is of the type that libraries multiply; others are
/// kernels.
bool isLibraryProduct(het::MatmulOp product);

/// Whether it is nothing but a gradient of a parameter: the library adds it to
/// the sum of gradients.
bool isAddedUp(het::MatmulOp product);

/// The value whose memory `value` shares: reshapes are views.
inline mlir::Value rootOf(mlir::Value value) {
  while (auto reshape = value.getDefiningOp<het::ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

/// What a tensor takes in memory.
double storedBytes(mlir::RankedTensorType type);
inline double storedBytes(mlir::Value value) {
  return storedBytes(mlir::cast<mlir::RankedTensorType>(value.getType()));
}

/// Puts a transpose before each product whose operands are not two runs of
/// dims.
void normalizeMatmuls(mlir::func::FuncOp function);

} // namespace autohet

#endif

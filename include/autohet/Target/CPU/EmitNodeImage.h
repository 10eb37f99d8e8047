//===- EmitNodeImage.h - a node's programs as one object -------*- C++ -*-===//

#ifndef AUTOHET_TARGET_CPU_EMITNODEIMAGE_H
#define AUTOHET_TARGET_CPU_EMITNODEIMAGE_H

#include "autohet/Target/CPU/TargetOptions.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace autohet::cpu {

/// One device's share of a node's executable.
struct DeviceImage {
  std::string program;                    ///< the blob that encodeProgram wrote
  std::vector<std::string> kernelSymbols; ///< by kernel index: linker symbols
  std::vector<std::string> kernelNames;   ///< by kernel index: for messages
};

/// What `autohet_node_image` of a node holds.
struct NodeImage {
  std::string manifest; ///< the text of manifest.json
  std::vector<DeviceImage> devices;
  unsigned node = 0, nodeCount = 1;
};

/// An object file that defines `autohet_node_image` (runtime/program.h) and
/// the executable's `main`, and refers to the kernels by their symbols.
llvm::Expected<std::string> emitNodeImage(const NodeImage &image,
                                          const TargetOptions &target);

} // namespace autohet::cpu

#endif

//===- LinkNode.h - objects to a node's executable --------------*- C++ -*-===//

#ifndef AUTOHET_TARGET_CPU_LINKNODE_H
#define AUTOHET_TARGET_CPU_LINKNODE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace autohet::cpu {

struct LinkOptions {
  /// The static runtime; empty: found beside this tool, in the build tree or in
  /// an installation.
  std::string runtimeLibrary;
  /// The compiler driver that runs the linker; empty: clang-22, else clang.
  std::string driver;
  /// Makes a shared object without the runtime (for tests that load kernels).
  bool shared = false;
};

/// Links object files (given as contents) into the executable `output`.
/// `output` appears only if linking succeeds. The linker's own words are part
/// of the error.
llvm::Error linkNode(llvm::ArrayRef<llvm::StringRef> objects,
                     llvm::StringRef output, const LinkOptions &options = {});

/// Where the runtime library is, or an error that lists where it was sought.
llvm::Expected<std::string> findRuntimeLibrary();

} // namespace autohet::cpu

#endif

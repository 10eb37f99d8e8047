//===- BackEnd.h - LLVM's code generator for a triple ----------*- C++ -*-===//

#ifndef AUTOHET_LIB_TARGET_CPU_BACKEND_H
#define AUTOHET_LIB_TARGET_CPU_BACKEND_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Target;
} // namespace llvm

namespace autohet::cpu {

/// The back end, ready to be used; thread-safe.
llvm::Expected<const llvm::Target *> findBackEnd(llvm::StringRef triple);

} // namespace autohet::cpu

#endif

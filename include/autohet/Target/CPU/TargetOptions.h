//===- TargetOptions.h - which CPU to compile for ---------------*- C++ -*-===//
//
// A device kind names its target by triple, CPU and features; what it leaves
// out is taken from the machine that compiles.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TARGET_CPU_TARGETOPTIONS_H
#define AUTOHET_TARGET_CPU_TARGETOPTIONS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace autohet::cpu {

/// A target as LLVM names it.
struct TargetOptions {
  std::string triple;
  /// An LLVM CPU name: a baseline such as `x86-64-v3`, not a product.
  std::string cpu;
  /// LLVM's list of additions, `+avx2,+fma,...`.
  std::string features;
  /// Widest vectors worth using, in bits.
  unsigned preferVectorWidth = 256;

  /// One line that identifies the target; part of cache keys and of a
  /// program's hash.
  std::string str() const;
};

/// Completes `wanted`: an empty triple is the host's, an empty cpu and feature
/// list are the host's, features alone are beyond x86-64-v3. Fails if LLVM does
/// not know a name, or the target is not at least x86-64-v3.
llvm::Expected<TargetOptions> resolveTarget(TargetOptions wanted);

/// Everything that a machine must have to run the target's code, those features
/// included that its CPU stands for. LLVM's names, sorted.
std::vector<std::string> requiredFeatures(const TargetOptions &target);

} // namespace autohet::cpu

#endif

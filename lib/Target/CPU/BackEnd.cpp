//===- BackEnd.cpp - LLVM's code generator for a triple -------------------===//

#include "BackEnd.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

Expected<const Target *> autohet::cpu::findBackEnd(StringRef triple) {
  // Registration is global and not thread-safe: once, by whoever comes first.
  static const bool isInitialized =
      !InitializeNativeTarget() && !InitializeNativeTargetAsmPrinter();
  if (!isInitialized)
    return createStringError("LLVM was built without this machine's back end");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(Triple(triple), error);
  if (!target)
    return createStringError(error);
  return target;
}

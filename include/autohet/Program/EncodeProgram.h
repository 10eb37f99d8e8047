//===- EncodeProgram.h - exec programs as the runtime's tables -*- C++ -*-===//

#ifndef AUTOHET_PROGRAM_ENCODEPROGRAM_H
#define AUTOHET_PROGRAM_ENCODEPROGRAM_H

#include "autohet/Dialect/Exec/Exec.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace autohet {

/// What a program's header says and the IR of one program does not.
struct ProgramFacts {
  uint64_t structureHash = 0;
  unsigned node = 0, deviceIndex = 0;
  std::string optimizer = "sgd";    ///< sgd, adam, adamw, none
  std::string objective = "causal"; ///< causal, masked, given, none
  int64_t ignoreIndex = -100;
  int64_t sequenceLength = 0; ///< tokens a sample
};

/// The blob of tables that runtime/program.h describes. `kernelIndex` numbers
/// the kernels by name. Fails, after a located diagnostic, where the program
/// is not planned.
mlir::FailureOr<std::string>
encodeProgram(exec::ProgramOp program,
              const llvm::StringMap<unsigned> &kernelIndex,
              const ProgramFacts &facts);

} // namespace autohet

#endif

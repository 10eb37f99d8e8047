//===- JobFile.h - all options of a job in one file -------------*- C++ -*-===//
//
// What a team keeps under version control instead of a shell script:
//
//   model: gpt.onnx
//   output: out
//   compile:
//     cluster: cluster.yaml
//     global-batch: 64
//     tie: [lm_head.weight=wte.weight]
//   run:
//     data: text.bin
//     steps: 100
//     emulate: true
//
// `compile` holds the options of autohet-compile, `run` those of autohet-run
// and of the executables, under the names of the command line; the command line
// wins. Paths are relative to where the tool is started, as on the command
// line.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_JOB_JOBFILE_H
#define AUTOHET_JOB_JOBFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace autohet {

/// An option that a section may hold.
struct JobOption {
  std::string name;  ///< without dashes
  std::string value; ///< "": a flag; "[...]": the value may be left out
  std::string help;
  bool repeats = false; ///< may be given several times, as a list
};

/// One option as the file gives it.
struct JobArgument {
  std::string name;
  std::string text; ///< "--name=value" or "--name"
};

struct JobFile {
  std::string model, output; ///< "" where not given
  std::vector<JobArgument> compile, run;
};

/// The options of autohet-compile.
const std::vector<JobOption> &compileOptions();

/// Reads and checks a whole file, so that either tool refuses a mistake in the
/// other's section. `runOptions` are those of autohet-run.
llvm::Expected<JobFile> readJobFile(llvm::StringRef path,
                                    llvm::ArrayRef<JobOption> runOptions);

/// The arguments of a section whose option is not among `commandLine`, which
/// holds what the user typed.
std::vector<std::string>
argumentsBeside(llvm::ArrayRef<JobArgument> section,
                llvm::ArrayRef<std::string> commandLine);

} // namespace autohet

#endif

//===- ModelOptions.h - options of tools that take a model -----*- C++ -*-===//
//
// Several tools read models and clusters; they spell their options alike
// because they are these. An object of each class lives in the tool's command
// line, which gives it the category that --help lists it under.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_OPTIONS_MODELOPTIONS_H
#define AUTOHET_TOOLS_OPTIONS_MODELOPTIONS_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Passes/Model/ModelFile.h"
#include "autohet/Planner/CostModel.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"

namespace autohet {

class ModelOptions {
public:
  explicit ModelOptions(llvm::cl::OptionCategory &category);

  /// All but the path. `problem`: a number that is none.
  ModelFile read(std::string &problem) const;
  /// Those that mean nothing where a model is not trained.
  llvm::SmallVector<const llvm::cl::Option *> trainingOptions() const;
  /// What is wrong with them; empty if nothing.
  static std::string check(const ModelFile &file);
  /// Those that were given, for the command line of another tool.
  std::vector<std::string> arguments() const;
  bool isInference() const { return mode == "inference"; }

private:
  llvm::cl::opt<std::string> mode;
  llvm::cl::list<std::string> dims, ties, shared;
  llvm::cl::opt<std::string> batchDim, constants, freeze, loss, lossOutput,
      ignoreIndex, sequenceLength;
  llvm::cl::opt<bool> paddingMask, noDropout, verbose;
};

class ClusterOptions {
public:
  explicit ClusterOptions(llvm::cl::OptionCategory &category);

  ClusterSource read() const;
  /// As above.
  std::vector<std::string> arguments() const;

private:
  llvm::cl::opt<std::string> cluster, hostfile;
  llvm::cl::list<std::string> include;
};

/// The file of a model: of a folder, as models are downloaded, its config.json.
std::string findModelFile(llvm::StringRef path);

/// What a plan for inference is best in: `--objective=latency|throughput`. The
/// latter where nothing is said. Nothing for another text.
std::optional<PlanObjective> parsePlanObjective(llvm::StringRef text);

/// An option's text as a whole number. LLVM's own parser would say what is
/// wrong without the word "error" and without the option's dashes.
template <typename T>
T readNumber(const llvm::cl::opt<std::string> &option, std::string &problem) {
  T value = 0;
  if (!option.empty() && llvm::StringRef(option).getAsInteger(0, value))
    problem = ("option " + llvm::Twine(option.ArgStr.size() == 1 ? "-" : "--") +
               option.ArgStr + ": found '" + option.getValue() +
               "', wanted a whole number" +
               (std::is_unsigned_v<T> ? ", 0 or more" : ""))
                  .str();
  return value;
}

/// Parses the command line; false after errors that begin as those of `tool`.
bool parseCommandLine(int argc, char **argv, llvm::StringRef tool,
                      llvm::StringRef overview);

/// A full disk must not look like an empty result.
int exitStatus(mlir::LogicalResult result, llvm::StringRef tool);

/// "--flag=value: known are …" where `value` is none of `choices`, else empty.
std::string checkChoice(llvm::StringRef flag, llvm::StringRef value,
                        llvm::ArrayRef<llvm::StringRef> choices);

} // namespace autohet

#endif

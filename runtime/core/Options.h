//===- Options.h - a node's command line -------------------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CORE_OPTIONS_H
#define AUTOHET_RUNTIME_CORE_OPTIONS_H

#include "autohet/runtime/comm.h"
#include "autohet/runtime/optimizer.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace autohet::runtime {

enum class OnNonfinite { Stop, Skip };

/// Everything that the command line says. Strings are empty, numbers unset
/// where an option was not given and its default depends on the program.
struct NodeOptions {
  // What to run
  std::optional<int64_t> steps;
  std::optional<uint64_t> seed; // 0, or the checkpoint's
  bool init = false;
  double initDeviation = 0.02;
  bool oneAtATime = false;
  // What it reads
  std::string data, dataDtype;
  bool shuffled = true;
  std::vector<std::string> inputs; // FILE or NAME=FILE
  std::string labels, weights, weightsIndex;
  int64_t maskToken = -1;
  double maskProbability = 0.15;
  // Optimizer; unset: the checkpoint's, else PyTorch's defaults for the kind
  std::optional<double> learningRate, beta1, beta2, epsilon, weightDecay,
      clipNorm;
  std::optional<std::string> noDecay;
  std::optional<ah_schedule> schedule;
  std::optional<int64_t> warmupSteps, totalSteps;
  // What it writes
  std::string saveLoss, saveOutputs, saveGradients, saveWeights, metrics, trace;
  int64_t logEvery = 10;
  // Evaluation
  std::string evalData;
  int64_t evalEvery = 0, evalBatches = 8;
  // Checkpoints
  std::string checkpoints; // the folder
  int64_t checkpointEvery = 0, checkpointKeep = 3;
  bool resume = false;
  int64_t resumeStep = -1; // -1: the newest
  // When things go wrong
  OnNonfinite onNonfinite = OnNonfinite::Stop;
  double stallTimeout_s = 0, deathTimeout_s = 0;
  bool checkMessages = false;
  bool checkCopies = false;
  // Where it runs
  int64_t node = -1;
  uint32_t nodes = 0, masterPort = 0;
  std::string masterAddress, emulate;
  bool alone = false; // no supervisor; for debuggers
  // Instead of running
  bool help = false, version = false, describe = false, preflight = false;

  std::set<std::string> given; ///< names of options, as they were typed
  bool isGiven(const char *name) const { return given.count(name) != 0; }

  /// The options that change numbers, as "name=value" lines: ranks compare
  /// them.
  std::string numbersText;
};

/// One option as --help shows it: for tools that pass options on.
struct OptionInfo {
  const char *name;
  const char *value; ///< null: a flag; "[...]": the value may be left out
  const char *help;
  bool repeats; ///< may be given several times
};
std::vector<OptionInfo> optionInfos();
/// Those that a job file may hold: not the ones of a node's place in its job,
/// nor those that print something instead of running.
std::vector<OptionInfo> jobOptionInfos();

/// 1 to 65535; throws AH_ERROR_INPUT.
uint32_t parsePort(const std::string &text);

/// Throws where one option says nothing without another one, or contradicts it.
/// What depends on the program is the run's to say.
void checkTogether(const NodeOptions &options);

/// Throws AH_ERROR_INPUT naming the option, what was found and wanted.
NodeOptions parseOptions(int argc, char **argv);
std::string helpText(const char *program);

} // namespace autohet::runtime

#endif

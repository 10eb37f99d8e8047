//===- ModelOptions.cpp - options of tools that take a model --------------===//

#include "ModelOptions.h"
#include "autohet/Frontend/Config.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace autohet;

static std::vector<std::string> listOf(const cl::list<std::string> &values) {
  return {values.begin(), values.end()};
}

//===-- As another tool's command line ------------------------------------===//

static void addGiven(std::vector<std::string> &arguments,
                     const cl::opt<std::string> &option) {
  if (option.getNumOccurrences())
    arguments.push_back("--" + option.ArgStr.str() + "=" + option.getValue());
}
static void addGiven(std::vector<std::string> &arguments,
                     const cl::opt<bool> &option) {
  if (option)
    arguments.push_back("--" + option.ArgStr.str());
}
static void addGiven(std::vector<std::string> &arguments,
                     const cl::list<std::string> &option) {
  for (const std::string &value : option)
    arguments.push_back("--" + option.ArgStr.str() + "=" + value);
}

template <typename... Options>
static std::vector<std::string> givenOf(const Options &...options) {
  std::vector<std::string> arguments;
  (addGiven(arguments, options), ...);
  return arguments;
}

std::vector<std::string> ModelOptions::arguments() const {
  return givenOf(mode, dims, ties, shared, batchDim, constants, freeze, loss,
                 lossOutput, ignoreIndex, sequenceLength, paddingMask,
                 noDropout, verbose);
}

std::vector<std::string> ClusterOptions::arguments() const {
  return givenOf(cluster, hostfile, include);
}

//===-- What they are -----------------------------------------------------===//

ModelOptions::ModelOptions(cl::OptionCategory &category)
    : mode("mode",
           cl::desc("training, or inference: outputs only, of any element "
                    "type"),
           cl::init("training"), cl::value_desc("kind"), cl::cat(category)),
      dims("dim", cl::desc("Extent of a symbolic dim"),
           cl::value_desc("NAME=N"), cl::cat(category)),
      ties("tie", cl::desc("Make two constants of the file one parameter"),
           cl::value_desc("NAME=OTHER"), cl::cat(category)),
      shared("shared", cl::desc("Accept several uses of a parameter"),
             cl::value_desc("NAME"), cl::cat(category)),
      batchDim("batch-dim",
               cl::desc("Name of the symbolic dim that counts samples; none, "
                        "in inference: the input is one sample"),
               cl::value_desc("NAME"), cl::cat(category)),
      constants("constant", cl::desc("Constants that are not trained"),
                cl::value_desc("REGEX"), cl::cat(category)),
      freeze("freeze", cl::desc("Parameters without gradient and state"),
             cl::value_desc("REGEX"), cl::cat(category)),
      loss("loss", cl::desc("cross-entropy or mse"), cl::init("cross-entropy"),
           cl::cat(category)),
      lossOutput("loss-output",
                 cl::desc("Name of the output that the loss is of"),
                 cl::value_desc("NAME"), cl::cat(category)),
      ignoreIndex("ignore-index", cl::desc("The label that does not count"),
                  cl::value_desc("N"), cl::init("-100"), cl::cat(category)),
      sequenceLength("seq-len",
                     cl::desc("Tokens of a sample, for a config; default: the "
                              "longest that it allows"),
                     cl::value_desc("N"), cl::cat(category)),
      paddingMask("padding-mask",
                  cl::desc("Give a config's decoder the input attention_mask"),
                  cl::cat(category)),
      noDropout("no-dropout", cl::desc("Leave out a config's dropout"),
                cl::cat(category)),
      verbose("v", cl::desc("Say also which keys of a config change nothing"),
              cl::cat(category)) {}

ModelFile ModelOptions::read(std::string &problem) const {
  ModelFile file;
  if (problem.empty())
    problem = checkChoice("mode", mode, {"training", "inference"});
  file.inference = isInference();
  file.dims = listOf(dims), file.ties = listOf(ties);
  file.shared = listOf(shared);
  file.batch_dim = batchDim, file.constants = constants;
  file.sequence_length = readNumber<int64_t>(sequenceLength, problem);
  // 0 stands for the longest: nobody asks for it by that number.
  if (problem.empty() && !sequenceLength.empty() && file.sequence_length == 0)
    problem = "--seq-len 0: wanted 1 to 1048576 tokens";
  file.padding_mask = paddingMask, file.dropout = !noDropout;
  file.verbose = verbose;
  file.freeze = freeze, file.loss = loss, file.loss_output = lossOutput;
  file.ignore_index = readNumber<int64_t>(ignoreIndex, problem);
  return file;
}

llvm::SmallVector<const cl::Option *> ModelOptions::trainingOptions() const {
  // Lists have an operator& of their own.
  return {
      std::addressof(ties), std::addressof(shared), &freeze, &loss, &lossOutput,
      &ignoreIndex};
}

std::string autohet::findModelFile(llvm::StringRef path) {
  llvm::SmallString<128> config(path);
  llvm::sys::path::append(config, "config.json");
  if (llvm::sys::fs::is_directory(path) && llvm::sys::fs::exists(config))
    return config.str().str();
  return path.str();
}

std::optional<PlanObjective> autohet::parsePlanObjective(llvm::StringRef text) {
  return llvm::StringSwitch<std::optional<PlanObjective>>(text)
      .Case("latency", PlanObjective::Latency)
      .Cases({"throughput", ""}, PlanObjective::Throughput)
      .Default(std::nullopt);
}

std::string ModelOptions::check(const ModelFile &file) {
  if (file.sequence_length < 0 || file.sequence_length > kLongestSequence)
    return "--seq-len " + std::to_string(file.sequence_length) +
           ": wanted 1 to 1048576 tokens";
  return checkChoice("loss", file.loss, {"cross-entropy", "mse"});
}

ClusterOptions::ClusterOptions(cl::OptionCategory &category)
    : cluster("cluster",
              cl::desc("The machines (YAML, or Sailor's JSON); default: this "
                       "one, as one device"),
              cl::value_desc("file"), cl::cat(category)),
      hostfile("hostfile",
               cl::desc("The machines as lines 'host slots=N [type=T]', or as "
                        "Sailor's quotas"),
               cl::value_desc("file"), cl::cat(category)),
      include("include",
              cl::desc("Only devices that match: n0 (all of it), n1/2, gpu*"),
              cl::value_desc("patterns"), cl::cat(category)) {}

ClusterSource ClusterOptions::read() const {
  ClusterSource source;
  source.file = cluster, source.hostfile = hostfile;
  // Here, so that a job file's text may hold commas too.
  for (llvm::StringRef patterns : include)
    for (llvm::StringRef pattern : llvm::split(patterns, ','))
      source.include.push_back(pattern.trim().str());
  return source;
}

/// The option that is spelt most like `name`; empty if none is near.
static std::string findNearest(llvm::StringRef name) {
  std::string nearest;
  unsigned least = name.size() / 3 + 1;
  for (auto &[known, option] : cl::getRegisteredOptions()) {
    unsigned distance = name.edit_distance(known, true, least);
    if (option->getOptionHiddenFlag() != cl::NotHidden || known.size() < 3 ||
        distance >= least)
      continue;
    least = distance;
    nearest = known.str();
  }
  return nearest;
}

/// Says which options nobody knows. LLVM's parser takes them for groups of
/// options of one letter, and their values for files.
static bool knowsOptions(int argc, char **argv, llvm::StringRef tool) {
  auto &known = cl::getRegisteredOptions();
  bool all = true;
  for (int index = 1; index < argc; ++index) {
    llvm::StringRef word = argv[index];
    if (word == "--")
      break;
    if (!word.starts_with("-") || word == "-")
      continue;
    llvm::StringRef name = word.ltrim('-').split('=').first;
    auto found = known.find(name);
    if (found == known.end()) {
      std::string nearest = findNearest(name);
      llvm::errs() << tool << ": error: unknown option '"
                   << word.split('=').first << "'"
                   << (nearest.empty() ? "; see --help"
                                       : "; did you mean '--" + nearest + "'?")
                   << "\n";
      all = false;
      // Its value, if it has one, is not known to be one.
      if (!word.contains('=') && index + 1 < argc && argv[index + 1][0] != '-')
        ++index;
    } else if (found->second->getValueExpectedFlag() == cl::ValueRequired &&
               !word.contains('=')) {
      ++index;
    }
  }
  return all;
}

bool autohet::parseCommandLine(int argc, char **argv, llvm::StringRef tool,
                               llvm::StringRef overview) {
  if (!knowsOptions(argc, argv, tool))
    return false;
  std::string refused;
  llvm::raw_string_ostream stream(refused);
  bool areParsed = cl::ParseCommandLineOptions(argc, argv, overview, &stream);
  std::string prefix = (tool + ": ").str();
  for (llvm::StringRef line : llvm::split(refused, '\n'))
    if (line.consume_front(prefix))
      llvm::errs() << prefix << "error: " << line << "\n";
  return areParsed;
}

int autohet::exitStatus(mlir::LogicalResult result, llvm::StringRef tool) {
  llvm::outs().flush();
  std::error_code lost = llvm::outs().error();
  if (!lost)
    return mlir::failed(result);
  llvm::outs().clear_error();
  llvm::errs() << tool
               << ": error: cannot write to standard output: " << lost.message()
               << "\n";
  return 1;
}

std::string autohet::checkChoice(llvm::StringRef flag, llvm::StringRef value,
                                 llvm::ArrayRef<llvm::StringRef> choices) {
  if (llvm::is_contained(choices, value))
    return std::string();
  return ("--" + flag + "=" + value + ": known are " +
          llvm::join(choices, ", "))
      .str();
}

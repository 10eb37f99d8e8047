//===- autohet-profile.cpp - options of the profiler ------------------------===//

#include "Options/ModelOptions.h"
#include "Profile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace autohet;

namespace {

cl::OptionCategory inputs("Inputs"), measuring("Measuring"),
    outputOptions("Output");

struct CommandLine {
  cl::opt<std::string> model{cl::Positional,
                             cl::desc("<model.onnx | config.json>")};
  ClusterOptions machines{inputs};
  cl::list<std::string> compile{
      "compile-option",
      cl::desc("An option for autohet-compile, such as --dim=batch=4"),
      cl::value_desc("option"), cl::cat(inputs)};
  cl::list<std::string> run{
      "run-option", cl::desc("An option for autohet-run, such as --data=FILE"),
      cl::value_desc("option"), cl::cat(inputs)};
  cl::list<std::string> kinds{
      "kind", cl::desc("Kinds that this machine is; default: all"),
      cl::value_desc("name"), cl::CommaSeparated, cl::cat(measuring)};
  cl::list<std::string> microbatches{
      "microbatches",
      cl::desc("Samples a microbatch to measure; default 1,4,8"),
      cl::value_desc("N,N"), cl::CommaSeparated, cl::cat(measuring)};
  cl::opt<bool> emulate{"emulate",
                        cl::desc("Measure each kind at its emulated speed"),
                        cl::cat(measuring)};
  cl::opt<std::string> seconds{
      "seconds", cl::desc("After so many, a kind's next size is not begun"),
      cl::value_desc("N"), cl::init("40"), cl::cat(measuring)};
  cl::opt<std::string> output{
      "o", cl::desc("Write the cluster file with the fitted figures"),
      cl::value_desc("file"), cl::cat(outputOptions)};

  /// What is wrong; empty if nothing.
  std::string read(ProfileOptions &options) const {
    std::string problem;
    if (model.empty())
      return "what to profile? Give a model; see --help";
    options.model = model;
    options.machines = machines.read();
    options.kinds.assign(kinds.begin(), kinds.end());
    options.compile.assign(compile.begin(), compile.end());
    options.run.assign(run.begin(), run.end());
    options.emulate = emulate;
    options.secondsPerKind = readNumber<unsigned>(seconds, problem);
    for (const std::string &text : microbatches) {
      int64_t size = 0;
      if (llvm::StringRef(text).getAsInteger(10, size) || size < 1)
        return "option --microbatches: found '" + text +
               "', wanted whole numbers of 1 or more";
      options.microbatches.push_back(size);
    }
    if (options.microbatches.empty())
      options.microbatches = {1, 4, 8};
    if (problem.empty() && !options.machines.hasRates())
      return "which machines? Give --cluster or --hostfile; see --help";
    return problem;
  }
};

} // namespace

/// As it will be written: beside, then in its place.
static llvm::Error checkWritable(const std::string &path) {
  if (path == "-")
    return llvm::Error::success();
  if (llvm::sys::fs::is_directory(path))
    return llvm::createStringError("it is a folder");
  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(path + ".temp-stream-%%%%%%");
  return file ? file->discard() : file.takeError();
}

static llvm::Error writeCluster(const std::string &path,
                                const Cluster &cluster) {
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    os << "# Kinds as autohet-profile measured them.\n"
       << formatCluster(cluster);
    return llvm::Error::success();
  });
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  CommandLine line;
  if (!parseCommandLine(argc, argv, "autohet-profile",
                        "Measures what a model's units take on kinds of "
                        "devices, by short runs\n"))
    return 1;
  auto fail = [](const llvm::Twine &text) {
    llvm::errs() << "autohet-profile: error: " << text << "\n";
    return 1;
  };
  ProfileOptions options;
  if (std::string problem = line.read(options); !problem.empty())
    return fail(problem);
  // Before minutes of measuring.
  if (!line.output.empty())
    if (llvm::Error error = checkWritable(line.output))
      return fail(line.output + ": " + llvm::toString(std::move(error)));
  llvm::SmallString<128> folder;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("autohet-profile", folder))
    return fail("cannot make a folder for the runs: " + code.message());
  auto remove =
      llvm::scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  options.work = folder.str();
  llvm::Expected<Cluster> cluster = profile(options);
  if (!cluster)
    return fail(llvm::toString(cluster.takeError()));
  if (!line.output.empty())
    if (llvm::Error error = writeCluster(line.output, *cluster))
      return fail(line.output + ": " + llvm::toString(std::move(error)));
  return 0;
}

//===- CommandLine.cpp - what autohet-run was asked to do -----------------===//
//
// Few options are its own; the others belong to the executables and are only
// passed on. The runtime's parser checks them here already: with four nodes one
// error is better than four.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "autohet/Job/JobFile.h"
#include "core/Error.h"
#include "core/Options.h"
#include "core/StandardOutput.h"
#include "data/Mapped.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace autohet;
using namespace autohet::run;

void run::fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("autohet-run: error: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

int run::exitStatus(int status) {
  try {
    runtime::checkStandardOutput();
  } catch (const runtime::Error &error) {
    fail("%s", error.what());
  }
  return status;
}

static const char helpHead[] = R"(Usage: autohet-run FOLDER [options]
       autohet-run --job job.yaml [options]

Runs a compiled job: FOLDER is what autohet-compile wrote with -o. Without
anything else, all of the job's nodes run on this machine, one supervisor each.

  autohet-run out/ --data text.bin --data-dtype uint8 --steps 100
  autohet-run out/ --emulate --data text.bin --data-dtype uint8 --steps 100
  autohet-run out/ --print mpirun --data /data/text.bin --data-dtype uint8
  autohet-run out/ --preflight

SIGTERM or ^C: all ranks save a checkpoint (with --checkpoint) after the same
step, then the job ends with status 0. SIGUSR1: they save and go on. A second ^C
ends the job at once. Any death ends the job with status 1 and says who died.

Options of autohet-run:
  --job FILE              take options from a job file (YAML); the command line
                          wins. Its keys are model, output, compile and run:
                          the last two hold options by their names
  --print mpirun|srun|ssh print what to type to start the job on its nodes, one
                          process a node, instead of running it here
  --preflight             check CPU features, libraries, port, memory, disk and
                          weights of every node, on that node, instead of
                          running (nodes with an address: through ssh)
  --emulate               give local workers the cluster file's relative speeds
                          and links; prints the scale
  --master-port PORT      instead of a free one
  --help                  print this text
  --version               print the version

Options for the executables, passed on as they are:
)";

/// The part of the executables' help that says what may be passed on.
static void printHelp() {
  fputs(helpHead, stdout);
  std::string all = runtime::helpText("node");
  size_t begin = all.find("\n\n", all.find("  node --"));
  size_t end = all.find("\nWhere it runs");
  fputs(all.substr(begin + 1, end - begin - 1).c_str(), stdout);
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static const runtime::OptionInfo *findPassed(const std::string &name) {
  static const std::vector<runtime::OptionInfo> infos = runtime::optionInfos();
  for (const runtime::OptionInfo &info : infos)
    if (name == info.name)
      return &info;
  return nullptr;
}

/// What autohet-run sets itself.
static bool isReserved(const std::string &name) {
  return name == "node" || name == "nodes" || name == "master-addr";
}

/// What the section `run` of a job file may hold.
static std::vector<JobOption> jobRunOptions() {
  std::vector<JobOption> options = {{"emulate", "", ""},
                                    {"preflight", "", ""},
                                    {"print", "mpirun|srun|ssh", ""},
                                    {"master-port", "PORT", ""}};
  for (const runtime::OptionInfo &info : runtime::jobOptionInfos())
    options.push_back(
        {info.name, info.value ? info.value : "", info.help, info.repeats});
  return options;
}

namespace {

/// Walks arguments; knows which of them take the next one as their value.
class Parser {
public:
  Parser(CommandLine &line, std::string &jobPath)
      : line(line), jobPath(jobPath) {}

  void parse(const std::vector<std::string> &arguments) {
    for (at = 0, all = &arguments; at < arguments.size(); ++at)
      parseOne(arguments[at]);
  }

private:
  CommandLine &line;
  std::string &jobPath;
  const std::vector<std::string> *all = nullptr;
  size_t at = 0;

  std::string valueOf(const std::string &argument, const char *wanted) {
    size_t equals = argument.find('=');
    if (equals != std::string::npos)
      return argument.substr(equals + 1);
    if (++at == all->size())
      fail("option %s needs a value: %s", argument.c_str(), wanted);
    return (*all)[at];
  }

  void parseOne(const std::string &argument) {
    if (argument.compare(0, 2, "--") != 0) {
      if (argument == "-h")
        return parseOne("--help");
      if (!line.folder.empty())
        fail("unexpected argument '%s': the folder is '%s'", argument.c_str(),
             line.folder.c_str());
      line.folder = argument;
      return;
    }
    size_t equals = argument.find('=');
    std::string name =
        argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (name == "help") {
      printHelp();
      exit(exitStatus(0));
    }
    if (name == "version") {
      printf("autohet-run, program format %u\n", AH_PROGRAM_VERSION);
      exit(exitStatus(0));
    }
    if (name == "job") {
      jobPath = valueOf(argument, "a job file");
    } else if (name == "print") {
      insteadOfRunning(CommandLine::Print);
      line.launcher = valueOf(argument, "mpirun, srun or ssh");
      if (line.launcher != "mpirun" && line.launcher != "srun" &&
          line.launcher != "ssh")
        fail("option --print: found '%s', wanted mpirun, srun or ssh",
             line.launcher.c_str());
    } else if (name == "preflight" && equals == std::string::npos) {
      insteadOfRunning(CommandLine::Preflight);
    } else if (name == "emulate" && equals == std::string::npos) {
      line.emulate = true;
    } else if (name == "master-port") {
      try {
        line.masterPort = runtime::parsePort(valueOf(argument, "a port"));
      } catch (const runtime::Error &error) {
        fail("option --master-port: %s", error.what());
      }
    } else {
      pass(argument, name);
    }
  }

  void insteadOfRunning(CommandLine::What what) {
    if (line.what != CommandLine::Run && line.what != what)
      fail("options --print and --preflight contradict each other: each is "
           "done instead of running");
    line.what = what;
  }

  void pass(const std::string &argument, const std::string &name) {
    const runtime::OptionInfo *info = findPassed(name);
    if (isReserved(name))
      fail("option --%s is set by autohet-run itself; --print shows how to "
           "start nodes by hand",
           name.c_str());
    if (!info)
      fail("unknown option '--%s'; see --help", name.c_str());
    line.passed.push_back(argument);
    bool needsValue = info->value && info->value[0] != '[' &&
                      argument.find('=') == std::string::npos;
    if (needsValue)
      line.passed.push_back(valueOf(argument, info->value));
  }
};

} // namespace

static runtime::NodeOptions checkPassed(std::vector<std::string> passed) {
  std::vector<char *> argv = {const_cast<char *>("node")};
  for (std::string &argument : passed)
    argv.push_back(argument.data());
  try {
    return runtime::parseOptions(static_cast<int>(argv.size()), argv.data());
  } catch (const runtime::Error &error) {
    fail("%s", error.what());
  }
}

CommandLine run::parseCommandLine(int argc, char **argv) {
  CommandLine line;
  std::string jobPath, ignored;
  std::vector<std::string> typed(argv + 1, argv + argc);
  Parser(line, jobPath).parse(typed);
  if (!jobPath.empty()) {
    llvm::Expected<JobFile> job = readJobFile(jobPath, jobRunOptions());
    if (!job) {
      fprintf(stderr, "%s\n", llvm::toString(job.takeError()).c_str());
      exit(1);
    }
    std::vector<std::string> asTyped = std::move(line.passed);
    line.passed.clear();
    Parser(line, ignored).parse(argumentsBeside(job->run, typed));
    line.passed.insert(line.passed.end(), asTyped.begin(), asTyped.end());
    if (line.folder.empty())
      line.folder = job->output;
  }
  if (line.what == CommandLine::Preflight && line.emulate)
    fail("options --preflight and --emulate contradict each other: nothing "
         "runs that could be held back");
  if (line.folder.empty())
    fail("which job? Give the folder that autohet-compile wrote; see --help");
  runtime::NodeOptions options = checkPassed(line.passed);
  line.checkpoints = options.checkpoints;
  line.resumes = options.resume;
  char *absolute = realpath(line.folder.c_str(), nullptr);
  if (!absolute)
    fail("the folder '%s' cannot be opened: %s", line.folder.c_str(),
         strerror(errno));
  line.folder = absolute;
  free(absolute);
  return line;
}

//===----------------------------------------------------------------------===//
// Files and text
//===----------------------------------------------------------------------===//

runtime::Manifest run::readManifest(const std::string &folder) {
  std::string path = folder + "/manifest.json", error;
  runtime::Manifest manifest;
  runtime::MappedFile file;
  try {
    file = runtime::MappedFile(path);
  } catch (const runtime::Error &problem) {
    fail("%s (is it a folder of autohet-compile?)", problem.what());
  }
  if (!runtime::parseManifest({file.data(), file.size()}, manifest, error))
    fail("%s: %s", path.c_str(), error.c_str());
  for (const runtime::ManifestNode &node : manifest.nodes)
    if (access((folder + "/" + node.executable).c_str(), X_OK) != 0)
      fail("node %s: its executable '%s/%s' cannot be run: %s",
           node.name.c_str(), folder.c_str(), node.executable.c_str(),
           strerror(errno));
  return manifest;
}

std::string run::shellQuote(const std::string &text) {
  if (!text.empty() &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                             "XYZ0123456789_-+=./:,@%^") == std::string::npos)
    return text;
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

//===- OutputFiles.cpp - what a run writes besides checkpoints ------------===//

#include "core/OutputFiles.h"

#include "checkpoint/State.h"
#include "core/Error.h"
#include "data/Mapped.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace autohet::runtime {

/// Emptied only once it is ours: two runs in one file would be taken for one.
static FILE *openLines(const std::string &path, bool append) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  FILE *file = fd < 0 ? nullptr : fdopen(fd, "w");
  if (!file)
    fail(AH_ERROR_SYSTEM, "cannot write '%s': %s", path.c_str(),
         strerror(errno));
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return file; // a terminal, a pipe
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fclose(file);
    fail(AH_ERROR_INPUT, "'%s' is being written by another run", path.c_str());
  }
  if (append ? fseek(file, 0, SEEK_END) != 0 : ftruncate(fd, 0) != 0)
    fail(AH_ERROR_SYSTEM, "cannot write '%s': %s", path.c_str(),
         strerror(errno));
  return file;
}

LineFile::LineFile(const std::string &path, bool append)
    : file(openLines(path, append), fclose), path(path) {}

void LineFile::write(const std::string &line) {
  if (fprintf(file.get(), "%s\n", line.c_str()) < 0 || fflush(file.get()) != 0)
    fail(AH_ERROR_NO_SPACE, "cannot write '%s': %s", path.c_str(),
         strerror(errno));
}

std::string StepFile::pathOf(uint64_t step) const {
  if (placeholder == std::string::npos)
    return path;
  return std::string(path).replace(placeholder, strlen("{step}"),
                                   std::to_string(step));
}

std::string tracePath(const NodeOptions &options, const Program &program) {
  std::string path = options.trace;
  if (program.header().world_size == 1)
    return path;
  size_t dot = path.rfind('.'), slash = path.rfind('/');
  bool hasEnding =
      dot != std::string::npos && (slash == std::string::npos || dot > slash);
  return path.insert(hasEnding ? dot : path.size(),
                     format(".rank%u", program.header().rank));
}

static void check(const char *option, const std::string &value,
                  const std::function<void()> &attempt) {
  if (value.empty())
    return;
  try {
    attempt();
  } catch (const Error &error) {
    fail(error.status, "option --%s: %s", option, error.what());
  }
}

/// One name for each file, whether it is there or not yet.
static std::string canonical(const std::string &path) {
  auto real = [](const std::string &of) {
    std::unique_ptr<char, decltype(&free)> found(realpath(of.c_str(), nullptr),
                                                 free);
    return std::string(found ? found.get() : "");
  };
  if (std::string whole = real(path); !whole.empty())
    return whole;
  size_t slash = path.rfind('/');
  std::string folder =
      real(slash == std::string::npos ? "." : path.substr(0, slash + 1));
  return folder + "/" + path.substr(slash == std::string::npos ? 0 : slash + 1);
}

/// Two options that write one file would undo each other, and one that writes
/// what another one reads destroys the run's own input.
static void checkDistinct(const NodeOptions &o) {
  using Use = std::pair<const char *, std::string>;
  std::vector<Use> reads = {{"data", o.data},
                            {"eval-data", o.evalData},
                            {"labels", o.labels},
                            {"weights-index", o.weightsIndex}};
  for (const std::string &input : o.inputs)
    reads.push_back({"inputs", input.substr(input.find('=') + 1)});
  // --weights may be replaced: it is read whole, and the new file is put in its
  // place.
  const Use writes[] = {{"save-loss", o.saveLoss},
                        {"metrics", o.metrics},
                        {"trace", o.trace},
                        {"save-weights", o.saveWeights},
                        {"save-outputs", o.saveOutputs},
                        {"save-gradients", o.saveGradients}};
  std::map<std::string, const char *> used;
  for (auto &[option, path] : reads)
    if (!path.empty())
      used.emplace(canonical(path), option);
  for (auto &[option, path] : writes) {
    struct stat about;
    bool isFile = !path.empty() &&
                  (stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode));
    if (!isFile)
      continue; // a terminal, a pipe
    auto [other, isNew] = used.emplace(canonical(path), option);
    if (!isNew)
      fail(AH_ERROR_INPUT, "options --%s and --%s: both are '%s'",
           other->second, option, path.c_str());
  }
}

void checkOutputs(const NodeOptions &options, const Program &program) {
  checkDistinct(options);
  check("trace", options.trace,
        [&] { checkOpens(tracePath(options, program)); });
  check("checkpoint", options.checkpoints, [&] {
    checkCheckpointFolder(options.checkpoints, !options.resume,
                          program.header().rank);
  });
  if (program.header().rank != 0)
    return;
  check("save-loss", options.saveLoss, [&] { checkOpens(options.saveLoss); });
  check("metrics", options.metrics, [&] { checkOpens(options.metrics); });
  check("save-weights", options.saveWeights,
        [&] { checkWritable(options.saveWeights); });
  // Any step's will do: they lie in one folder unless the number is in its
  // name.
  check("save-outputs", options.saveOutputs,
        [&] { checkWritable(StepFile(options.saveOutputs).pathOf(0)); });
  check("save-gradients", options.saveGradients,
        [&] { checkWritable(StepFile(options.saveGradients).pathOf(0)); });
}

} // namespace autohet::runtime

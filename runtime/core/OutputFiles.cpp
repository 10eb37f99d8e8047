//===- OutputFiles.cpp - what a run writes besides checkpoints ------------===//

#include "core/OutputFiles.h"

#include "checkpoint/State.h"
#include "core/Error.h"
#include "data/Mapped.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
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

void checkOutputs(const NodeOptions &options, const Program &program) {
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

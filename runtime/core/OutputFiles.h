//===- OutputFiles.h - what a run writes besides checkpoints -----*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CORE_OUTPUTFILES_H
#define AUTOHET_RUNTIME_CORE_OUTPUTFILES_H

#include "core/Options.h"
#include "core/Program.h"

#include <cstdio>
#include <memory>
#include <string>

namespace autohet::runtime {

/// A file of JSON lines, one flushed line at a time.
class LineFile {
public:
  LineFile() = default;
  LineFile(const std::string &path, bool append);
  explicit operator bool() const { return file != nullptr; }
  void write(const std::string &line);

private:
  std::unique_ptr<FILE, int (*)(FILE *)> file{nullptr, fclose};
  std::string path;
};

/// A file of one step's tensors: of the first step's, or of every step's, in a
/// file each, where "{step}" stands in its path.
class StepFile {
public:
  explicit StepFile(const std::string &path)
      : path(path), placeholder(path.find("{step}")) {}
  bool empty() const { return path.empty(); }
  bool isPerStep() const { return placeholder != std::string::npos; }
  /// Whether there is one of `step`, in a run that begins with `firstStep`.
  bool holds(uint64_t step, uint64_t firstStep) const {
    return !path.empty() && (step == firstStep || isPerStep());
  }
  std::string pathOf(uint64_t step) const;

private:
  std::string path;
  size_t placeholder;
};

/// Where this rank's trace goes: with several ranks, a file each.
std::string tracePath(const NodeOptions &options, const Program &program);

/// Tries every place that this rank will write to, before the first step: a
/// wrong one would otherwise show after hours of work. Throws with the option.
void checkOutputs(const NodeOptions &options, const Program &program);

} // namespace autohet::runtime

#endif

//===- Trace.h - what a device did, and when ---------------------*- C++ -*-===//
//
// Written in Chrome's trace format, which Perfetto opens. Recording appends to
// a vector of its own per stream; text is formed at the end of the run.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_TRACE_TRACE_H
#define AUTOHET_RUNTIME_TRACE_TRACE_H

#include "core/Program.h"

#include <mutex>
#include <string>
#include <vector>

namespace autohet::runtime {

/// CLOCK_MONOTONIC.
uint64_t monotonicNs();

class Trace {
public:
  explicit Trace(const Program &program);

  /// By the thread that walks `stream`.
  void command(uint32_t stream, const ah_command &command, uint64_t step,
               int64_t microbatch, uint64_t beginNs, uint64_t endNs);
  /// From any thread.
  void transfer(const char *name, bool isSend, uint32_t peer, uint64_t bytes,
                uint64_t step, int64_t microbatch, uint64_t beginNs,
                uint64_t endNs);
  /// Throws where the file cannot be written.
  void write(const std::string &path) const;

private:
  struct Slice {
    const char *name;
    uint8_t kind;
    uint64_t step;
    int64_t microbatch;
    uint64_t beginNs, endNs;
  };
  struct Transfer {
    const char *name;
    bool isSend;
    uint32_t peer;
    uint64_t bytes, step;
    int64_t microbatch;
    uint64_t beginNs, endNs;
  };
  /// Bounds the memory of a long run: later slices are dropped, and the file
  /// says so.
  static constexpr size_t maxSlices = 2'000'000;

  const Program &program;
  std::vector<std::vector<Slice>> streams;
  std::mutex mutex;
  std::vector<Transfer> transfers;
};

} // namespace autohet::runtime

#endif

//===- Process.h - a program run to its end ----------------------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_CONFORMANCE_PROCESS_H
#define AUTOHET_TOOLS_CONFORMANCE_PROCESS_H

#include <string>
#include <vector>

namespace autohet::conformance {

struct Finished {
  int status = 0; ///< of the exit; 128 + N after signal N
  bool timedOut = false;
  std::string output; ///< stdout and stderr
};

/// Runs `arguments`, the first of which is a path. From any thread.
Finished runProcess(const std::vector<std::string> &arguments,
                    double timeout_s);

} // namespace autohet::conformance

#endif

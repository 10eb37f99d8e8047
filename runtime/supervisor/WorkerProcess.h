//===- WorkerProcess.h - one worker as its supervisor sees it -------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_WORKERPROCESS_H
#define AUTOHET_RUNTIME_SUPERVISOR_WORKERPROCESS_H

#include "supervisor/Emulation.h"
#include "supervisor/Wire.h"

#include <memory>
#include <string>
#include <sys/types.h>

namespace autohet::runtime {

/// How a worker finds its supervisor: the value of AUTOHET_WORKER in its
/// environment, all numbers.
struct WorkerHandle {
  static constexpr const char *variable = "AUTOHET_WORKER";
  uint32_t device = 0;
  int pageFd = -1, channelFd = -1, failureFd = -1;
  pid_t supervisor = 0;
  double share = 0; ///< of a core, emulated; 0: full speed

  std::string format() const;
  static bool parse(const char *text, WorkerHandle &handle);
};

struct WorkerProcess {
  uint32_t rank = 0;
  pid_t pid = -1; ///< -1 when it has been reaped
  Channel channel;
  std::string address; ///< of its transport; "" until it is ready
  bool isReady = false, hasEnded = false;
  uint64_t rate = 0; ///< emulation: measured speed; 0 until then
  std::unique_ptr<ShareClaim> claim; ///< emulation

  bool isRunning() const { return pid > 0; }
};

/// Starts this executable again, with the same arguments, as the worker of
/// `handle.device`: it dies with this process and ignores the signals that
/// launchers send to whole groups. It begins with `worker.claim`, if there is
/// one. False and `error` on failure.
bool startWorker(WorkerProcess &worker, WorkerHandle handle, char **argv,
                 std::string &error);

/// Its status once it has ended; then its claim is given up and `pid` is -1.
bool reapWorker(WorkerProcess &worker, int &status);

/// "was killed by signal 9 (Killed)", "exited with status 3".
std::string describeStatus(int status);

} // namespace autohet::runtime

#endif

//===- Supervisor.h - the process that a launcher starts ------------------===//
//
// One a node: the parent of one worker a device. It knows who lives, tells its
// workers and the other supervisors who died, passes requests to save on, and
// owns the exit status. It computes nothing and outlives its workers.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_SUPERVISOR_H
#define AUTOHET_RUNTIME_SUPERVISOR_SUPERVISOR_H

#include "supervisor/Hub.h"
#include "supervisor/JobPage.h"
#include "supervisor/Launch.h"
#include "supervisor/SharedMemory.h"
#include "supervisor/WorkerProcess.h"

#include <chrono>
#include <memory>

namespace autohet::runtime {

class Supervisor {
public:
  Supervisor(const ah_node_image &image, const ah_supervisor_options &options,
             char **argv);
  ~Supervisor();

  /// The exit status of the node.
  int run();

private:
  using Clock = std::chrono::steady_clock;

  const ah_node_image &image;
  ah_supervisor_options options;
  char **argv;
  Manifest manifest;
  std::string folder; ///< of the executable
  std::string requestFile;
  Fingerprint fingerprint;
  Launch launch;
  uint32_t firstRank = 0;
  JobPage page;
  std::unique_ptr<Emulation> emulation; ///< null: full speed
  SharedMemory sharedMemory;            ///< outlives the workers
  std::vector<WorkerProcess> workers;

  std::unique_ptr<Hub> hub; ///< on node 0
  Channel upstream;         ///< to the hub, on the others
  double upstreamSilent_s = 0;

  int signalFd = -1, failureFd = -1;
  Clock::time_point lastTick, started;
  bool toldWaiting = false;

  enum class State { Starting, Running, Succeeded, Failed };
  State state = State::Starting;
  std::string failure;
  Clock::time_point failedAt;
  bool killed = false;
  /// A worker lost its peer: who died, the supervisors will know in a moment.
  std::string effect;
  Clock::time_point effectAt;
  unsigned stopSignals = 0;

  // Start
  bool prepare(std::string &error);
  bool meet(std::string &error);
  bool connectUpstream(std::string &error);
  bool startWorkers(std::string &error);
  void openSignals();

  // The loop
  bool isDone() const;
  void waitForSomething();
  void tick();
  void sendBeat();
  void takeBeats(const Frame &frame);

  // What happens
  void onSignals();
  void onStopSignal(int signal);
  void request(uint64_t flags);
  void takeRequestFile();
  void reapWorkers();
  void onWorkerFrame(WorkerProcess &worker, const Frame &frame);
  void onWorkerEnded(WorkerProcess &worker, const Frame &frame);
  void onFrame(const Frame &frame);
  void sendUp(FrameType type, const std::string &bytes);

  // Ends
  void die(std::string reason);  ///< this node is the cause
  void fail(std::string reason); ///< the job has failed
  void killWorkers();
  void say(const std::string &text) const;
  void sayLastCommands() const;
};

/// Of this process's executable.
std::string folderOfExecutable();

} // namespace autohet::runtime

#endif

//===- TestJob.h - a job of fake nodes ------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_SUPERVISOR_TESTJOB_H
#define AUTOHET_TEST_UNIT_SUPERVISOR_TESTJOB_H

#include <cstdint>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace autohet::runtime::test {

double now();

class TestJob {
public:
  /// `ranks[i]`: how many devices node i has.
  explicit TestJob(std::vector<uint32_t> ranks);
  ~TestJob(); ///< kills what is left

  /// Arguments for all nodes, and for one.
  TestJob &with(const std::string &argument);
  TestJob &with(uint32_t node, const std::string &argument);
  /// Variables in the environment of one node.
  TestJob &set(uint32_t node, const std::string &name,
               const std::string &value);

  void start();
  void start(uint32_t node);

  pid_t supervisor(uint32_t node) const { return pids[node]; }
  /// Waits until node's workers are there; their processes in device order.
  std::vector<pid_t> workers(uint32_t node);
  /// Waits until all ranks have begun their second step.
  void sleepUntilRunning();

  /// Exit status of each supervisor, 128 + signal for a killed one, -1 for one
  /// that still runs after `seconds` in all.
  std::vector<int> wait(double seconds);
  std::string output(uint32_t node) const;
  std::string saved(uint32_t rank) const; ///< "" if it has not saved
  /// Processes of this job that are still there.
  std::vector<pid_t> remaining() const;

  std::string manifest, folder;

private:
  std::vector<uint32_t> ranks;
  std::vector<pid_t> pids;
  std::vector<int> statuses; ///< -1: not started, or not known yet
  std::vector<std::vector<std::string>> arguments;
  std::vector<std::map<std::string, std::string>> environments;
};

} // namespace autohet::runtime::test

#endif

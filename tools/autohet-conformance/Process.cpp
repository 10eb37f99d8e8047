//===- Process.cpp - a program run to its end -----------------------------===//

#include "Process.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

using namespace autohet::conformance;
using Clock = std::chrono::steady_clock;

Finished
autohet::conformance::runProcess(const std::vector<std::string> &arguments,
                                 double timeout_s) {
  Finished result;
  int pipeEnds[2];
  if (pipe2(pipeEnds, O_CLOEXEC) != 0) {
    result.status = 127;
    result.output =
        std::string("error: cannot make a pipe: ") + strerror(errno);
    return result;
  }
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipeEnds[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipeEnds[1], 2);
  pid_t child = -1;
  int problem =
      posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipeEnds[1]);
  if (problem != 0) {
    close(pipeEnds[0]);
    result.status = 127;
    result.output =
        "error: cannot start '" + arguments[0] + "': " + strerror(problem);
    return result;
  }
  Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(int64_t(timeout_s * 1e3));
  char buffer[4096];
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - Clock::now());
    pollfd entry = {pipeEnds[0], POLLIN, 0};
    int ready = left.count() > 0 ? poll(&entry, 1, int(left.count())) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0) {
      result.timedOut = true;
      kill(child, SIGKILL);
      break;
    }
    ssize_t count = read(pipeEnds[0], buffer, sizeof buffer);
    if (count <= 0)
      break;
    result.output.append(buffer, count);
  }
  close(pipeEnds[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.status =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

//===- WorkerProcess.cpp - one worker as its supervisor sees it -----------===//

#include "supervisor/WorkerProcess.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::runtime;

std::string WorkerHandle::format() const {
  return std::to_string(device) + "," + std::to_string(pageFd) + "," +
         std::to_string(channelFd) + "," + std::to_string(failureFd) + "," +
         std::to_string(supervisor) + "," + std::to_string(share);
}

bool WorkerHandle::parse(const char *text, WorkerHandle &handle) {
  int end = 0;
  return sscanf(text, "%u,%d,%d,%d,%d,%lf%n", &handle.device, &handle.pageFd,
                &handle.channelFd, &handle.failureFd, &handle.supervisor,
                &handle.share, &end) == 6 &&
         text[end] == '\0';
}

std::string autohet::runtime::describeStatus(int status) {
  if (WIFSIGNALED(status))
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

[[noreturn]] static void becomeWorker(const WorkerHandle &handle, char **argv,
                                      char **environment,
                                      const ShareClaim *claim) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != handle.supervisor)
    _exit(1); // it died before the line above
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE})
    ::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int fd : {handle.pageFd, handle.channelFd, handle.failureFd})
    fcntl(fd, F_SETFD, 0);
  if (claim)
    claim->enter();
  execve("/proc/self/exe", argv, environment);
  fprintf(stderr, "autohet: cannot start a worker: %s\n", strerror(errno));
  _exit(127);
}

bool autohet::runtime::startWorker(WorkerProcess &worker, WorkerHandle handle,
                                   char **argv, std::string &error) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    error = std::string("cannot make a socket pair: ") + strerror(errno);
    return false;
  }
  handle.channelFd = pair[1];
  handle.supervisor = getpid();
  handle.share = worker.claim ? worker.claim->cores : 0;
  // Everything that allocates is done before the fork.
  std::string own = std::string(WorkerHandle::variable) + "=" + handle.format();
  std::vector<char *> environment;
  for (char **variable = environ; *variable; ++variable)
    environment.push_back(*variable);
  environment.push_back(own.data());
  environment.push_back(nullptr);
  pid_t pid = fork();
  if (pid == 0)
    becomeWorker(handle, argv, environment.data(), worker.claim.get());
  int reason = errno;
  close(pair[1]);
  worker.channel = Channel(pair[0]);
  worker.pid = pid;
  if (pid < 0)
    error = std::string("cannot start a worker: ") + strerror(reason);
  return pid > 0;
}

bool autohet::runtime::reapWorker(WorkerProcess &worker, int &status) {
  siginfo_t info = {};
  if (!worker.isRunning() ||
      waitid(P_PID, worker.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != worker.pid)
    return false;
  waitpid(worker.pid, &status, 0);
  worker.claim.reset();
  worker.pid = -1;
  return true;
}

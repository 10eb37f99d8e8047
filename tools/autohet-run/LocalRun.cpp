//===- LocalRun.cpp - all nodes of a job on this machine ------------------===//
//
// Starts one supervisor a node and gets out of the way: they know everything
// else. What is left here is a free port, prefixes where several nodes print,
// signals, and the exit status.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "checkpoint/Checkpoint.h"
#include "checkpoint/FolderLock.h"
#include "core/Error.h"
#include "supervisor/WorkerProcess.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <set>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::run;
using autohet::runtime::CheckpointReader;
using autohet::runtime::describeStatus;
using autohet::runtime::Error;
using autohet::runtime::FolderLock;
using autohet::runtime::FoundCheckpoint;
using autohet::runtime::Manifest;
using Clock = std::chrono::steady_clock;

/// After a supervisor's bad end: until the others are asked, and made, to end.
/// They end by themselves sooner if they have met.
static constexpr double askAfter_s = 2, killAfter_s = 12;

/// How long the sums of a checkpoint are compared before it is recommended.
static constexpr double verifyFor_s = 10;

/// A port that is free now. Between this and the supervisor's listening another
/// process could take it: the supervisor then says so.
static uint16_t findFreePort() {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  if (fd < 0 || bind(fd, generic, size) != 0 ||
      getsockname(fd, generic, &size) != 0)
    fail("no port is free: %s", strerror(errno));
  close(fd);
  return ntohs(address.sin_port);
}

namespace {

/// One stream of one node, passed on by whole lines.
struct Output {
  int from = -1, to = -1;
  std::string prefix, pending;
  std::set<std::string> *errors = nullptr; // that a node has said
  int loss = 0;                            // the errno of a write that failed

  void pump() {
    char buffer[65536];
    ssize_t count = read(from, buffer, sizeof(buffer));
    if (count <= 0) {
      close(from);
      from = -1;
      if (!pending.empty())
        writeLines(pending + "\n");
      pending.clear();
      return;
    }
    pending.append(buffer, count);
    size_t end = pending.rfind('\n');
    if (end == std::string::npos)
      return;
    writeLines(pending.substr(0, end + 1));
    pending.erase(0, end + 1);
  }

  /// Whether another node has said the same: what ends the job, all do, and
  /// what is wrong with the data, each rank may find first.
  bool isKnownError(const std::string &line) {
    std::string own = "autohet: " + prefix + "error: ";
    if (line.compare(0, own.size(), own) != 0)
      return false;
    std::string text = line.substr(own.size());
    size_t rank =
        text.compare(0, 5, "rank ") ? std::string::npos : text.find("): ");
    if (rank != std::string::npos)
      text.erase(0, rank + 3);
    return !errors->insert(text).second;
  }

  void writeLines(const std::string &lines) {
    std::string text;
    for (size_t begin = 0; begin < lines.size();) {
      size_t end = lines.find('\n', begin) + 1;
      std::string line = lines.substr(begin, end - begin);
      begin = end;
      if (isKnownError(line))
        continue;
      // A supervisor's own lines name the node already.
      if (line.compare(0, 9, "autohet: ") != 0)
        text += prefix;
      text += line;
    }
    for (size_t done = 0; done < text.size();) {
      ssize_t count = write(to, text.data() + done, text.size() - done);
      if (count <= 0 && errno != EINTR) {
        loss = errno; // the job goes on
        return;
      }
      done += std::max<ssize_t>(count, 0);
    }
  }
};

struct Node {
  std::string name;
  pid_t pid = -1;
  Output out, err;
};

class LocalRun {
public:
  LocalRun(const CommandLine &line, const Manifest &manifest)
      : line(line), manifest(manifest), nodes(manifest.nodes.size()) {}
  int run();

private:
  const CommandLine &line;
  const Manifest &manifest;
  std::vector<Node> nodes;
  std::set<std::string> errors;
  int signalFd = -1;
  int exitStatus = 0;
  bool anyFailed = false, asked = false, killed = false;
  Clock::time_point failedAt;

  void openSignals();
  void start(uint32_t index, uint16_t port);
  [[noreturn]] void becomeSupervisor(const std::vector<std::string> &arguments,
                                     int out, int err);
  bool isRunning() const;
  void waitForSomething();
  void onSignals();
  void reap();
  void hurry();
  void signalAll(int signal);
  std::string whyNotFrom(const std::string &folder) const;
  void sayNewestCheckpoint() const;
};

} // namespace

void LocalRun::openSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD})
    sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signalFd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void LocalRun::becomeSupervisor(const std::vector<std::string> &arguments,
                                int out, int err) {
  // If autohet-run is killed, the job saves and stops. Own process groups: a ^C
  // in the terminal comes once, through autohet-run.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  if (out >= 0) {
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
  }
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  fprintf(stderr, "autohet-run: cannot start '%s': %s\n", argv[0],
          strerror(errno));
  _exit(127);
}

void LocalRun::start(uint32_t index, uint16_t port) {
  Node &node = nodes[index];
  node.name = manifest.nodes[index].name;
  std::vector<std::string> arguments = {line.folder + "/" +
                                        manifest.nodes[index].executable};
  arguments.insert(arguments.end(), line.passed.begin(), line.passed.end());
  if (line.emulate)
    arguments.push_back("--emulate=cluster");
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  if (nodes.size() > 1) {
    for (const std::string &argument :
         {"--node=" + std::to_string(index),
          "--nodes=" + std::to_string(nodes.size()),
          std::string("--master-addr=127.0.0.1"),
          "--master-port=" + std::to_string(port)})
      arguments.push_back(argument);
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
      fail("cannot make a pipe: %s", strerror(errno));
  } else {
    // An enclosing mpirun or RANK is about this tool, not about the node.
    arguments.insert(arguments.end(), {"--node=0", "--nodes=1"});
  }
  node.pid = fork();
  if (node.pid == 0)
    becomeSupervisor(arguments, out[1], err[1]);
  if (node.pid < 0)
    fail("cannot start node %s: %s", node.name.c_str(), strerror(errno));
  close(out[1]);
  close(err[1]);
  node.out = {out[0], STDOUT_FILENO, node.name + ": ", "", &errors};
  node.err = {err[0], STDERR_FILENO, node.name + ": ", "", &errors};
}

bool LocalRun::isRunning() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node &node) {
    return node.pid > 0 || node.out.from >= 0 || node.err.from >= 0;
  });
}

void LocalRun::signalAll(int signal) {
  for (const Node &node : nodes)
    if (node.pid > 0)
      kill(node.pid, signal);
}

void LocalRun::onSignals() {
  signalfd_siginfo info;
  while (read(signalFd, &info, sizeof(info)) == sizeof(info))
    if (info.ssi_signo != SIGCHLD)
      signalAll(static_cast<int>(info.ssi_signo));
}

void LocalRun::reap() {
  for (Node &node : nodes) {
    int status = 0;
    if (node.pid <= 0 || waitpid(node.pid, &status, WNOHANG) <= 0)
      continue;
    node.pid = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      continue;
    if (WIFSIGNALED(status)) // else it has said why itself
      fprintf(stderr, "autohet-run: the supervisor of node %s %s\n",
              node.name.c_str(), describeStatus(status).c_str());
    if (!anyFailed)
      failedAt = Clock::now();
    anyFailed = true;
    exitStatus = 1;
  }
}

/// Supervisors that have not met yet cannot know that one of them is dead.
void LocalRun::hurry() {
  if (!anyFailed)
    return;
  double waited_s =
      std::chrono::duration<double>(Clock::now() - failedAt).count();
  if (waited_s > killAfter_s) {
    if (!killed)
      for (const Node &node : nodes)
        if (node.pid > 0)
          fprintf(stderr,
                  "autohet-run: the supervisor of node %s has not ended within "
                  "%d s of the failure (stopped?); killing it\n",
                  node.name.c_str(), int(killAfter_s));
    killed = true;
    signalAll(SIGKILL);
  } else if (waited_s > askAfter_s && !asked) {
    asked = true;
    signalAll(SIGTERM);
  }
}

void LocalRun::waitForSomething() {
  std::vector<pollfd> sockets = {{signalFd, POLLIN, 0}};
  std::vector<Output *> outputs;
  for (Node &node : nodes)
    for (Output *output : {&node.out, &node.err})
      if (output->from >= 0) {
        sockets.push_back({output->from, POLLIN, 0});
        outputs.push_back(output);
      }
  poll(sockets.data(), sockets.size(), /*timeout_ms=*/500);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (sockets[i + 1].revents)
      outputs[i]->pump();
}

/// Why this job cannot go on from a checkpoint; empty if it can.
std::string LocalRun::whyNotFrom(const std::string &folder) const {
  try {
    CheckpointReader reader(folder);
    checkJob(reader.manifest(), folder,
             {strtoull(manifest.structure_hash.c_str(), nullptr, 16),
              uint32_t(manifest.global_batch),
              autohet::runtime::optimizerOfName(manifest.optimizer)});
    // What ended a resumed run may be what it read.
    if (line.resumes)
      reader.verify(verifyFor_s);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

/// After a bad end: how not to begin anew.
void LocalRun::sayNewestCheckpoint() const {
  try {
    // Another run's, which is alive and has been named.
    if (FolderLock::isHeld(line.checkpoints))
      return;
    bool isNewest = true;
    for (const FoundCheckpoint &one :
         autohet::runtime::findCheckpoints(line.checkpoints)) {
      if (!one.complete)
        continue;
      std::string problem = whyNotFrom(one.folder);
      if (problem.empty()) {
        fprintf(stderr,
                "autohet-run: the newest complete checkpoint is '%s'; go on "
                "from it with --resume%s\n",
                one.folder.c_str(),
                isNewest ? "" : ("=" + std::to_string(one.step)).c_str());
        return;
      }
      fprintf(stderr, "autohet-run: not to be gone on from: %s\n",
              problem.c_str());
      isNewest = false;
    }
    if (!isNewest)
      fprintf(stderr,
              "autohet-run: '%s' has no checkpoint that this job can go on "
              "from\n",
              line.checkpoints.c_str());
  } catch (const Error &) {
    // There is none: what failed, its nodes have said.
  }
}

int LocalRun::run() {
  openSignals();
  uint16_t port = line.masterPort    ? line.masterPort
                  : nodes.size() > 1 ? findFreePort()
                                     : 0;
  for (uint32_t index = 0; index < nodes.size(); ++index)
    start(index, port);
  while (isRunning()) {
    waitForSomething();
    onSignals();
    reap();
    hurry();
  }
  if (anyFailed && !line.checkpoints.empty())
    sayNewestCheckpoint();
  for (const Node &node : nodes)
    if (node.out.loss)
      fail("cannot write to standard output: %s", strerror(node.out.loss));
  return exitStatus;
}

int autohet::run::runHere(const CommandLine &line, const Manifest &manifest) {
  return LocalRun(line, manifest).run();
}

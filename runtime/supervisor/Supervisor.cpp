//===- Supervisor.cpp - the process that a launcher starts ----------------===//
//
// One loop over poll(): children, workers' channels, the hub or the connection
// to it, and signals. The first failure that reaches the hub is the job's; each
// supervisor then gives its workers a moment to say theirs and kills what is
// left.
//
//===----------------------------------------------------------------------===//

#include "supervisor/Supervisor.h"
#include "supervisor/Boards.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::runtime;

/// Between a failure and SIGKILL: for workers to end by themselves.
static constexpr double grace_s = 2;
/// How long a worker's lost connection may wait for its cause.
static constexpr double causeTime_s = 2;

static double since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then)
      .count();
}

Supervisor::Supervisor(const ah_node_image &image,
                       const ah_supervisor_options &options, char **argv)
    : image(image), options(options), argv(argv), folder(folderOfExecutable()),
      requestFile(folder + "/save.request") {
  if (this->options.stall_timeout_s <= 0)
    this->options.stall_timeout_s = 600;
  if (this->options.death_timeout_s <= 0)
    this->options.death_timeout_s = 10;
}

Supervisor::~Supervisor() {
  for (int fd : {signalFd, failureFd})
    if (fd >= 0)
      close(fd);
}

void Supervisor::say(const std::string &text) const {
  std::string name = manifest.nodes.size() > 1
                         ? manifest.nodes[image.node].name + ": "
                         : std::string();
  fprintf(stderr, "autohet: %s%s\n", name.c_str(), text.c_str());
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

int Supervisor::run() {
  std::string error;
  lastTick = started = Clock::now();
  openSignals();
  if (!prepare(error) || !meet(error) || !startWorkers(error))
    die(error);
  while (!isDone()) {
    waitForSomething();
    tick();
  }
  // What the others must still hear.
  upstream.flush(1);
  if (hub)
    hub->drain(/*seconds=*/3);
  return state == State::Succeeded ? 0 : 1;
}

bool Supervisor::isDone() const {
  return (state == State::Succeeded || state == State::Failed) &&
         std::none_of(
             workers.begin(), workers.end(),
             [](const WorkerProcess &worker) { return worker.isRunning(); });
}

/// Listening is counted, not time: a supervisor that was stopped itself must
/// not take its own sleep for the others' silence.
void Supervisor::tick() {
  double elapsed_s = since(lastTick);
  if (elapsed_s < std::min(options.death_timeout_s / 20, 0.5))
    return;
  elapsed_s = std::min(elapsed_s, options.death_timeout_s / 5);
  lastTick = Clock::now();
  page.beat()++;
  sendBeat();
  takeRequestFile();
  if (hub)
    hub->tick(elapsed_s);
  else if (upstream.isOpen())
    upstreamSilent_s += elapsed_s;
  if (upstreamSilent_s > options.death_timeout_s)
    fail("the supervisor of node " + manifest.nodes[0].name +
         " has sent no heartbeat for " +
         std::to_string(static_cast<int>(upstreamSilent_s)) +
         " s (--death-timeout)");
  if (hub && !toldWaiting && since(started) > 5 &&
      !hub->missingNodes().empty()) {
    toldWaiting = true;
    say("waiting at " + launch.masterAddress + ":" +
        std::to_string(launch.masterPort) + " for " + hub->missingNodes());
  }
  if (hub && state == State::Starting && !hub->missingNodes().empty() &&
      since(started) > options.stall_timeout_s)
    die("not started within --stall-timeout: " + hub->missingNodes());
  if (!effect.empty() && since(effectAt) > causeTime_s)
    die(effect);
  if (state == State::Failed && !killed && since(failedAt) > grace_s)
    killWorkers();
}

void Supervisor::waitForSomething() {
  std::vector<pollfd> sockets = {{signalFd, POLLIN, 0}};
  auto add = [&](const Channel &channel) {
    if (channel.isOpen())
      sockets.push_back({channel.fd(),
                         short(POLLIN | (channel.hasUnsent() ? POLLOUT : 0)),
                         0});
  };
  for (const WorkerProcess &worker : workers)
    add(worker.channel);
  add(upstream);
  if (hub)
    hub->addSockets(sockets);
  poll(sockets.data(), sockets.size(),
       /*timeout_ms=*/50 + int(options.death_timeout_s * 10));

  Frame frame;
  // Frames before deaths: a worker's last words are the better reason.
  for (WorkerProcess &worker : workers) {
    if (!worker.channel.isOpen())
      continue;
    bool open = worker.channel.pump();
    while (worker.channel.next(frame))
      onWorkerFrame(worker, frame);
    if (!open)
      worker.channel.close();
  }
  onSignals();
  reapWorkers();
  if (hub)
    hub->pump();
  if (!upstream.isOpen())
    return;
  bool open = upstream.pump();
  while (upstream.next(frame))
    onFrame(frame);
  if (open)
    return;
  upstream.close();
  fail("the supervisor of node " + manifest.nodes[0].name +
       " is gone (its connection was lost)");
}

//===----------------------------------------------------------------------===//
// Heartbeats
//===----------------------------------------------------------------------===//

void Supervisor::sendBeat() {
  if (state != State::Starting && state != State::Running)
    return;
  Packer beat;
  for (uint32_t device = 0; device < workers.size(); ++device) {
    const ah_board &board = page.board(device);
    auto load = [](const uint64_t &field) {
      return __atomic_load_n(&field, __ATOMIC_RELAXED);
    };
    beat.text(Packer()
                  .number(load(board.commands))
                  .number(load(board.step))
                  .number(load(board.phase))
                  .text(describeBoard(image.devices[device], board))
                  .bytes);
  }
  sendUp(FrameType::Beat, beat.bytes);
}

void Supervisor::takeBeats(const Frame &frame) {
  upstreamSilent_s = 0;
  Unpacker all(frame.bytes);
  for (uint32_t i = 0; i < manifest.ranks.size() && all.ok; ++i) {
    std::string bytes = all.text();
    Unpacker beat(bytes);
    uint64_t commands = beat.number(), step = beat.number();
    uint64_t phase = beat.number();
    std::string last = beat.text();
    if (!beat.ok)
      continue; // that node has sent none yet
    RankState &rank = page.rank(i);
    rank.commands = commands;
    rank.step = step;
    rank.phase = phase;
    last.resize(std::min(last.size(), sizeof(rank.last) - 1));
    std::copy(last.c_str(), last.c_str() + last.size() + 1, rank.last);
  }
}

//===----------------------------------------------------------------------===//
// Signals and children
//===----------------------------------------------------------------------===//

void Supervisor::openSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1})
    sigaddset(&set, signal);
  // nohup's wish is kept.
  struct sigaction hangUp;
  sigaction(SIGHUP, nullptr, &hangUp);
  if (hangUp.sa_handler != SIG_IGN)
    sigaddset(&set, SIGHUP);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signalFd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void Supervisor::onSignals() {
  signalfd_siginfo info;
  while (read(signalFd, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGUSR1) {
      request(AH_FLAG_SAVE);
    } else if (info.ssi_signo != SIGCHLD) {
      onStopSignal(static_cast<int>(info.ssi_signo));
    }
  }
}

/// For the next step boundary. The flags reach all ranks through the step's
/// agreement, so one supervisor that is asked is enough.
void Supervisor::request(uint64_t flags) {
  for (uint32_t device = 0; device < workers.size(); ++device)
    __atomic_fetch_or(&page.board(device).requests, flags, __ATOMIC_RELAXED);
}

/// A file asks where no signal reaches: a shared folder, a pod.
void Supervisor::takeRequestFile() {
  if (state == State::Running && unlink(requestFile.c_str()) == 0) {
    say("save.request: saving after this step");
    request(AH_FLAG_SAVE);
  }
}

/// Save, then end.
void Supervisor::onStopSignal(int signal) {
  std::string name = strsignal(signal);
  if (state == State::Starting)
    return die("stopped by signal " + std::to_string(signal) + " (" + name +
               ") before the job began");
  if (state != State::Running)
    return; // a death is known: the exit status stays non-zero
  // Launchers send SIGTERM more than once; only a person presses ^C again.
  if (signal == SIGINT && ++stopSignals > 1)
    return die("stopped by a second SIGINT, without saving");
  say("signal " + std::to_string(signal) + " (" + name +
      "): saving after this step, then stopping");
  request(AH_FLAG_SAVE | AH_FLAG_STOP);
}

void Supervisor::reapWorkers() {
  for (WorkerProcess &worker : workers) {
    int status = 0;
    pid_t pid = worker.pid;
    if (!reapWorker(worker, status))
      continue;
    // It may have spoken between our reading and its end.
    Frame frame;
    worker.channel.pump();
    while (worker.channel.next(frame))
      onWorkerFrame(worker, frame);
    worker.channel.close();
    std::string what = manifest.describeRank(worker.rank) + ", process " +
                       std::to_string(pid) + ", " + describeStatus(status);
    if (state == State::Failed) {
      // It was told to end; a signal that is not ours is a cause of its own.
      if (!killed && WIFSIGNALED(status))
        say("error: also " + what);
      continue;
    }
    if (worker.hasEnded && WIFEXITED(status) &&
        (state != State::Succeeded || WEXITSTATUS(status) == 0))
      continue; // has said how its work ended
    if (state == State::Succeeded) {
      say("after the job's end, " + what);
      state = State::Failed;
      continue;
    }
    if (!worker.hasEnded && WIFEXITED(status))
      what += " without saying why";
    sayLastCommands();
    die(what);
  }
}

void Supervisor::onWorkerFrame(WorkerProcess &worker, const Frame &frame) {
  if (frame.type == FrameType::WorkerEnded)
    return onWorkerEnded(worker, frame);
  Unpacker unpacker(frame.bytes);
  Packer all;
  if (frame.type == FrameType::Ready) {
    worker.address = unpacker.text();
    worker.isReady = true;
    for (const WorkerProcess &one : workers) {
      if (!one.isReady)
        return;
      all.text(one.address);
    }
    sendUp(FrameType::Addresses, all.bytes);
  } else if (frame.type == FrameType::Measured) {
    worker.rate = unpacker.number();
    for (const WorkerProcess &one : workers) {
      if (!one.rate)
        return;
      all.number(one.rate);
    }
    sendUp(FrameType::Measured, all.bytes);
  }
}

void Supervisor::onWorkerEnded(WorkerProcess &worker, const Frame &frame) {
  Unpacker unpacker(frame.bytes);
  auto status = static_cast<ah_status>(static_cast<int64_t>(unpacker.number()));
  std::string text = unpacker.text();
  worker.hasEnded = true;
  if (status == AH_OK) {
    if (std::all_of(workers.begin(), workers.end(),
                    [](const WorkerProcess &one) { return one.hasEnded; }) &&
        state == State::Running)
      sendUp(FrameType::Ended, "");
    return;
  }
  if (state == State::Failed) {
    // An own error, not the echo of another's.
    if (status != AH_ERROR_PEER && failure.find(text) == std::string::npos)
      say("error: " + text);
    return;
  }
  std::string reason = manifest.ranks.size() > 1
                           ? manifest.describeRank(worker.rank) + ": " + text
                           : text;
  if (status == AH_ERROR_PEER) {
    // It names itself already.
    effect = text;
    effectAt = Clock::now();
  } else {
    die(reason);
  }
}

//===----------------------------------------------------------------------===//
// The job
//===----------------------------------------------------------------------===//

void Supervisor::sendUp(FrameType type, const std::string &bytes) {
  if (hub)
    hub->handle(0, {type, bytes});
  else
    upstream.send(type, bytes);
}

void Supervisor::onFrame(const Frame &frame) {
  switch (frame.type) {
  case FrameType::Beats:
    return takeBeats(frame);
  case FrameType::Peers:
    if (state == State::Starting)
      state = State::Running;
    for (WorkerProcess &worker : workers)
      worker.channel.send(FrameType::Peers, frame.bytes);
    return;
  case FrameType::Measure:
    for (WorkerProcess &worker : workers) {
      worker.rate = 0;
      worker.channel.send(FrameType::Measure, "");
    }
    return;
  case FrameType::Begin:
    if (hub)
      say(Unpacker(frame.bytes).text());
    for (WorkerProcess &worker : workers)
      worker.channel.send(FrameType::Begin, "");
    return;
  case FrameType::Failure:
    return fail(Unpacker(frame.bytes).text());
  case FrameType::AllEnded:
    if (state == State::Running)
      state = State::Succeeded;
    for (WorkerProcess &worker : workers)
      worker.channel.send(FrameType::AllEnded, "");
    return;
  default:
    return;
  }
}

void Supervisor::die(std::string reason) {
  if (state == State::Failed)
    return;
  sendUp(FrameType::Failure, Packer().text(reason).bytes);
  fail(reason);
}

void Supervisor::fail(std::string reason) {
  if (state == State::Failed || state == State::Succeeded)
    return;
  state = State::Failed;
  failure = reason;
  failedAt = Clock::now();
  effect.clear();
  say("error: " + reason);
  if (workers.empty())
    return;
  page.setFailure(reason);
  uint64_t one = 1;
  (void)!write(failureFd, &one, sizeof(one));
}

void Supervisor::killWorkers() {
  killed = true;
  for (WorkerProcess &worker : workers)
    if (worker.isRunning())
      kill(worker.pid, SIGKILL);
}

void Supervisor::sayLastCommands() const {
  for (uint32_t device = 0; device < workers.size(); ++device)
    say("  " + manifest.describeRank(firstRank + device) + ": " +
        describeBoard(image.devices[device], page.board(device)));
}

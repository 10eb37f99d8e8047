//===- Links.cpp - how fast do messages travel? ---------------------------===//
//
// Two processes, one conversation: they swap UCX addresses over a socket, then
// send through UCX as a run does. Every wait has a deadline.
//
//===----------------------------------------------------------------------===//

#include "Probe.h"

#include "comm/ucx/UcxWorker.h"
#include "core/Error.h"
#include "supervisor/Sockets.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet;
using namespace autohet::probe;
using namespace autohet::runtime;
using Clock = std::chrono::steady_clock;

static constexpr double patience_s = 20;
/// Messages of this many bytes are what stages exchange.
static constexpr size_t bulkBytes = 4 << 20;

namespace {

/// A socket that speaks in texts, each behind its length.
class Conversation {
public:
  explicit Conversation(int fd, std::string peer)
      : fd(fd), peer(std::move(peer)) {}
  ~Conversation() { close(fd); }
  Conversation(const Conversation &) = delete;
  Conversation &operator=(const Conversation &) = delete;

  void say(const std::string &text) {
    uint32_t size = text.size();
    transfer(true, reinterpret_cast<char *>(&size), sizeof(size));
    transfer(true, const_cast<char *>(text.data()), size);
  }

  std::string hear() {
    uint32_t size = 0;
    transfer(false, reinterpret_cast<char *>(&size), sizeof(size));
    if (size > (1 << 20))
      fail(AH_ERROR_INPUT, "%s is no autohet-probe", peer.c_str());
    std::string text(size, '\0');
    transfer(false, &text[0], size);
    return text;
  }

  const std::string &name() const { return peer; }

private:
  int fd;
  std::string peer;

  void transfer(bool out, char *data, size_t size) {
    for (size_t done = 0; done < size;) {
      pollfd ready = {fd, short(out ? POLLOUT : POLLIN), 0};
      if (poll(&ready, 1, int(patience_s * 1000)) <= 0)
        fail(AH_ERROR_SYSTEM, "%s has not answered for %g s", peer.c_str(),
             patience_s);
      ssize_t count = out ? ::send(fd, data + done, size - done, MSG_NOSIGNAL)
                          : recv(fd, data + done, size - done, 0);
      if (count > 0) {
        done += count;
      } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
        fail(AH_ERROR_SYSTEM, "the connection to %s broke: %s", peer.c_str(),
             count == 0 ? "it was closed" : strerror(errno));
      }
    }
  }
};

/// UCX between this process and the other end of a conversation.
class Messenger {
public:
  explicit Messenger(Conversation &other) : other(other) {
    if (worker.open("") != AH_OK)
      fail(AH_ERROR_SYSTEM, "%s", ah_last_error());
    worker.onPeerLost = [](uint32_t, const char *error) { lost = error; };
    other.say(worker.address());
    worker.setPeers({other.hear()});
  }
  ~Messenger() { worker.close(/*seconds=*/2); }

  void send(size_t bytes) {
    bool done = false;
    buffer.resize(std::max(buffer.size(), bytes));
    ucs_status_ptr_t request = worker.send(
        0, /*tag=*/1, {buffer.data(), bytes},
        [](void *, ucs_status_t, void *flag) {
          *static_cast<bool *>(flag) = true;
        },
        &done);
    finish(request, done);
  }

  void receive(size_t bytes) {
    bool done = false;
    buffer.resize(std::max(buffer.size(), bytes));
    ucs_status_ptr_t request = worker.receive(
        /*tag=*/1, {buffer.data(), bytes},
        [](void *, ucs_status_t, const ucp_tag_recv_info_t *, void *flag) {
          *static_cast<bool *>(flag) = true;
        },
        &done);
    finish(request, done);
  }

private:
  Conversation &other;
  UcxWorker worker;
  std::vector<char> buffer;
  static std::string lost;

  void finish(ucs_status_ptr_t request, const bool &done) {
    if (UCS_PTR_IS_ERR(request))
      fail(AH_ERROR_SYSTEM, "a message between this process and %s failed: %s",
           other.name().c_str(), worker.statusText(UCS_PTR_STATUS(request)));
    if (!request)
      return; // it has ended already
    auto begin = Clock::now();
    while (!done && lost.empty()) {
      if (worker.progress())
        continue;
      if (Clock::now() - begin > std::chrono::duration<double>(patience_s))
        fail(AH_ERROR_SYSTEM, "no message from %s for %g s",
             other.name().c_str(), patience_s);
    }
    if (!lost.empty())
      fail(AH_ERROR_SYSTEM, "the link to %s broke: %s", other.name().c_str(),
           lost.c_str());
    worker.release(request);
  }
};

std::string Messenger::lost;

} // namespace

/// Half of the round trip of 8 bytes: the lower quartile, for other processes
/// only ever make it longer.
static double measureLatency(Messenger &messenger, bool begins) {
  std::vector<double> seconds;
  for (int i = 0; i < 300; ++i) {
    auto start = Clock::now();
    if (begins)
      messenger.send(8);
    messenger.receive(8);
    if (!begins)
      messenger.send(8);
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count() / 2);
  }
  size_t quartile = seconds.size() / 4;
  std::nth_element(seconds.begin(), seconds.begin() + quartile, seconds.end());
  return seconds[quartile];
}

/// From the sender's side: the best of some rounds of large messages, each
/// round acknowledged.
static double measureBandwidth(Messenger &messenger, bool sends,
                               double latency_s) {
  double best = 0;
  for (int round = 0; round < 6; ++round) {
    constexpr int messages = 4;
    auto start = Clock::now();
    for (int i = 0; i < messages; ++i)
      sends ? messenger.send(bulkBytes) : messenger.receive(bulkBytes);
    sends ? messenger.receive(8) : messenger.send(8);
    double seconds =
        std::chrono::duration<double>(Clock::now() - start).count() - latency_s;
    // The first round makes the connection and touches the memory.
    if (round > 0)
      best = std::max(best, messages * double(bulkBytes) / seconds);
  }
  return best;
}

static std::string formatted(double number) {
  char text[40];
  snprintf(text, sizeof(text), "%.17g", number);
  return text;
}

/// Both ends call it, one with `begins`; the figures are those of its sends.
static LinkRates measureOneWay(Conversation &other, Messenger &messenger,
                               bool begins) {
  LinkRates link;
  link.latency_s = measureLatency(messenger, begins);
  link.bandwidth_bytes_per_s =
      measureBandwidth(messenger, begins, link.latency_s);
  if (begins)
    other.say(formatted(link.bandwidth_bytes_per_s));
  else
    link.bandwidth_bytes_per_s = strtod(other.hear().c_str(), nullptr);
  return link;
}

LinkRates probe::measureInside() {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    fail(AH_ERROR_SYSTEM, "cannot make a socket: %s", strerror(errno));
  pid_t child = fork();
  if (child < 0)
    fail(AH_ERROR_SYSTEM, "cannot start a process: %s", strerror(errno));
  if (child == 0) {
    close(sockets[0]);
    try {
      Conversation other(sockets[1], "the measuring process");
      Messenger messenger(other);
      measureOneWay(other, messenger, /*begins=*/false);
    } catch (const std::exception &error) {
      fprintf(stderr, "autohet-probe: error: %s\n", error.what());
      _exit(1);
    }
    _exit(0);
  }
  close(sockets[1]);
  Conversation other(sockets[0], "a process of this machine");
  LinkRates link;
  {
    Messenger messenger(other);
    link = measureOneWay(other, messenger, /*begins=*/true);
  }
  waitpid(child, nullptr, 0);
  return link;
}

//===----------------------------------------------------------------------===//
// Between machines
//===----------------------------------------------------------------------===//

static const char greeting[] = "autohet-probe 1";

static std::string describe(const Machine &machine) {
  std::string text = machine.name;
  for (double number :
       {double(machine.devices), double(machine.threads), machine.memory_bytes,
        machine.rates.flops_per_s, machine.rates.memory_bandwidth_bytes_per_s,
        machine.spread, machine.inside.bandwidth_bytes_per_s,
        machine.inside.latency_s})
    text += "\n" + formatted(number);
  return text;
}

static Machine parseMachine(const std::string &text, const char *peer) {
  Machine machine;
  machine.name = text.substr(0, text.find('\n'));
  double numbers[8];
  size_t at = machine.name.size();
  for (double &number : numbers) {
    if (at >= text.size())
      fail(AH_ERROR_INPUT, "%s says less of itself than this version asks for",
           peer);
    char *end;
    number = strtod(text.c_str() + at + 1, &end);
    at = end - text.c_str();
  }
  machine.devices = unsigned(numbers[0]);
  machine.threads = unsigned(numbers[1]);
  machine.memory_bytes = numbers[2];
  machine.rates = {numbers[3], numbers[4]};
  machine.spread = numbers[5];
  machine.inside = {numbers[6], numbers[7]};
  return machine;
}

static void greet(Conversation &other) {
  other.say(greeting);
  if (other.hear() != greeting)
    fail(AH_ERROR_INPUT, "%s is no autohet-probe of this version",
         other.name().c_str());
}

void probe::answer(const Machine &self, const std::string &address,
                   unsigned port) {
  std::string error;
  int listening = listenOn(address, port, /*mayBeLoopback=*/true, error);
  if (listening < 0)
    fail(AH_ERROR_INPUT, "%s", error.c_str());
  fprintf(stderr, "autohet-probe: waiting at %s:%u\n", address.c_str(), port);
  pollfd ready = {listening, POLLIN, 0};
  while (poll(&ready, 1, -1) < 0 && errno == EINTR) {
  }
  int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  close(listening);
  if (fd < 0)
    fail(AH_ERROR_SYSTEM, "cannot accept a connection: %s", strerror(errno));
  Conversation other(fd, "the machine that asks");
  greet(other);
  other.say(describe(self));
  Messenger messenger(other);
  measureOneWay(other, messenger, /*begins=*/false);
  measureOneWay(other, messenger, /*begins=*/true);
  other.hear(); // it has read all that it needs
}

MeasuredLink probe::ask(const std::string &address, unsigned port,
                        Machine &machine) {
  std::string error, peer = address + ":" + std::to_string(port);
  bool isFinal = false;
  int fd = -1;
  // The other side may still be measuring its devices.
  for (auto begin = Clock::now(); fd < 0; usleep(200000)) {
    fd = connectTo(address, port, /*seconds=*/2, error, isFinal);
    if (fd < 0 && (isFinal || Clock::now() - begin >
                                  std::chrono::duration<double>(patience_s)))
      fail(AH_ERROR_INPUT,
           "no autohet-probe --listen answers: %s (waited %g s)", error.c_str(),
           patience_s);
  }
  Conversation other(fd, peer);
  greet(other);
  machine = parseMachine(other.hear(), peer.c_str());
  machine.address = address;
  Messenger messenger(other);
  MeasuredLink link;
  link.there = measureOneWay(other, messenger, /*begins=*/true);
  link.back = measureOneWay(other, messenger, /*begins=*/false);
  other.say("bye");
  return link;
}

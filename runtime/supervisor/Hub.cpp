//===- Hub.cpp - node 0's side of the supervisors' exchange ---------------===//

#include "supervisor/Hub.h"
#include "supervisor/Calibration.h"

#include <algorithm>
#include <chrono>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace autohet::runtime;

Hub::Hub(const Manifest &manifest, Fingerprint fingerprint,
         double death_timeout_s, std::function<void(const Frame &)> deliver)
    : manifest(manifest), fingerprint(std::move(fingerprint)),
      death_timeout_s(death_timeout_s), deliver(std::move(deliver)),
      nodes(manifest.nodes.size()) {
  nodes[0].said = true;
}

Hub::~Hub() {
  if (listenSocket >= 0)
    close(listenSocket);
}

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

void Hub::addSockets(std::vector<pollfd> &sockets) const {
  auto add = [&](const Channel &channel) {
    if (channel.isOpen())
      sockets.push_back({channel.fd(),
                         short(POLLIN | (channel.hasUnsent() ? POLLOUT : 0)),
                         0});
  };
  if (listenSocket >= 0)
    sockets.push_back({listenSocket, POLLIN, 0});
  for (const Node &node : nodes)
    add(node.channel);
  for (const Stranger &stranger : strangers)
    add(stranger.channel);
}

void Hub::accept() {
  int fd;
  while (listenSocket >= 0 &&
         (fd = accept4(listenSocket, nullptr, nullptr, SOCK_CLOEXEC)) >= 0) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    strangers.push_back({Channel(fd), 0});
  }
}

void Hub::pump() {
  accept();
  Frame frame;
  for (auto it = strangers.begin(); it != strangers.end();) {
    bool open = it->channel.pump();
    bool known = it->channel.next(frame) && welcome(*it, frame);
    // A port scanner, or a wrong guest that has been told so.
    bool leaves = known || !open || !it->channel.isOpen() || it->age_s > 30;
    it = leaves ? strangers.erase(it) : std::next(it);
  }
  for (uint32_t i = 1; i < nodes.size(); ++i) {
    Channel &channel = nodes[i].channel;
    if (!channel.isOpen())
      continue;
    bool open = channel.pump();
    while (channel.next(frame))
      handle(i, frame);
    if (open && channel.isOpen())
      continue;
    channel.close();
    if (!succeeded)
      fail("the supervisor of node " + manifest.nodes[i].name +
           " is gone (its connection was lost)");
  }
}

/// A first frame. True: the stranger's channel has moved to its node.
bool Hub::welcome(Stranger &stranger, const Frame &frame) {
  Unpacker unpacker(frame.bytes);
  uint64_t index = unpacker.number();
  Fingerprint theirs = Fingerprint::unpack(unpacker);
  if (frame.type != FrameType::Hello || !unpacker.ok) {
    stranger.channel.close();
    return false;
  }
  auto refuse = [&](const std::string &why) {
    fail(why);
    stranger.channel.send(FrameType::Failure, Packer().text(why).bytes);
    stranger.channel.flush(1);
    stranger.channel.close();
    return false;
  };
  std::string name = index < nodes.size() ? manifest.nodes[index].name
                                          : "#" + std::to_string(index);
  std::string difference =
      fingerprint.compare(theirs, manifest.nodes[0].name, name);
  if (!difference.empty())
    return refuse(difference);
  if (index >= nodes.size() || nodes[index].said)
    return refuse("two processes say that they are node " + name +
                  ": start one process a node");
  nodes[index].said = true;
  if (!failure.empty())
    return refuse(failure); // too late
  nodes[index].channel = std::move(stranger.channel);
  return true;
}

void Hub::drain(double seconds) {
  auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  bool waitsForMissing = !failure.empty() && listenSocket >= 0;
  auto isAwaited = [&](const Node &node) {
    return node.channel.isOpen() || (waitsForMissing && !node.said);
  };
  while (std::any_of(nodes.begin(), nodes.end(), isAwaited) &&
         std::chrono::steady_clock::now() < end) {
    std::vector<pollfd> sockets;
    addSockets(sockets);
    poll(sockets.data(), sockets.size(), 50);
    pump();
  }
}

//===----------------------------------------------------------------------===//
// What the nodes say
//===----------------------------------------------------------------------===//

void Hub::broadcast(FrameType type, const std::string &bytes) {
  for (Node &node : nodes)
    node.channel.send(type, bytes);
  deliver({type, bytes});
}

void Hub::fail(const std::string &reason) {
  if (!failure.empty() || succeeded)
    return;
  failure = reason; // the first reason is the cause, the others are its effects
  broadcast(FrameType::Failure, Packer().text(reason).bytes);
}

void Hub::handle(uint32_t index, const Frame &frame) {
  Node &node = nodes[index];
  Unpacker unpacker(frame.bytes);
  node.silent_s = 0;
  switch (frame.type) {
  case FrameType::Addresses:
    return takeAddresses(node, index, frame);
  case FrameType::Measured:
    return takeRates(node, index, frame);
  case FrameType::Beat:
    node.beats.clear();
    for (uint32_t i = 0; i < manifest.rankCount(index); ++i)
      node.beats.push_back(unpacker.text());
    return;
  case FrameType::Failure:
    return fail(unpacker.text());
  case FrameType::Ended:
    node.ended = true;
    if (failure.empty() &&
        std::all_of(nodes.begin(), nodes.end(),
                    [](const Node &node) { return node.ended; })) {
      succeeded = true;
      broadcast(FrameType::AllEnded, "");
    }
    return;
  default:
    return fail("node " + manifest.nodes[index].name +
                " sent a message of unknown type " +
                std::to_string(static_cast<uint32_t>(frame.type)));
  }
}

void Hub::takeAddresses(Node &node, uint32_t index, const Frame &frame) {
  Unpacker unpacker(frame.bytes);
  for (uint32_t i = 0; i < manifest.rankCount(index); ++i)
    node.addresses.push_back(unpacker.text());
  node.hasAddresses = true;
  Packer all;
  for (const Node &one : nodes) {
    if (!one.hasAddresses)
      return;
    for (const std::string &address : one.addresses)
      all.text(address);
  }
  broadcast(FrameType::Peers, all.bytes);
  if (calibrates)
    broadcast(FrameType::Measure, "");
}

void Hub::takeRates(Node &node, uint32_t index, const Frame &frame) {
  Unpacker unpacker(frame.bytes);
  node.rates.clear();
  for (uint32_t i = 0; i < manifest.rankCount(index); ++i)
    node.rates.push_back(static_cast<double>(unpacker.number()));
  std::vector<double> all;
  for (const Node &one : nodes) {
    if (one.rates.empty())
      return;
    all.insert(all.end(), one.rates.begin(), one.rates.end());
  }
  Calibration result = judgeSpeeds(manifest, all);
  if (result.worstDeviation <= calibrationTolerance ||
      ++calibrations == calibrationTries)
    return broadcast(FrameType::Begin, Packer().text(result.text).bytes);
  for (Node &one : nodes)
    one.rates.clear();
  broadcast(FrameType::Measure, "");
}

void Hub::tick(double elapsed_s) {
  for (Stranger &stranger : strangers)
    stranger.age_s += elapsed_s;
  Packer beats;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    Node &node = nodes[i];
    for (uint32_t k = 0; k < manifest.rankCount(i); ++k)
      beats.text(k < node.beats.size() ? node.beats[k] : "");
    if (!node.channel.isOpen())
      continue;
    node.silent_s += elapsed_s;
    if (node.silent_s > death_timeout_s)
      fail("the supervisor of node " + manifest.nodes[i].name +
           " has sent no heartbeat for " +
           std::to_string(static_cast<int>(node.silent_s)) +
           " s (--death-timeout)");
  }
  broadcast(FrameType::Beats, beats.bytes);
}

std::string Hub::missingNodes() const {
  std::string names;
  for (uint32_t i = 0; i < nodes.size(); ++i)
    if (!nodes[i].said)
      names += (names.empty() ? "" : ", ") + manifest.nodes[i].name;
  return names;
}

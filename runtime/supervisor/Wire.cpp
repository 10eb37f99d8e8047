//===- Wire.cpp - framed messages over a socket ---------------------------===//

#include "supervisor/Wire.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

using namespace autohet::runtime;

Packer &Packer::number(uint64_t value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  return *this;
}

Packer &Packer::text(const std::string &value) {
  number(value.size());
  bytes += value;
  return *this;
}

uint64_t Unpacker::number() {
  uint64_t value = 0;
  if (bytes.size() - at < sizeof(value)) {
    ok = false;
    return 0;
  }
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  at += sizeof(value);
  return value;
}

std::string Unpacker::text() {
  uint64_t length = number();
  if (!ok || bytes.size() - at < length) {
    ok = false;
    return "";
  }
  at += length;
  return bytes.substr(at - length, length);
}

namespace {
struct FrameHead {
  uint32_t magic, type;
  uint64_t bytes;
};
constexpr uint32_t frameMagic = 0x4641'4801; // also the protocol's version
/// More than any frame of ours: what is longer does not speak our language.
constexpr uint64_t maxFrameBytes = 256u << 20;
} // namespace

Channel::Channel(int fd) : socket(fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

Channel &Channel::operator=(Channel &&other) noexcept {
  std::swap(socket, other.socket);
  std::swap(outgoing, other.outgoing);
  std::swap(incoming, other.incoming);
  return *this;
}

void Channel::close() {
  if (socket >= 0)
    ::close(socket);
  socket = -1;
  outgoing.clear();
}

void Channel::send(FrameType type, const std::string &bytes) {
  if (!isOpen())
    return;
  FrameHead head = {frameMagic, static_cast<uint32_t>(type), bytes.size()};
  outgoing.append(reinterpret_cast<const char *>(&head), sizeof(head));
  outgoing += bytes;
  pump();
}

bool Channel::pump() {
  if (!isOpen())
    return false;
  while (!outgoing.empty()) {
    ssize_t count =
        ::send(socket, outgoing.data(), outgoing.size(), MSG_NOSIGNAL);
    if (count < 0)
      break; // what is there to read may still say why
    outgoing.erase(0, count);
  }
  char buffer[65536];
  for (;;) {
    ssize_t count = recv(socket, buffer, sizeof(buffer), 0);
    if (count > 0)
      incoming.append(buffer, count);
    else if (count < 0 && errno == EINTR)
      continue;
    else
      return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

bool Channel::next(Frame &frame) {
  FrameHead head;
  if (incoming.size() < sizeof(head))
    return false;
  std::memcpy(&head, incoming.data(), sizeof(head));
  if (head.magic != frameMagic || head.bytes > maxFrameBytes) {
    incoming.clear(); // a stranger
    close();
    return false;
  }
  if (incoming.size() < sizeof(head) + head.bytes)
    return false;
  frame.type = static_cast<FrameType>(head.type);
  frame.bytes = incoming.substr(sizeof(head), head.bytes);
  incoming.erase(0, sizeof(head) + head.bytes);
  return true;
}

bool Channel::flush(double seconds) {
  auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (hasUnsent() && isOpen() && std::chrono::steady_clock::now() < end) {
    pollfd waiting = {socket, POLLOUT, 0};
    poll(&waiting, 1, 50);
    if (!pump())
      return false;
  }
  return !hasUnsent();
}

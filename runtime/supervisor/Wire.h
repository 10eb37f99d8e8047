//===- Wire.h - framed messages over a socket -----------------------------===//
//
// Supervisors among each other, and a supervisor with its workers, speak in
// frames: a type, a length, bytes. Small, few, and never on a step's path.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_WIRE_H
#define AUTOHET_RUNTIME_SUPERVISOR_WIRE_H

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace autohet::runtime {

enum class FrameType : uint32_t {
  // A supervisor to node 0
  Hello = 1,     ///< node, fingerprint
  Addresses = 2, ///< of its workers, in the order of devices
  Beat = 3,      ///< of its workers
  Failure = 4,   ///< why; both ways
  Ended = 5,     ///< all of its workers have done their work
  Measured = 11, ///< emulation: speeds of its workers
  // Node 0 to the supervisors
  Peers = 6,    ///< addresses of all ranks
  Beats = 7,    ///< of all ranks
  AllEnded = 8, ///< the job has succeeded
  Measure = 12, ///< emulation: all workers measure their speed now
  Begin = 13,   ///< emulation: what was measured; the job begins
  // A worker to its supervisor; Peers, Measure, Begin and AllEnded come back
  Ready = 9,       ///< its address; Measured is its speed
  WorkerEnded = 10 ///< status, text
};

/// Builds and reads a frame's bytes. A reader that runs over the end gives
/// zeros and `ok` false.
class Packer {
public:
  std::string bytes;
  Packer &number(uint64_t value);
  Packer &text(const std::string &value);
};

class Unpacker {
public:
  explicit Unpacker(const std::string &bytes) : bytes(bytes) {}
  uint64_t number();
  std::string text();
  bool ok = true;

private:
  const std::string &bytes;
  size_t at = 0;
};

struct Frame {
  FrameType type;
  std::string bytes;
};

/// One end of a connected stream socket, which it owns and makes non-blocking.
class Channel {
public:
  Channel() = default;
  explicit Channel(int fd);
  Channel(Channel &&other) noexcept { *this = std::move(other); }
  Channel &operator=(Channel &&other) noexcept;
  ~Channel() { close(); }

  bool isOpen() const { return socket >= 0; }
  int fd() const { return socket; }
  void close();

  /// Never blocks: what does not fit is kept for pump().
  void send(FrameType type, const std::string &bytes);
  bool hasUnsent() const { return !outgoing.empty(); }

  /// Sends and receives what it can; false when the other side is gone.
  bool pump();
  bool next(Frame &frame);

  /// Blocks until everything is sent, for at most `seconds`.
  bool flush(double seconds);

private:
  int socket = -1;
  std::string outgoing, incoming;
};

} // namespace autohet::runtime

#endif

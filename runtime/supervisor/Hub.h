//===- Hub.h - node 0's side of the supervisors' exchange -----------------===//
//
// All supervisors, node 0's own included, talk to the hub and to nobody else:
// it compares fingerprints, hands out all addresses, mixes the heartbeats,
// notices lost connections and silence, and tells everybody the first failure.
// It has no threads and no clock of its own: its supervisor's loop calls it.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_HUB_H
#define AUTOHET_RUNTIME_SUPERVISOR_HUB_H

#include "supervisor/Fingerprint.h"
#include "supervisor/Manifest.h"
#include "supervisor/Wire.h"

#include <functional>
#include <list>
#include <poll.h>
#include <string>
#include <vector>

namespace autohet::runtime {

class Hub {
public:
  /// `deliver` takes what the hub tells node 0's own supervisor.
  Hub(const Manifest &manifest, Fingerprint fingerprint, double death_timeout_s,
      std::function<void(const Frame &)> deliver);
  ~Hub();

  /// After the addresses, measure the ranks' speeds.
  void calibrate() { calibrates = true; }

  /// For a plan of several nodes.
  void listen(int socket) { listenSocket = socket; }

  /// What node `node` says; node 0's own supervisor calls this directly.
  void handle(uint32_t node, const Frame &frame);

  void addSockets(std::vector<pollfd> &sockets) const;
  /// Accepts, reads and writes whatever is possible.
  void pump();
  /// The clocks: `elapsed_s` of listening have passed.
  void tick(double elapsed_s);

  /// Names of the nodes that have not said hello.
  std::string missingNodes() const;
  /// After the end: until all others have closed, at most `seconds`. After a
  /// failure also until the missing ones have come and been told.
  void drain(double seconds);

private:
  struct Node {
    Channel channel; // closed for node 0
    bool said = false, hasAddresses = false, ended = false;
    double silent_s = 0;
    std::vector<std::string> addresses, beats;
    std::vector<double> rates; // measured; empty until then
  };
  struct Stranger { // has connected, has not said hello
    Channel channel;
    double age_s = 0;
  };

  const Manifest &manifest;
  const Fingerprint fingerprint;
  const double death_timeout_s;
  std::function<void(const Frame &)> deliver;
  int listenSocket = -1;
  std::vector<Node> nodes;
  std::list<Stranger> strangers;
  std::string failure; ///< of the job; "" while there is none
  bool succeeded = false;
  bool calibrates = false;
  unsigned calibrations = 0;

  void accept();
  bool welcome(Stranger &stranger, const Frame &frame);
  void broadcast(FrameType type, const std::string &bytes);
  void fail(const std::string &reason);
  void takeAddresses(Node &node, uint32_t index, const Frame &frame);
  void takeRates(Node &node, uint32_t index, const Frame &frame);
};

} // namespace autohet::runtime

#endif

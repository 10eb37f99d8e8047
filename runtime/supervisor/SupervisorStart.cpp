//===- SupervisorStart.cpp - a supervisor's beginning ---------------------===//
//
// Everything before the loop: what this node is, whether it can run here, where
// the others are, and its workers.
//
//===----------------------------------------------------------------------===//

#include "supervisor/HostFeatures.h"
#include "supervisor/Sockets.h"
#include "supervisor/Supervisor.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace autohet::runtime;

std::string autohet::runtime::folderOfExecutable() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string text(path, std::max<ssize_t>(length, 0));
  return text.substr(0, text.rfind('/'));
}

bool Supervisor::prepare(std::string &error) {
  if (!parseManifest(image.manifest, manifest, error)) {
    error = "the manifest in this executable is damaged: " + error;
    return false;
  }
  if (image.node >= manifest.nodes.size() ||
      image.device_count != manifest.rankCount(image.node)) {
    error = "this executable holds " + std::to_string(image.device_count) +
            " devices, its manifest says otherwise for node " +
            std::to_string(image.node);
    return false;
  }
  firstRank = manifest.firstRank(image.node);
  fingerprint = fingerprintOf(manifest, options, folder);
  auto decided = decideLaunch(
      manifest, image.node, options,
      [](const char *name) { return std::getenv(name); }, fingerprint.hash(),
      error);
  if (!decided)
    return false;
  launch = *decided;
  if (page.create(manifest.ranks.size(), firstRank, image.device_count) !=
      AH_OK) {
    error = ah_last_error();
    return false;
  }
  return true;
}

/// UCX takes the interface that the supervisors reach each other through.
static void chooseInterface(int socket) {
  std::string name = interfaceOf(socket);
  if (!name.empty())
    setenv("UCX_NET_DEVICES", name.c_str(), /*overwrite=*/0);
}

bool Supervisor::meet(std::string &error) {
  if (image.node != 0)
    return connectUpstream(error);
  hub = std::make_unique<Hub>(manifest, fingerprint, options.death_timeout_s,
                              [this](const Frame &frame) { onFrame(frame); });
  if (manifest.nodes.size() == 1)
    return true; // no port
  bool allLocal =
      std::all_of(manifest.nodes.begin(), manifest.nodes.end(),
                  [](const ManifestNode &node) { return node.isLocal(); });
  bool asked = options.master_address && *options.master_address;
  int socket = listenOn(launch.masterAddress, launch.masterPort,
                        /*mayBeLoopback=*/allLocal || asked, error);
  if (socket < 0)
    return false;
  hub->listen(socket);
  chooseInterface(socket);
  return true;
}

/// Node 0 may be started later than we are: tried again until it is there.
bool Supervisor::connectUpstream(std::string &error) {
  for (;;) {
    bool isFinal = false;
    int socket = connectTo(launch.masterAddress, launch.masterPort,
                           /*seconds=*/2, error, isFinal);
    if (socket >= 0) {
      chooseInterface(socket);
      upstream = Channel(socket);
      Packer hello;
      hello.number(image.node);
      fingerprint.pack(hello);
      upstream.send(FrameType::Hello, hello.bytes);
      return true;
    }
    onSignals();
    if (state == State::Failed)
      return false;
    double waited_s =
        std::chrono::duration<double>(Clock::now() - started).count();
    if (isFinal || waited_s > options.stall_timeout_s) {
      error = "cannot reach node " + manifest.nodes[0].name + ": " + error;
      return false;
    }
    if (!toldWaiting && waited_s > 5) {
      toldWaiting = true;
      say("waiting for node " + manifest.nodes[0].name + ": " + error);
    }
    usleep(100000);
  }
}

bool Supervisor::startWorkers(std::string &error) {
  const ManifestNode &node = manifest.nodes[image.node];
  std::string missing = missingFeatures(node.features);
  if (!missing.empty()) {
    error = "this machine's CPU lacks " + missing +
            ", which the code for node " + node.name +
            " uses; compile for the target that it has";
    return false;
  }
  if (options.emulate && !(emulation = makeEmulation(manifest, error)))
    return false;
  if (emulation && hub) {
    hub->calibrate();
    say("emulating: " + emulation->describe());
  }
  if (manifest.ranks.size() > 1)
    sharedMemory.open();
  failureFd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  workers.resize(image.device_count);
  for (uint32_t device = 0; device < workers.size(); ++device) {
    WorkerHandle handle;
    handle.device = device;
    handle.pageFd = page.fd();
    handle.failureFd = failureFd;
    workers[device].rank = firstRank + device;
    if (emulation &&
        !(workers[device].claim = emulation->claim(workers[device].rank))) {
      error = "cannot emulate the speed of " +
              manifest.describeRank(workers[device].rank) + ": " +
              strerror(errno);
      return false;
    }
    if (!startWorker(workers[device], handle, argv, error))
      return false;
  }
  return true;
}

extern "C" int ah_supervisor_main(const ah_node_image *image,
                                  const ah_supervisor_options *options, int,
                                  char **argv) {
  // The caller's struct may be older and shorter than ours.
  ah_supervisor_options own = {};
  own.launched_node = -1;
  std::memcpy(&own, options,
              std::min<size_t>(options->struct_bytes, sizeof(own)));
  return Supervisor(*image, own, argv).run();
}

//===- FakeNode.cpp - a node's executable without a model -----------------===//
//
// What the supervisor's tests start, directly or through autohet-run. Its
// workers walk steps: sleep, pass a number around the ring of ranks, agree.
// Arguments, all `name=value`:
//
//   manifest=FILE node=N    what it is
//   steps=N step-ms=N       how long it runs
//   lr=X                    an option that changes numbers
//   emulate=1               at the speeds of the manifest
//   death-timeout=S stall-timeout=S master-port=N
//   fail=RANK,STEP,HOW      HOW: error, exit, abort, hang, size
//
// A save writes the file `saved-RANK` beside the manifest.
//
//===----------------------------------------------------------------------===//

#include "autohet/runtime/comm.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

static std::map<std::string, std::string> arguments;

static double number(const char *name, double otherwise) {
  auto found = arguments.find(name);
  return found == arguments.end() ? otherwise
                                  : std::atof(found->second.c_str());
}

namespace {

struct Worker {
  const ah_worker_link &link;
  uint32_t rank, worldSize;
  std::string folder;

  ah_status walk();
  ah_status transfer(uint32_t peer, bool isSend, uint64_t &value,
                     uint64_t bytes, uint64_t step);
  void misbehave(uint64_t step, uint64_t &bytes);
};

} // namespace

ah_status Worker::transfer(uint32_t peer, bool isSend, uint64_t &value,
                           uint64_t bytes, uint64_t step) {
  ah_request request = {};
  request.peer = peer;
  request.is_send = isSend;
  request.tag = ah_tag(AH_TAG_DATA, 0, step);
  request.data = &value;
  request.bytes = bytes;
  request.what = isSend ? "send ring" : "recv ring";
  request.step = step;
  ah_status status = link.table->start(link.comm, &request);
  return status == AH_IN_PROGRESS ? link.table->wait(link.comm, &request)
                                  : status;
}

void Worker::misbehave(uint64_t step, uint64_t &bytes) {
  unsigned who, when;
  char how[16] = "";
  if (sscanf(arguments["fail"].c_str(), "%u,%u,%15s", &who, &when, how) != 3 ||
      who != rank || when != step)
    return;
  std::string text = how;
  if (text == "exit")
    _exit(3);
  if (text == "abort")
    abort();
  if (text == "size")
    bytes = 4;
  while (text == "hang")
    pause();
}

ah_status Worker::walk() {
  uint64_t steps = number("steps", 10), value[2] = {0, 0};
  __atomic_store_n(&link.board->phase, AH_PHASE_RUNNING, __ATOMIC_RELAXED);
  for (uint64_t step = 0; step < steps; ++step) {
    __atomic_store_n(&link.board->step, step, __ATOMIC_RELAXED);
    __atomic_fetch_add(&link.board->commands, 1, __ATOMIC_RELAXED);
    if (step == 1) // all ranks have met
      std::ofstream(folder + "/running-" + std::to_string(rank));
    usleep(number("step-ms", 1) * 1000);
    uint64_t bytes = 8;
    misbehave(step, bytes);
    if (arguments["fail"] ==
        std::to_string(rank) + "," + std::to_string(step) + ",error")
      return ah_fail(AH_ERROR_INPUT, "tokens.bin: token 300 is out of range");
    ah_agreement agreement = {};
    agreement.struct_bytes = sizeof(agreement);
    agreement.step = step;
    agreement.flags =
        __atomic_exchange_n(&link.board->requests, 0, __ATOMIC_RELAXED);
    if (worldSize > 1) {
      uint32_t next = (rank + 1) % worldSize;
      uint32_t previous = (rank + worldSize - 1) % worldSize;
      // Even ranks send first: the ring cannot lock itself.
      for (bool sends : {rank % 2 == 0, rank % 2 == 1})
        if (ah_status status = transfer(sends ? next : previous, sends,
                                        value[sends], sends ? bytes : 8, step))
          return status;
      if (ah_status status = link.table->agree(link.comm, &agreement))
        return status;
    }
    if (agreement.flags & AH_FLAG_SAVE)
      std::ofstream(folder + "/saved-" + std::to_string(rank)) << step << "\n";
    if (agreement.flags & AH_FLAG_STOP)
      break;
  }
  return AH_OK;
}

static int work(const ah_node_image &image, uint32_t device,
                const ah_supervisor_options &options, uint32_t rank,
                uint32_t worldSize) {
  ah_worker_link link = {};
  link.struct_bytes = sizeof(link);
  ah_status status = ah_worker_join(&image, device, &options, &link);
  std::string manifest = arguments["manifest"];
  Worker worker = {link, rank, worldSize,
                   manifest.substr(0, manifest.rfind('/'))};
  if (status == AH_OK)
    status = worker.walk();
  std::string error = status == AH_OK ? "" : ah_last_error();
  ah_worker_leave(&link, status, status == AH_OK ? nullptr : error.c_str());
  return status == AH_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    argument.erase(0,
                   argument.find_first_not_of('-')); // autohet-run's have two
    size_t equals = argument.find('=');
    arguments[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  std::ifstream file(arguments["manifest"]);
  std::string manifest((std::istreambuf_iterator<char>(file)),
                       std::istreambuf_iterator<char>());
  uint32_t node = number("node", 0), first = 0, world = 0;
  // The manifest is read by whom we test; here counting is enough.
  std::vector<ah_device_image> devices;
  for (size_t at = 0; (at = manifest.find("{\"node\":", at)) != manifest.npos;
       ++at, ++world) {
    uint32_t owner = std::atoi(manifest.c_str() + at + 8);
    first += owner < node;
    if (owner == node)
      devices.push_back({});
  }
  ah_node_image image = {manifest.c_str(), devices.data(),
                         uint32_t(devices.size()), node, 0};
  std::string options_text = "lr=" + arguments["lr"] + "\n";
  ah_supervisor_options options = {};
  options.struct_bytes = sizeof(options);
  options.stall_timeout_s = number("stall-timeout", 0);
  options.death_timeout_s = number("death-timeout", 0);
  options.master_port = number("master-port", 0);
  options.launched_node = number("launched-node", -1);
  options.launched_nodes = number("nodes", 0);
  options.options_text = options_text.c_str();
  options.check_messages = number("check", 0);
  options.emulate = arguments.count("emulate") ? "cluster" : nullptr;
  int64_t device = ah_worker_device();
  if (device < 0)
    return ah_supervisor_main(&image, &options, argc, argv);
  return work(image, device, options, first + device, world);
}

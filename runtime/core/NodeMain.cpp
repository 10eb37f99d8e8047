//===- NodeMain.cpp - the main of a node's executable -----------------------===//
//
// The same executable is supervisor and worker: without ah_worker_device() it
// checks the command line, so that a mistake costs no process, and supervises;
// with it, it computes on that device.
//
//===----------------------------------------------------------------------===//

#include "autohet/runtime/comm.h"
#include "autohet/runtime/node.h"
#include "autohet/runtime/streams.h"

#include "core/Error.h"
#include "core/Inference.h"
#include "core/StandardOutput.h"
#include "core/Trainer.h"
#include "data/Checksum.h"
#include "supervisor/Manifest.h"
#include "supervisor/Preflight.h"

#include <climits>
#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace autohet::runtime;

// Where the executable lies, with a slash: weights.index is beside it.
static std::string executableFolder() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0)
    fail(AH_ERROR_SYSTEM, "cannot read /proc/self/exe: %s", strerror(errno));
  std::string text(path, length);
  return text.substr(0, text.rfind('/') + 1);
}

static const ah_device_image &deviceImage(const ah_node_image &image,
                                          int64_t device) {
  if (device < 0 || device >= int64_t(image.device_count))
    fail(AH_ERROR_INTERNAL, "this node has no device %lld", (long long)device);
  return image.devices[device];
}

// As in the cluster file; empty where the manifest cannot be read, which the
// supervisor says.
static std::string nodeName(const ah_node_image &image) {
  Manifest manifest;
  std::string error;
  bool isKnown = image.manifest &&
                 parseManifest(image.manifest, manifest, error) &&
                 image.node < manifest.nodes.size();
  return isKnown ? manifest.nodes[image.node].name : "";
}

static void describe(const ah_node_image &image) {
  static const char *const spaces[] = {"activations", "parameters",
                                       "gradients",   "optimizer state",
                                       "constants",   "scalars"};
  static const char *const optimizers[] = {"SGD", "Adam", "AdamW", "none"};
  printf("node %u of %u, %u devices\n", image.node, image.node_count,
         image.device_count);
  for (uint32_t index = 0; index < image.device_count; ++index) {
    Program program(image.devices[index], nodeName(image));
    const ah_program &header = program.header();
    printf("device %s: rank %u of %u, replica %u, stage %u, %u commands in %u "
           "streams, %u "
           "kernels\n",
           program.deviceName().c_str(), header.rank, header.world_size,
           header.replica, header.stage, program.commands.size(),
           program.streams.size(), image.devices[index].kernel_count);
    printf("  %u microbatches of %u samples from %u of a global batch of %u; "
           "optimizer %s\n",
           header.microbatches, header.microbatch_size, header.first_sample,
           header.global_batch, optimizers[header.optimizer]);
    uint64_t total = 0;
    for (unsigned space = 0; space < AH_SPACE_COUNT; ++space) {
      printf("  %-16s %12.3f MiB\n", spaces[space],
             double(header.space_bytes[space]) / (1 << 20));
      total += header.space_bytes[space];
    }
    printf("  %-16s %12.3f MiB\n", "all", double(total) / (1 << 20));
    auto ports = [&](const char *what, const Table<ah_port> &table) {
      for (const ah_port &port : table)
        printf("  %s %s %s %s\n", what, program.string(port.name),
               dtypeName(port.dtype), shapeText(port.shape, port.rank).c_str());
    };
    ports("input", program.inputs);
    ports("output", program.outputs);
  }
}

static void work(const ah_node_image &image, int64_t device,
                 const NodeOptions &options, const ah_worker_link &link) {
  Program program(deviceImage(image, device), nodeName(image));
  if (program.header().objective == AH_NO_OBJECTIVE)
    InferenceRun(program, options, link, executableFolder()).run();
  else
    Trainer(program, options, link, executableFolder()).run();
}

static ah_status runWorker(const ah_node_image &image, int64_t device,
                           const NodeOptions &options,
                           const ah_supervisor_options &supervisor) {
  ah_worker_link link = {};
  link.struct_bytes = sizeof link;
  ah_status status = ah_worker_join(&image, device, &supervisor, &link);
  if (status == AH_OK)
    status = guarded([&] { work(image, device, options, link); });
  ah_worker_leave(&link, status, status == AH_OK ? nullptr : ah_last_error());
  return status;
}

// One device in this process: nothing to watch and nobody to reach.
static ah_status runAlone(const ah_node_image &image,
                          const NodeOptions &options) {
  return guarded([&] {
    if (image.device_count != 1 ||
        deviceImage(image, 0).program->world_size != 1)
      fail(AH_ERROR_INPUT, "option --alone: this job has %u devices, not one",
           deviceImage(image, 0).program->world_size);
    static ah_board board;
    ah_worker_link link = {sizeof link, 0, nullptr, nullptr, &board, 0};
    work(image, 0, options, link);
  });
}

static int nodeMain(int argc, char **argv) {
  const ah_node_image &image = autohet_node_image;
  NodeOptions options = parseOptions(argc, argv);
  if (options.help) {
    const char *slash = strrchr(argv[0], '/');
    fputs(helpText(slash ? slash + 1 : argv[0]).c_str(), stdout);
    return 0;
  }
  if (options.version) {
    printf("autohet runtime, program format %u, transport interface %u\n",
           AH_PROGRAM_VERSION, AH_COMM_VERSION);
    return 0;
  }
  if (options.describe) {
    describe(image);
    return 0;
  }
  ah_supervisor_options supervisor = {};
  supervisor.struct_bytes = sizeof supervisor;
  supervisor.check_messages = options.checkMessages;
  supervisor.stall_timeout_s = options.stallTimeout_s;
  supervisor.death_timeout_s = options.deathTimeout_s;
  supervisor.options_text = options.numbersText.c_str();
  supervisor.options_hash =
      checksum64(options.numbersText.data(), options.numbersText.size());
  supervisor.emulate =
      options.emulate.empty() ? nullptr : options.emulate.c_str();
  supervisor.launched_node = options.node;
  supervisor.launched_nodes = options.nodes;
  supervisor.master_port = options.masterPort;
  supervisor.master_address =
      options.masterAddress.empty() ? nullptr : options.masterAddress.c_str();

  if (options.preflight)
    return runPreflight(image, supervisor, options.weightsIndex,
                        options.checkpoints);
  int64_t device = ah_worker_device();
  if (device >= 0) {
    // Printed once, by the supervisor, with the rank's name.
    return runWorker(image, device, options, supervisor) == AH_OK ? 0 : 1;
  }
  if (!options.alone)
    return ah_supervisor_main(&image, &supervisor, argc, argv);
  check(runAlone(image, options));
  return 0;
}

int autohet_node_main(int argc, char **argv) {
  int result = 1;
  ah_hold_standard_streams();
  ah_ignore_size_signal();
  ah_status status = guarded([&] {
    result = nodeMain(argc, argv);
    // A worker's supervisor has heard it from the training itself.
    if (result == 0 && ah_worker_device() < 0)
      checkStandardOutput();
  });
  if (status == AH_OK)
    return result;
  fprintf(stderr, "error: %s\n", ah_last_error());
  return 1;
}

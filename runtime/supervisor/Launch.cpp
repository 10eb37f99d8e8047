//===- Launch.cpp - which node, of how many, and where they meet ----------===//
//
// Which node an executable is, it carries itself. What a launcher says is only
// compared with it: a wrong count or order would otherwise show as a hang.
//
//===----------------------------------------------------------------------===//

#include "supervisor/Launch.h"

#include <charconv>
#include <cstring>

using namespace autohet::runtime;

namespace {

/// What one source says; -1 where it is silent.
struct Claim {
  std::string source, rankName, sizeName;
  int64_t rank = -1, size = -1;

  bool given() const { return rank >= 0 || size >= 0; }

  /// "OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=4"
  std::string text() const {
    std::string result;
    if (rank >= 0)
      result = rankName + "=" + std::to_string(rank);
    if (size >= 0)
      result +=
          (result.empty() ? "" : ", ") + sizeName + "=" + std::to_string(size);
    return result;
  }
};

class Reader {
public:
  Reader(const Environment &environment, std::string &error)
      : environment(environment), error(error) {}

  Claim claim(const char *source, const char *rankName, const char *sizeName) {
    Claim result;
    result.source = source;
    result.rankName = rankName;
    result.sizeName = sizeName;
    result.rank = number(rankName);
    result.size = number(sizeName);
    return result;
  }

  /// A count in a variable; one that is set but is no count is an error.
  int64_t number(const char *name) {
    const char *text = environment(name);
    if (!text || !*text)
      return -1;
    int64_t value = -1;
    auto [end, status] = std::from_chars(text, text + std::strlen(text), value);
    if ((status != std::errc() || *end || value < 0) && error.empty())
      error = std::string(name) + "=" + text +
              " in the environment: expected a number that is not negative";
    return value;
  }

private:
  const Environment &environment;
  std::string &error;
};

} // namespace

/// The MPI family: what mpirun and mpiexec set.
static Claim readMpi(Reader &reader) {
  Claim claim =
      reader.claim("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (!claim.given())
    claim = reader.claim("PMI", "PMI_RANK", "PMI_SIZE");
  return claim;
}

/// What srun says. Within a batch script, outside of srun, Slurm sets the same
/// variables although it launches one process only.
static Claim readSlurm(Reader &reader, const Environment &environment) {
  if (environment("SLURM_JOB_ID") && !environment("SLURM_STEP_ID"))
    return Claim();
  return reader.claim("Slurm", "SLURM_PROCID", "SLURM_NTASKS");
}

static Claim decideClaim(const ah_supervisor_options &options,
                         const Environment &environment, std::string &error) {
  if (options.launched_node >= 0 || options.launched_nodes) {
    Claim flags;
    flags.source = "the command line";
    flags.rankName = "--node";
    flags.sizeName = "--nodes";
    flags.rank = options.launched_node;
    flags.size = options.launched_nodes ? int64_t(options.launched_nodes) : -1;
    return flags;
  }
  Reader reader(environment, error);
  Claim mpi = readMpi(reader);
  Claim ranks = reader.claim("the environment", "RANK", "WORLD_SIZE");
  auto differ = [](int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; };
  if (mpi.given() && error.empty() &&
      (differ(mpi.rank, ranks.rank) || differ(mpi.size, ranks.size)))
    error = "two launchers disagree: " + mpi.text() + " (" + mpi.source +
            ") against " + ranks.text() +
            "; unset the ones that do not apply, or pass --node and --nodes";
  if (mpi.given())
    return mpi;
  Claim slurm = readSlurm(reader, environment);
  return slurm.given() ? slurm : ranks;
}

/// Node 0's address, for a plan of several nodes.
static std::string decideAddress(const Manifest &manifest,
                                 const ah_supervisor_options &options,
                                 const Environment &environment,
                                 std::string &error) {
  if (options.master_address && *options.master_address)
    return options.master_address;      // asked for: not second-guessed
  const ManifestNode *remote = nullptr; // from node 0, if there is one
  for (const ManifestNode &node : manifest.nodes)
    if (!node.isLocal() && (!remote || remote == &manifest.nodes[0]))
      remote = &node;
  const char *variable = environment("MASTER_ADDR");
  std::string address = variable ? variable : "";
  std::string source = "MASTER_ADDR=" + address;
  if (address.empty()) {
    address = manifest.nodes[0].address;
    source = "the cluster file gives node " + manifest.nodes[0].name + " " +
             (address.empty() ? "no address" : "the address " + address);
  }
  if (remote && (address.empty() || isLoopbackName(address)))
    error = source + ", which node " + remote->name + " at " + remote->address +
            " cannot reach; set MASTER_ADDR to an address of node " +
            manifest.nodes[0].name + " that the others reach";
  return address.empty() ? "127.0.0.1" : address;
}

/// Below the kernels' usual range of ephemeral ports (32768 and up), above the
/// well-known ones.
static uint16_t portOfJob(uint64_t jobHash) {
  return static_cast<uint16_t>(15000 + jobHash % 17000);
}

std::optional<Launch>
autohet::runtime::decideLaunch(const Manifest &manifest, uint32_t node,
                               const ah_supervisor_options &options,
                               const Environment &environment, uint64_t jobHash,
                               std::string &error) {
  error.clear();
  Claim claim = decideClaim(options, environment, error);
  if (!error.empty())
    return std::nullopt;
  uint32_t count = static_cast<uint32_t>(manifest.nodes.size());
  std::string wanted = "the plan has " + std::to_string(count) +
                       (count == 1 ? " node" : " nodes") +
                       " (one process a node)";
  if (claim.size >= 0 && claim.size != count) {
    error = claim.source + " says " + claim.text() + ", but " + wanted;
    return std::nullopt;
  }
  if (claim.rank >= 0 && claim.rank != node) {
    error = claim.source + " says " + claim.text() +
            ", but this executable is node " + std::to_string(node) + " (" +
            manifest.nodes[node].name +
            "): start the executables in the order of the plan's nodes";
    return std::nullopt;
  }

  Launch launch;
  launch.node = node;
  launch.launcher = claim.given() ? claim.source : "";
  if (count == 1)
    return launch;
  launch.masterAddress = decideAddress(manifest, options, environment, error);
  int64_t port = options.master_port;
  if (!port) {
    port = Reader(environment, error).number("MASTER_PORT");
    if (port < 0)
      port = portOfJob(jobHash);
  }
  if (error.empty() && (port < 1 || port > 65535))
    error = "MASTER_PORT=" + std::to_string(port) +
            ": a port is a number from 1 to 65535";
  if (!error.empty())
    return std::nullopt;
  launch.masterPort = static_cast<uint16_t>(port);
  return launch;
}

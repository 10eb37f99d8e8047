//===- LaunchLines.cpp - what to type for other launchers -----------------===//
//
// One process a node, in the order of the job's nodes: a supervisor starts its
// own workers, so no launcher needs to know how many devices a node has.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unistd.h>

using namespace autohet::run;
using autohet::runtime::Manifest;
using autohet::runtime::ManifestNode;

static std::string hostOf(const ManifestNode &node) {
  return node.address.empty() ? "localhost" : node.address;
}

static std::string commandOf(const CommandLine &line,
                             const ManifestNode &node) {
  std::string command = shellQuote(line.folder + "/" + node.executable);
  for (const std::string &argument : line.passed)
    command += " " + shellQuote(argument);
  return command;
}

static void printMpirun(const CommandLine &line, const Manifest &manifest) {
  std::set<std::string> hosts;
  for (const ManifestNode &node : manifest.nodes)
    hosts.insert(hostOf(node));
  // By default mpirun binds a process, and with it all workers, to one core,
  // and starts no more processes on a host than it has cores.
  printf("mpirun --bind-to none%s",
         hosts.size() < manifest.nodes.size() ? " --oversubscribe" : "");
  for (size_t i = 0; i < manifest.nodes.size(); ++i)
    printf("%s \\\n  -np 1 --host %s %s", i ? " :" : "",
           shellQuote(hostOf(manifest.nodes[i])).c_str(),
           commandOf(line, manifest.nodes[i]).c_str());
  printf("\n");
}

/// Slurm knows hosts by names of its own, which are no numeric addresses.
static std::string slurmNodeOf(const ManifestNode &node) {
  in6_addr parsed;
  bool isNumeric = inet_pton(AF_INET, node.address.c_str(), &parsed) == 1 ||
                   inet_pton(AF_INET6, node.address.c_str(), &parsed) == 1;
  return isNumeric || node.isLocal() ? node.name : node.address;
}

/// srun orders tasks by host name, and a node list too; only a host file keeps
/// the nodes' order.
static void printSrun(const CommandLine &line, const Manifest &manifest) {
  if (manifest.nodes.size() > 1 && manifest.nodes.front().address.empty())
    fprintf(stderr,
            "autohet-run: warning: the cluster file gives node %s no address: "
            "set MASTER_ADDR to one that the other nodes reach\n",
            manifest.nodes.front().name.c_str());
  printf("# These hosts must be Slurm's names of the nodes (scontrol show "
         "nodes).\ncat > autohet.hosts <<'EOF'\n");
  for (const ManifestNode &node : manifest.nodes)
    printf("%s\n", slurmNodeOf(node).c_str());
  printf("EOF\ncat > autohet.tasks <<'EOF'\n");
  for (size_t i = 0; i < manifest.nodes.size(); ++i)
    printf("%zu %s\n", i, commandOf(line, manifest.nodes[i]).c_str());
  printf("EOF\nSLURM_HOSTFILE=autohet.hosts srun --nodes=%zu --ntasks=%zu "
         "--distribution=arbitrary --cpu-bind=none --kill-on-bad-exit=0 "
         "--multi-prog autohet.tasks\n",
         manifest.nodes.size(), manifest.nodes.size());
}

static void printSsh(const CommandLine &line, const Manifest &manifest) {
  // ssh starts in the home folder, where relative names mean other files;
  // mpirun and srun start in this one.
  char *here = getcwd(nullptr, 0);
  if (!here)
    fail("the current folder has no name: %s", strerror(errno));
  std::string enter = "cd " + shellQuote(here) + " && ";
  free(here);
  // -tt would let ^C through to the remote side; SIGHUP does the same here.
  for (const ManifestNode &node : manifest.nodes)
    printf("ssh -- %s %s &\n", shellQuote(hostOf(node)).c_str(),
           shellQuote(enter + commandOf(line, node)).c_str());
  printf("wait\n");
}

int autohet::run::printLaunchLines(const CommandLine &line,
                                   const Manifest &manifest) {
  if (line.emulate)
    fail("--emulate is for nodes on this machine, --print for others");
  bool isLocal = true;
  for (const ManifestNode &node : manifest.nodes)
    isLocal &= node.isLocal();
  for (const ManifestNode &node : manifest.nodes)
    if (!isLocal && node.isLocal())
      fail("the cluster file gives node %s no address that the others reach",
           node.name.c_str());
  printf("# The folder must be at the same place on every node.\n");
  if (line.launcher == "mpirun")
    printMpirun(line, manifest);
  else if (line.launcher == "srun")
    printSrun(line, manifest);
  else
    printSsh(line, manifest);
  return 0;
}

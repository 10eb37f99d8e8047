//===- autohet-probe.cpp - writes the cluster file of real machines -------===//

#include "Probe.h"

#include "core/Error.h"
#include "core/Options.h"
#include "data/Mapped.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

using namespace autohet::probe;
using namespace autohet::runtime;

static const char help[] =
    R"(Usage: autohet-probe [options] [-o cluster.yaml]

Measures this machine's devices and links, and the links to other machines, and
writes a cluster file. Takes some seconds, in which the machine should do nothing
else.

  autohet-probe -o cluster.yaml                    this machine alone
  autohet-probe --listen=10.0.0.2:7070             on each other machine, then
  autohet-probe --address=10.0.0.1 --peer=10.0.0.2:7070 -o cluster.yaml

  --devices=N          devices of this machine, one worker each (default: 1)
  --threads=N          compute threads of a device (default: the usable cores,
                       divided among the devices)
  --name=NAME          of this node (default: the host's name)
  --address=ADDRESS    of this node, as the others reach it
  --peer=HOST:PORT     a machine where autohet-probe --listen waits; any number
  --listen=HOST:PORT   measure this machine, then wait at this address of it for
                       one that asks
  -o FILE              the cluster file (default: standard output)
  --help

The error status is 1, with a line that says why.
)";

namespace {

struct Place {
  std::string host;
  unsigned port = 0;
};

struct CommandLine {
  Machine machine;
  std::string output;
  std::vector<Place> peers;
  Place listen;
};

} // namespace

static unsigned readCount(const std::string &option, const std::string &text,
                          unsigned most) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text.c_str(), &end, 10);
  if (text.empty() || *end || text[0] == '-' || errno || !value || value > most)
    fail(AH_ERROR_INPUT,
         "option %s: found '%s', wanted a whole number from 1 to %u",
         option.c_str(), text.c_str(), most);
  return value;
}

static Place readPlace(const std::string &option, const std::string &text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    fail(AH_ERROR_INPUT, "option %s: found '%s', wanted HOST:PORT",
         option.c_str(), text.c_str());
  return {text.substr(0, colon),
          readCount(option, text.substr(colon + 1), 65535)};
}

/// A host's name is a node's, with what no node's name may have left out.
static std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  std::string result;
  for (const char *at = name; *at && *at != '.'; ++at)
    result += strchr("/@*?[],: ", *at) ? '-' : *at;
  return nameProblem(result).empty() ? result : "node";
}

static CommandLine parse(int argc, char **argv) {
  CommandLine line;
  line.machine.name = hostName();
  line.machine.threads = 0;
  for (int index = 1; index < argc; ++index) {
    std::string word = argv[index];
    if (word == "--help" || word == "-h") {
      fputs(help, stdout);
      exit(0);
    }
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals), value;
    bool known = false;
    for (const char *option : {"--devices", "--threads", "--name", "--address",
                               "--peer", "--listen", "-o"})
      known |= name == option;
    if (!known)
      fail(AH_ERROR_INPUT, "unknown option '%s'; see --help", word.c_str());
    if (equals != std::string::npos)
      value = word.substr(equals + 1);
    else if (++index < argc)
      value = argv[index];
    if (value.empty())
      fail(AH_ERROR_INPUT, "option %s needs a value; see --help", name.c_str());
    if (name == "--devices")
      line.machine.devices = readCount(name, value, 1024);
    else if (name == "--threads")
      line.machine.threads = readCount(name, value, 1024);
    else if (name == "--name")
      line.machine.name = value;
    else if (name == "--address")
      line.machine.address = value;
    else if (name == "--peer")
      line.peers.push_back(readPlace(name, value));
    else if (name == "--listen")
      line.listen = readPlace(name, value);
    else
      line.output = value;
  }
  if (std::string problem = nameProblem(line.machine.name); !problem.empty())
    fail(AH_ERROR_INPUT, "option --name: '%s' cannot name a node: it %s",
         line.machine.name.c_str(), problem.c_str());
  if (std::string problem = addressProblem(line.machine.address);
      !line.machine.address.empty() && !problem.empty())
    fail(AH_ERROR_INPUT, "option --address: '%s' is none: it %s",
         line.machine.address.c_str(), problem.c_str());
  if (line.listen.port && (!line.peers.empty() || !line.output.empty()))
    fail(AH_ERROR_INPUT, "--listen waits for another machine, which writes the "
                         "cluster file: it takes neither --peer nor -o");
  return line;
}

static void run(int argc, char **argv) {
  CommandLine line = parse(argc, argv);
  // Before minutes of measuring.
  if (!line.output.empty())
    checkWritable(line.output);
  Machine &self = line.machine;
  unsigned cores = usableCores();
  if (!self.threads)
    self.threads = std::max(1u, cores / self.devices);
  if (self.devices * self.threads > cores)
    fprintf(stderr,
            "autohet-probe: warning: %u devices of %u threads share %u cores\n",
            self.devices, self.threads, cores);
  self.memory_bytes = usableMemoryBytes() / self.devices;
  measureDevices(self);
  if (self.spread > 0.1)
    fprintf(stderr,
            "autohet-probe: warning: the fastest device is %.0f %% faster than "
            "the slowest, whose figures are written; is the machine busy?\n",
            self.spread * 100);
  self.inside = measureInside();
  if (line.listen.port)
    return answer(self, line.listen.host, line.listen.port);
  std::vector<Machine> machines = {self};
  std::vector<MeasuredLink> links;
  for (const Place &peer : line.peers) {
    Machine other;
    links.push_back(ask(peer.host, peer.port, other));
    for (const Machine &known : machines)
      if (known.name == other.name)
        fail(AH_ERROR_INPUT, "two machines are called '%s': give one --name",
             other.name.c_str());
    machines.push_back(other);
  }
  if (!line.peers.empty() && self.address.empty())
    fprintf(stderr, "autohet-probe: warning: without --address the other "
                    "machines cannot reach this one\n");
  std::string text = clusterText(machines, links);
  if (!line.output.empty()) {
    AtomicFile file(line.output);
    file.write(text.data(), text.size());
    return file.commit();
  }
  if (fputs(text.c_str(), stdout) < 0 || fflush(stdout) != 0)
    fail(AH_ERROR_SYSTEM, "cannot write to standard output: %s",
         strerror(errno));
}

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &error) {
    fprintf(stderr, "autohet-probe: error: %s\n", error.what());
    return 1;
  }
}

//===- PreflightRun.cpp - asks every node whether it could run ------------===//
//
// Each executable knows what it needs and checks it where it is started, so
// this starts it with --preflight: here for local nodes, through ssh for the
// others.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::run;
using autohet::runtime::Manifest;
using autohet::runtime::ManifestNode;

int autohet::run::runPreflight(const CommandLine &line,
                               const Manifest &manifest) {
  int failures = 0;
  for (const ManifestNode &node : manifest.nodes) {
    std::string command =
        shellQuote(line.folder + "/" + node.executable) + " --preflight";
    for (const std::string &argument : line.passed)
      command += " " + shellQuote(argument);
    if (!node.isLocal()) {
      // Relative names mean files of this folder, as in the run.
      char *here = getcwd(nullptr, 0);
      if (here)
        command = "cd " + shellQuote(here) + " && " + command;
      free(here);
      command = "ssh -o BatchMode=yes -o ConnectTimeout=10 -- " +
                shellQuote(node.address) + " " + shellQuote(command);
    }
    printf("node %s (%s)\n", node.name.c_str(),
           node.isLocal() ? "here" : node.address.c_str());
    fflush(stdout);
    int status = system(command.c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 255 && !node.isLocal())
      printf("  FAIL  cannot be reached through ssh\n");
    failures += status != 0;
  }
  if (failures)
    printf("%d of %zu nodes cannot run this job\n", failures,
           manifest.nodes.size());
  else
    printf("all %zu nodes can run this job\n", manifest.nodes.size());
  return failures ? 1 : 0;
}

//===- autohet-run.cpp - runs a compiled job ------------------------------===//
//
// A convenience: the executables in the folder need nothing but to be started,
// once a node, by anything.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "autohet/runtime/streams.h"

using namespace autohet::run;

static int runAsAsked(const CommandLine &line,
                      const autohet::runtime::Manifest &manifest) {
  switch (line.what) {
  case CommandLine::Print:
    return printLaunchLines(line, manifest);
  case CommandLine::Preflight:
    return runPreflight(line, manifest);
  case CommandLine::Run:
    return runHere(line, manifest);
  }
  return 1;
}

int main(int argc, char **argv) {
  ah_hold_standard_streams();
  ah_ignore_size_signal();
  CommandLine line = parseCommandLine(argc, argv);
  return exitStatus(runAsAsked(line, readManifest(line.folder)));
}

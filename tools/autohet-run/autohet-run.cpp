//===- autohet-run.cpp - runs a compiled job ------------------------------===//
//
// A convenience: the executables in the folder need nothing but to be started,
// once a node, by anything.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"

using namespace autohet::run;

int main(int argc, char **argv) {
  CommandLine line = parseCommandLine(argc, argv);
  autohet::runtime::Manifest manifest = readManifest(line.folder);
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

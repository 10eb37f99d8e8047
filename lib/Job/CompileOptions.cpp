//===- CompileOptions.cpp - the options of autohet-compile ----------------===//
//
// In one table, because two tools must agree on them: autohet-compile, which
// obeys them, and autohet-run, which refuses a job file that misspells one.
//
//===----------------------------------------------------------------------===//

#include "autohet/Job/JobFile.h"

using namespace autohet;

const std::vector<JobOption> &autohet::compileOptions() {
  static const std::vector<JobOption> options = {
      // Cluster and plan
      {"cluster", "FILE",
       "cluster file; without it this machine as one device"},
      {"hostfile", "FILE", "hosts and slots, beside or instead of --cluster"},
      {"include", "PATTERNS", "keep only these devices, such as n0,n1/0"},
      {"global-batch", "N", "samples a step"},
      {"microbatch", "N", "samples a microbatch; else the planner's choice"},
      {"plan", "FILE", "use this plan instead of planning"},
      {"emit", "WHAT", "stop there and print"},
      // Model
      {"dim", "NAME=N", "bind a symbolic dim", true},
      {"batch-dim", "NAME", "which symbolic dim is the batch"},
      {"bind", "NAME=KIND", "feed an input: tokens, labels, ones, ...", true},
      {"objective", "KIND", "causal, masked or given"},
      {"tie", "NAME=OTHER", "make two constants one parameter", true},
      {"shared", "NAME", "accept a parameter with two uses", true},
      {"constant", "REGEX", "constants that are not trained", true},
      {"freeze", "REGEX", "parameters without gradient and state", true},
      {"optimizer", "KIND", "sgd, adam or adamw"},
  };
  return options;
}

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
      // Placement
      {"cluster", "FILE", "the machines; without it this one as one device"},
      {"hostfile", "FILE", "the machines as 'host slots=N [type=T]' lines"},
      {"include", "PATTERNS", "only devices that match", true},
      {"plan", "FILE", "follow this plan instead of making one"},
      {"global-batch", "N", "samples a step, on all devices together"},
      {"microbatch", "N", "samples a microbatch"},
      {"planner", "KIND", "which plans are looked at without a plan"},
      {"schedule", "KIND", "order of microbatches without a plan"},
      {"state-owner", "WHO", "who updates a parameter without a plan"},
      // Model
      {"mode", "KIND", "training (default) or inference"},
      {"dim", "NAME=N", "extent of a symbolic dim", true},
      {"batch-dim", "NAME",
       "the symbolic dim that counts samples; none, in inference: the input "
       "is one sample"},
      {"tie", "NAME=OTHER", "make two constants one parameter", true},
      {"shared", "NAME", "accept several uses of a parameter", true},
      {"bind", "NAME=KIND", "where an input comes from", true},
      {"constant", "REGEX", "constants that are not trained"},
      {"freeze", "REGEX", "parameters without gradient and state"},
      {"seq-len", "N", "tokens of a sample, for a config"},
      {"padding-mask", "", "give a config's decoder an attention_mask"},
      {"no-dropout", "", "leave out a config's dropout"},
      {"v", "", "say which keys of a config change nothing"},
      {"objective", "KIND",
       "labels: causal, masked or given; in inference latency or throughput"},
      {"loss", "KIND", "cross-entropy or mse"},
      {"loss-output", "NAME", "the output that the loss is of"},
      {"ignore-index", "N", "the label that does not count"},
      {"optimizer", "KIND", "sgd, adam, adamw or none"},
      // Output
      {"emit", "WHAT", "stop early and print"},
      {"kernel-cache", "FOLDER", "compiled kernels, by content"},
      {"runtime-library", "FILE", "the runtime that is linked in"},
      {"target-cpu", "CPU", "LLVM's name of the oldest CPU that must run it"},
      {"target-features", "LIST", "LLVM's features beyond that"},
      {"j", "N", "threads that compile kernels"},
  };
  return options;
}

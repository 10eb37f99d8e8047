//===- Inference.h - the batches of a run without training -------*- C++ -*-===//
//
// The program of a model that is only computed: no labels, no agreement, no
// update. It walks the same commands as training does, once a global batch of
// its inputs, and hands out what the model gives. Batches follow one another
// through a pipeline without a pause: events and slots count on from batch to
// batch.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_INFERENCE_H
#define AUTOHET_RUNTIME_CORE_INFERENCE_H

#include "core/BatchWindow.h"
#include "core/Gather.h"
#include "core/Options.h"
#include "core/OutputFiles.h"
#include "core/Walker.h"
#include "data/Feeder.h"

#include <memory>

namespace autohet::runtime {

class InferenceRun : private StepClient {
public:
  InferenceRun(const Program &program, const NodeOptions &options,
               const ah_worker_link &link, const std::string &folder);
  ~InferenceRun();

  /// All batches, from weights to the last file. Throws.
  void run();

private:
  // StepClient
  void feed(const Pass &pass, uint32_t input, uint64_t microbatch,
            void *to) override;
  void output(const Pass &pass, uint32_t output, uint64_t microbatch,
              const void *from) override;
  void agree(Pass &pass) override;
  double weightDecay(uint32_t) const override { return 0; }

  void load(const std::string &folder);
  void runBatch(uint64_t batch);
  void report(uint64_t batch);
  void measure(uint64_t batch);
  uint64_t warmingBatches() const;
  void measurePeriod(uint64_t endNs);
  void save(uint64_t batch);
  bool isFirstRank() const { return program.header().rank == 0; }

  const Program &program;
  const NodeOptions &options;
  ah_worker_link link;
  Memory memory;
  StepFile outputFile;
  uint64_t seed;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<Feeder> feeder;
  std::unique_ptr<Walker> walker;
  std::unique_ptr<BatchWindow> window;
  uint64_t batches = 1;
  /// Batches that a line has told of, and when it did.
  uint64_t reported = 0, reportedNs = 0;
  LineFile metricsFile;
  /// When the first batch and the latest one were done here.
  uint64_t firstNs = 0, latestNs = 0;
  std::vector<Piece> outputs;
};

} // namespace autohet::runtime

#endif

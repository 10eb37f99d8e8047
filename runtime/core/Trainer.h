//===- Trainer.h - the steps of a run ----------------------------*- C++ -*-===//
//
// What surrounds the walker: the numbers of each step, its data, the agreement
// that gates the update, evaluation, and everything that is written.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_TRAINER_H
#define AUTOHET_RUNTIME_CORE_TRAINER_H

#include "checkpoint/FolderLock.h"
#include "checkpoint/State.h"
#include "core/Gather.h"
#include "core/Nonfinite.h"
#include "core/Options.h"
#include "core/OutputFiles.h"
#include "core/Walker.h"
#include "data/Feeder.h"

#include <memory>
#include <set>

namespace autohet::runtime {

class Trainer : private StepClient {
public:
  Trainer(const Program &program, const NodeOptions &options,
          const ah_worker_link &link, const std::string &folder);
  ~Trainer();

  /// All steps, from weights to the last file. Throws.
  void run();

private:
  // StepClient
  void feed(const Pass &pass, uint32_t input, uint64_t microbatch,
            void *to) override;
  void output(const Pass &pass, uint32_t output, uint64_t microbatch,
              const void *from) override;
  void agree(Pass &pass) override;
  double weightDecay(uint32_t parameter) const override {
    return decay[parameter];
  }
  void scan(const Pass &pass, const ah_command &command,
            int64_t microbatch) override;

  void load(const std::string &folder);
  void readNames(const std::string &indexPath);
  /// Takes seed and numbers of a checkpoint; null: of a fresh run.
  void chooseSettings(const CheckpointManifest *resumed);
  void chooseDecay();
  std::unique_ptr<CheckpointReader> openCheckpoint();
  void warnOnce(const std::string &warning);
  void lockCheckpoints();
  FeedOptions feedOptions(bool evaluation) const;
  Pass makePass(uint64_t step, Feeder &feeder) const;
  void trainStep(uint64_t step);
  void evaluate(uint64_t step);
  void report(uint64_t step, double seconds);
  [[noreturn]] void stopAtNonfinite(const Pass &pass);
  void leaveToWhereItBegan(uint64_t step);
  void saveGradients(uint64_t step);
  void saveOutputs(uint64_t step);
  Piece readSlice(const ah_parameter &parameter, uint32_t buffer) const;
  void saveWeights();
  void save(uint64_t stepsDone);
  void checkCopies(uint64_t step);
  bool isFirstRank() const { return program.header().rank == 0; }
  void log(const std::string &line) const;

  const Program &program;
  const NodeOptions &options;
  ah_worker_link link;
  ah_optimizer_settings settings;
  std::vector<double> decay;
  Memory memory;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<Feeder> training, evaluation;
  Feeder *feeder = nullptr; // of the pass being walked
  std::unique_ptr<Walker> walker;
  std::unique_ptr<NonfiniteSearch> search;
  LineFile lossFile, metricsFile;
  StepFile outputFile, gradientFile;

  std::unique_ptr<FolderLock> lock; // of rank 0, where something is saved
  std::set<std::string> warned;
  std::string noDecay;
  Aliases aliases;              // where something asks for names
  std::set<std::string> frozen; // where something is saved
  uint64_t steps, firstStep = 0, updates = 0, seed = 0;
  uint64_t savedStep = ~uint64_t(0);
  bool stops = false;
  std::vector<Piece> outputs, gradients;
  // Agreed in the last pass.
  double loss = 0, norm = 0;
  uint64_t labelCount = 0;
  uint32_t flags = 0;
};

} // namespace autohet::runtime

#endif

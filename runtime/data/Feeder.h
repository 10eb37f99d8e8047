//===- Feeder.h - what a step's inputs hold ----------------------*- C++ -*-===//
//
// Chooses where each input of a program comes from: a file of tensors, token
// data, or a rule. Everything is a function of the seed, the step and the
// sample's place in the global batch.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_DATA_FEEDER_H
#define AUTOHET_RUNTIME_DATA_FEEDER_H

#include "data/Source.h"

namespace autohet::runtime {

struct FeedOptions {
  std::vector<std::string> inputs; // see TensorFiles
  std::string labels;              // safetensors; see --labels
  Text::Options text;              // empty path: no token data
};

class Feeder {
public:
  /// Opens files and checks them against the program's inputs; throws with
  /// file, tensor, what was found and wanted.
  Feeder(const Program &program, const FeedOptions &options);

  /// Fills one microbatch of `input`: samples [firstSample, ...) of step's
  /// batch.
  void fill(uint32_t input, uint64_t step, uint64_t firstSample, void *to) {
    sources[input]->fill(step, firstSample, static_cast<char *>(to));
  }
  /// Labels that count in the global batch of a step, or 0 where this program
  /// reads no labels; throws where a batch has none that counts.
  uint64_t countLabels(uint64_t step);
  /// How many whole global batches the token data has; ~0 where it never ends.
  uint64_t batches();
  /// How many different global batches the files of `--inputs` hold.
  uint64_t fileBatches() const;
  /// Throws where a file has another number than `most`, the largest of all
  /// ranks: its samples would be repeated beside others.
  void checkFileBatches(uint64_t most) const;
  const std::vector<std::string> &warnings() const { return texts; }
  /// Tensors of `--inputs` that are for no input of this program, in words.
  /// With several devices they may be for another one.
  std::vector<std::string> unusedInputs() const;
  /// What of --data and --labels this program does not read, in words.
  std::vector<std::string> unusedData() const;

private:
  std::unique_ptr<Source> choose(const ah_port &port);
  std::unique_ptr<Source> chooseLabels(const ah_port &port);
  std::unique_ptr<Source> fromInputs(const ah_port &port);
  std::string nearMisses() const;
  const ah_port *tokenPort() const;
  const std::shared_ptr<Text> &needText(const ah_port &port);

  const Program &program;
  FeedOptions options;
  TensorFiles inputFiles;
  std::unique_ptr<SafetensorsFile> labelFile;
  std::shared_ptr<Text> text;
  std::vector<std::unique_ptr<Source>> sources;
  Source *labels = nullptr;
  std::vector<std::string> texts;
};

} // namespace autohet::runtime

#endif

//===- Source.h - where one input's values come from -------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_DATA_SOURCE_H
#define AUTOHET_RUNTIME_DATA_SOURCE_H

#include "core/Program.h"
#include "data/TensorFile.h"
#include "data/Tokens.h"

#include <memory>
#include <optional>

namespace autohet::runtime {

class Source {
public:
  virtual ~Source() = default;
  /// One microbatch: samples [firstSample, ...) of step's global batch.
  virtual void fill(uint64_t step, uint64_t firstSample, char *to) = 0;
  /// Labels that count, in step's global batch.
  virtual uint64_t countLabels(uint64_t step) = 0;
  /// How many global batches of a file it has, one after the other; 0 where it
  /// is for any of them.
  virtual uint64_t batches() const { return 0; }
  /// "'in.safetensors', tensor 'x'"; empty where it is no file.
  virtual std::string where() const { return ""; }
};

/// Samples of token data, and the labels that an objective makes of them.
class Text {
public:
  struct Options {
    std::string path, dtype; // path "random": drawn
    bool shuffled = true;
    uint64_t seed = 0;
    double maskProbability = 0.15;
    int64_t maskToken = -1;
  };
  Text(const Program &program, const Options &options, int64_t length,
       int64_t vocabulary);

  /// The tokens and labels of sample number `sample` since the start.
  void read(uint64_t sample, int64_t *tokens, int64_t *labels);
  /// Labels that count among a sample's.
  uint64_t countLabels(uint64_t sample) const;
  /// Windows, ~0 for drawn tokens.
  uint64_t windows() const { return order ? windowCount : ~uint64_t(0); }
  int64_t sampleLength() const { return length; }
  /// Words about a dtype that cannot hold all of the vocabulary, or nothing.
  std::string warning() const;

private:
  bool masks(uint64_t sample, int64_t position, uint32_t *choice) const;
  void check(uint64_t window, const int64_t *tokens, uint64_t number) const;

  const Program &program;
  Options options;
  int64_t length, vocabulary;
  uint64_t windowCount = 0;
  std::unique_ptr<TokenFile> file;
  std::optional<SampleOrder> order;
};

/// A tensor of a file, whose samples are any number of global batches.
std::unique_ptr<Source> makeFileSource(const Program &program,
                                       const ah_port &port,
                                       const FileTensor &tensor, bool isLabels);
/// The tokens of `tokens`, shifted by one; the last of a sample is not counted.
std::unique_ptr<Source> makeShiftedSource(const Program &program,
                                          const ah_port &port,
                                          const ah_port &tokenPort,
                                          std::unique_ptr<Source> tokens);
std::unique_ptr<Source> makeTextSource(const Program &program,
                                       const ah_port &port,
                                       std::shared_ptr<Text> text,
                                       bool isLabels);
/// Ones, zeros, or 0, 1, 2, ... along the last dim.
std::unique_ptr<Source> makeRuleSource(const ah_port &port, ah_binding rule);

/// Integers of any dtype, one by one.
int64_t loadInteger(uint8_t dtype, const char *from, int64_t index);
void storeInteger(uint8_t dtype, char *to, int64_t index, int64_t value);
/// Elements of one sample of a port.
int64_t sampleElements(const ah_port &port);

} // namespace autohet::runtime

#endif

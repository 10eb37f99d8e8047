//===- Text.cpp - samples of token data -------------------------------------===//

#include "autohet/runtime/random.h"
#include "core/Error.h"
#include "data/Source.h"

#include <algorithm>

namespace autohet::runtime {

Text::Text(const Program &program, const Options &options, int64_t length,
           int64_t vocabulary)
    : program(program), options(options), length(length),
      vocabulary(vocabulary) {
  if (program.header().objective == AH_MASKED && options.maskToken < 0)
    fail(AH_ERROR_INPUT, "the masked objective needs --mask-token=ID");
  if (options.path == "random") {
    if (vocabulary <= 0)
      fail(AH_ERROR_INPUT, "--data=random needs a known vocabulary");
    return;
  }
  file = std::make_unique<TokenFile>(options.path, options.dtype);
  // A causal window has one more token, the last label; windows share it.
  uint64_t extra = program.header().objective == AH_CAUSAL ? 1 : 0;
  if (file->size() < uint64_t(length) + extra)
    fail(AH_ERROR_INPUT, "'%s' has %llu tokens, one sample needs %llu",
         file->path().c_str(), (unsigned long long)file->size(),
         (unsigned long long)(length + extra));
  windowCount = (file->size() - extra) / length;
  order.emplace(windowCount, options.seed, options.shuffled);
}

std::string Text::warning() const {
  if (!file || vocabulary <= 0 || file->largestId() >= uint64_t(vocabulary) - 1)
    return "";
  return format("'%s': its dtype holds ids up to %llu, the vocabulary has %lld "
                "entries: were "
                "larger ids cut off when it was written?",
                file->path().c_str(), (unsigned long long)file->largestId(),
                (long long)vocabulary);
}

void Text::check(uint64_t window, const int64_t *tokens,
                 uint64_t number) const {
  if (vocabulary <= 0)
    return;
  for (uint64_t index = 0; index < number; ++index)
    if (tokens[index] < 0 || tokens[index] >= vocabulary)
      fail(AH_ERROR_INPUT,
           "'%s': token %llu is %lld; the vocabulary has %lld entries, 0 to "
           "%lld: is %s the dtype that its ids were written in?",
           file->path().c_str(), (unsigned long long)(window * length + index),
           (long long)tokens[index], (long long)vocabulary,
           (long long)vocabulary - 1, file->dtypeText());
}

// BERT's rule: of the chosen positions 80 % show the mask token, 10 % any
// token, 10 % the right one. `choice` is the word that decides which.
bool Text::masks(uint64_t sample, int64_t position, uint32_t *choice) const {
  ah_random draw =
      ah_philox(options.seed, sample * length + position, AH_RANDOM_MASKING, 0);
  *choice = draw.word[1];
  return ah_uniform(draw.word[0]) < options.maskProbability;
}

void Text::read(uint64_t sample, int64_t *tokens, int64_t *labels) {
  bool causal = program.header().objective == AH_CAUSAL;
  std::vector<int64_t> window(length + (causal ? 1 : 0));
  if (order) {
    uint64_t number = order->window(sample);
    file->read(number * length, window.size(), window.data());
    check(number, window.data(), window.size());
  } else {
    for (size_t index = 0; index < window.size(); ++index)
      window[index] = ah_philox(options.seed, sample * (length + 1) + index,
                                AH_RANDOM_TOKENS, 0)
                          .word[0] %
                      uint64_t(vocabulary);
  }
  std::copy(window.begin(), window.begin() + length, tokens);
  if (causal) {
    std::copy(window.begin() + 1, window.end(), labels);
    return;
  }
  for (int64_t position = 0; position < length; ++position) {
    uint32_t choice;
    labels[position] = program.header().ignore_index;
    if (program.header().objective != AH_MASKED ||
        !masks(sample, position, &choice))
      continue;
    labels[position] = tokens[position];
    float part = ah_uniform(choice);
    if (part < 0.8f)
      tokens[position] = options.maskToken;
    else if (part < 0.9f && vocabulary > 0)
      tokens[position] = choice % uint64_t(vocabulary);
  }
}

uint64_t Text::countLabels(uint64_t sample) const {
  if (program.header().objective == AH_CAUSAL)
    return length;
  uint64_t count = 0;
  uint32_t choice;
  if (program.header().objective == AH_MASKED)
    for (int64_t position = 0; position < length; ++position)
      count += masks(sample, position, &choice);
  return count;
}

namespace {
class TextSource : public Source {
public:
  TextSource(const Program &program, const ah_port &port,
             std::shared_ptr<Text> text, bool isLabels)
      : program(program), port(port), text(std::move(text)),
        isLabels(isLabels) {
    if (port.batch_dim != 0 ||
        sampleElements(port) != this->text->sampleLength())
      fail(AH_ERROR_INPUT,
           "input '%s' of shape %s cannot hold samples of %lld tokens",
           program.string(port.name), shapeText(port.shape, port.rank).c_str(),
           (long long)this->text->sampleLength());
  }

  void fill(uint64_t step, uint64_t firstSample, char *to) override {
    int64_t length = text->sampleLength();
    std::vector<int64_t> tokens(length), labels(length);
    for (int64_t sample = 0; sample < port.shape[0]; ++sample) {
      text->read(step * program.header().global_batch + firstSample + sample,
                 tokens.data(), labels.data());
      const auto &values = isLabels ? labels : tokens;
      for (int64_t index = 0; index < length; ++index)
        storeInteger(port.dtype, to, sample * length + index, values[index]);
    }
  }

  uint64_t countLabels(uint64_t step) override {
    uint64_t batch = program.header().global_batch, count = 0;
    for (uint64_t sample = 0; sample < batch; ++sample)
      count += text->countLabels(step * batch + sample);
    return count;
  }

private:
  const Program &program;
  const ah_port port;
  std::shared_ptr<Text> text;
  bool isLabels;
};
} // namespace

std::unique_ptr<Source> makeTextSource(const Program &program,
                                       const ah_port &port,
                                       std::shared_ptr<Text> text,
                                       bool isLabels) {
  return std::make_unique<TextSource>(program, port, std::move(text), isLabels);
}

} // namespace autohet::runtime

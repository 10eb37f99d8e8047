//===- Feeder.cpp - what a step's inputs hold -------------------------------===//

#include "data/Feeder.h"

#include "core/Error.h"

namespace autohet::runtime {

Feeder::Feeder(const Program &program, const FeedOptions &options)
    : program(program), options(options), inputFiles(options.inputs) {
  if (!options.labels.empty())
    labelFile = std::make_unique<SafetensorsFile>(options.labels);
  for (const ah_port &port : program.inputs) {
    sources.push_back(port.role == 1 ? chooseLabels(port) : choose(port));
    if (port.role == 1)
      labels = sources.back().get();
  }
}

std::unique_ptr<Source> Feeder::fromInputs(const ah_port &port) {
  std::optional<FileTensor> tensor = inputFiles.find(program, port);
  return tensor ? makeFileSource(program, port, *tensor, port.role == 1)
                : nullptr;
}

std::vector<std::string> Feeder::unusedInputs() const {
  std::vector<std::string> names;
  for (const ah_port &port : program.inputs)
    names.push_back(program.string(port.name));
  return inputFiles.findUnused(names);
}

/// A tensor that was given under a name that no input has, in parentheses.
std::string Feeder::nearMisses() const {
  std::vector<std::string> unused = unusedInputs();
  return unused.empty() ? "" : " (" + unused.front() + ")";
}

static const char *ruleName(uint32_t binding) {
  return binding == AH_BIND_ONES    ? "ones"
         : binding == AH_BIND_ZEROS ? "zeros"
                                    : "arange";
}

std::unique_ptr<Source> Feeder::choose(const ah_port &port) {
  if (auto source = fromInputs(port))
    return source;
  switch (port.kind) {
  case AH_BIND_ONES:
  case AH_BIND_ZEROS:
  case AH_BIND_ARANGE:
    if (!options.inputs.empty())
      texts.push_back(format("input '%s' is not in --inputs: it is %s, as it "
                             "was bound when compiling",
                             program.string(port.name), ruleName(port.kind)));
    return makeRuleSource(port, ah_binding(port.kind));
  case AH_BIND_TOKENS:
    if (!options.text.path.empty())
      return makeTextSource(program, port, needText(port), false);
    fail(AH_ERROR_INPUT,
         "input '%s' needs tokens: give --data=FILE, or it in --inputs=FILE%s",
         program.string(port.name), nearMisses().c_str());
  default:
    fail(AH_ERROR_INPUT,
         "input '%s' has no values: give it in --inputs=FILE or "
         "--inputs=%s=FILE, or bind it when compiling "
         "(--bind %s=tokens|labels|ones|zeros|arange)%s",
         program.string(port.name), program.string(port.name),
         program.string(port.name), nearMisses().c_str());
  }
}

std::unique_ptr<Source> Feeder::chooseLabels(const ah_port &port) {
  if (labelFile) {
    const TensorInfo *info = labelFile->find(program.string(port.name));
    if (!info)
      info = labelFile->find("labels");
    if (!info && labelFile->tensors().size() == 1)
      info = &labelFile->tensors()[0];
    if (!info)
      info = &labelFile->get(program.string(port.name)); // throws
    return makeFileSource(
        program, port,
        {"'" + labelFile->path() + "', tensor '" + info->name + "'", *info,
         labelFile->data(*info)},
        true);
  }
  if (auto source = fromInputs(port))
    return source;
  if (program.header().objective == AH_GIVEN)
    fail(AH_ERROR_INPUT,
         "the labels '%s' have no values: give --labels=FILE, or compile "
         "with --objective=causal or masked",
         program.string(port.name));
  if (!options.text.path.empty())
    return makeTextSource(program, port, needText(port), true);
  const ah_port *tokens = tokenPort();
  if (tokens && program.header().objective == AH_CAUSAL)
    if (auto source = fromInputs(*tokens))
      return makeShiftedSource(program, port, *tokens, std::move(source));
  fail(AH_ERROR_INPUT,
       "the labels '%s' have no values: give --data=FILE or --labels=FILE",
       program.string(port.name));
}

const ah_port *Feeder::tokenPort() const {
  for (const ah_port &port : program.inputs)
    if (port.role == 0 && port.kind == AH_BIND_TOKENS)
      return &port;
  return nullptr;
}

const std::shared_ptr<Text> &Feeder::needText(const ah_port &port) {
  if (!text) {
    int64_t length = program.header().sequence_length
                         ? program.header().sequence_length
                         : sampleElements(port);
    text =
        std::make_shared<Text>(program, options.text, length, port.vocabulary);
    // Wrapped ids are within the vocabulary: only the dtype gives them away.
    if (std::string warning = text->warning(); !warning.empty())
      texts.push_back(warning);
  }
  return text;
}

uint64_t Feeder::countLabels(uint64_t step) {
  if (!labels)
    return 0;
  uint64_t count = labels->countLabels(step);
  if (count == 0)
    fail(AH_ERROR_INPUT,
         "step %llu: none of the labels of the global batch counts (all are "
         "%lld)",
         (unsigned long long)step, (long long)program.header().ignore_index);
  return count;
}

uint64_t Feeder::fileBatches() const {
  uint64_t most = 1;
  for (const std::unique_ptr<Source> &source : sources)
    most = std::max(most, source->batches());
  return most;
}

void Feeder::checkFileBatches(uint64_t most) const {
  uint64_t samples = program.header().global_batch;
  for (const std::unique_ptr<Source> &source : sources)
    if (uint64_t found = source->batches(); found && found != most)
      fail(AH_ERROR_INPUT,
           "%s has %llu samples, the longest of the inputs' files has %llu: "
           "they belong together, sample by sample",
           source->where().c_str(), (unsigned long long)(found * samples),
           (unsigned long long)(most * samples));
}

std::vector<std::string> Feeder::unusedData() const {
  std::vector<std::string> unused;
  if (!options.text.path.empty() && !text)
    unused.push_back("--data=" + options.text.path +
                     " is not used: no input is without it");
  if (!options.labels.empty() && !labels)
    unused.push_back("--labels=" + options.labels +
                     " is not used: the program has no labels");
  return unused;
}

uint64_t Feeder::batches() {
  // A stage in the middle of a pipeline reads none of it, and must know.
  const ah_program &header = program.header();
  if (!text && !options.text.path.empty() && header.sequence_length)
    text = std::make_shared<Text>(program, options.text, header.sequence_length,
                                  /*vocabulary=*/0);
  return text && text->windows() != ~uint64_t(0)
             ? text->windows() / header.global_batch
             : ~uint64_t(0);
}

} // namespace autohet::runtime

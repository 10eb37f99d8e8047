//===- Inference.cpp - the batches of a run without training ----------------===//

#include "core/Inference.h"

#include "core/Error.h"
#include "core/Fields.h"
#include "core/StandardOutput.h"
#include "data/Weights.h"

#include <cstring>
#include <utility>

namespace autohet::runtime {

/// Options that say how to train, and so say nothing here.
static void refuseTrainingOptions(const NodeOptions &options) {
  static const char *const training[] = {"data-order",
                                         "labels",
                                         "mask-token",
                                         "mask-probability",
                                         "lr",
                                         "betas",
                                         "eps",
                                         "weight-decay",
                                         "no-decay",
                                         "clip-norm",
                                         "schedule",
                                         "warmup-steps",
                                         "total-steps",
                                         "save-loss",
                                         "save-gradients",
                                         "save-weights",
                                         "eval-data",
                                         "eval-every",
                                         "eval-batches",
                                         "checkpoint",
                                         "checkpoint-every",
                                         "checkpoint-keep",
                                         "resume",
                                         "on-nonfinite",
                                         "check-copies"};
  for (const char *name : training)
    if (options.isGiven(name))
      fail(AH_ERROR_INPUT,
           "option --%s: this executable was compiled with --mode=inference; "
           "it does not train",
           name);
}

InferenceRun::InferenceRun(const Program &program, const NodeOptions &options,
                           const ah_worker_link &link,
                           const std::string &folder)
    : program(program), options(options), link(link),
      memory(program, *ah_cpu_device_table(), program.header().device),
      outputFile(options.saveOutputs), seed(options.seed.value_or(0)) {
  refuseTrainingOptions(options);
  checkOutputs(options, program);
  if (isFirstRank() && !options.metrics.empty())
    metricsFile = LineFile(options.metrics, /*append=*/false);
  load(folder);
  if (!options.trace.empty())
    trace = std::make_unique<Trace>(program);
  StepClient &client = *this;
  walker = std::make_unique<Walker>(memory, client, link, trace.get());
}

InferenceRun::~InferenceRun() = default;

void InferenceRun::load(const std::string &folder) {
  FeedOptions feed;
  feed.inputs = options.inputs;
  feed.text.path = options.data;
  feed.text.dtype = options.dataDtype;
  feed.text.shuffled = false;
  feed.text.seed = seed;
  feeder = std::make_unique<Feeder>(program, feed);
  WeightOptions weights;
  weights.indexPath = options.weightsIndex.empty() ? folder + "weights.index"
                                                   : options.weightsIndex;
  weights.overrideFiles = options.weights;
  weights.draw = options.init;
  weights.deviation = options.initDeviation;
  weights.seed = seed;
  std::vector<std::string> warnings = loadWeights(memory, weights);
  warnings.insert(warnings.end(), feeder->warnings().begin(),
                  feeder->warnings().end());
  std::vector<std::string> unused = feeder->unusedInputs();
  for (std::string &text : feeder->unusedData())
    unused.push_back(std::move(text));
  unused = findCommonTexts(program, link, unused, "unused data");
  warnings.insert(warnings.end(), unused.begin(), unused.end());
  for (const std::string &warning : warnings)
    if (isFirstRank())
      fprintf(stderr, "warning: %s\n", warning.c_str());
  // Each rank sees the inputs that it reads: the longest file of all decides.
  uint64_t inFiles =
      agreeOnMost(program, link, feeder->fileBatches(), "number of batches");
  feeder->checkFileBatches(inFiles);
  batches = options.steps ? uint64_t(*options.steps) : inFiles;
  if (batches > inFiles && !options.inputs.empty() && isFirstRank())
    fprintf(stderr,
            "warning: --steps=%llu: the inputs hold %llu batches, which are "
            "repeated\n",
            (unsigned long long)batches, (unsigned long long)inFiles);
  window = std::make_unique<BatchWindow>(program, link, batches);
}

void InferenceRun::run() {
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_RUNNING),
                   __ATOMIC_RELAXED);
  reportedNs = latestNs = monotonicNs();
  for (uint64_t batch = 0; batch < batches; ++batch)
    runBatch(batch);
  walker->drain();
  measurePeriod(monotonicNs());
  if (!outputFile.empty() && !outputFile.isPerStep())
    save(0);
  if (isFirstRank())
    checkStandardOutput();
  if (trace)
    trace->write(tracePath(options, program));
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_FINISHED),
                   __ATOMIC_RELAXED);
}

static Pass passOf(uint64_t batch, uint64_t seed) {
  Pass pass;
  pass.step = batch;
  pass.seed = seed;
  pass.updates = false;
  pass.evaluates = true;
  return pass;
}

void InferenceRun::runBatch(uint64_t batch) {
  window->beforeBatch(batch);
  // While this batch is computed, the next one's first messages arrive: unless
  // its outputs must be gathered in between, or it is to be alone.
  Pass next = passOf(batch + 1, seed);
  bool isAlone = options.oneAtATime || batch < warmingBatches();
  bool goesOn = batch + 1 < batches && !outputFile.isPerStep() && !isAlone;
  walker->run(passOf(batch, seed), goesOn ? &next : nullptr);
  window->afterBatch(batch);
  if (outputFile.isPerStep()) {
    walker->drain();
    save(batch);
  }
  if (isAlone) {
    walker->drain();
    agreeOnMost(program, link, batch, "end of a batch");
  }
  report(batch);
  measure(batch);
}

/// The pace since the line before: batches are on their way in several devices
/// at once.
void InferenceRun::report(uint64_t batch) {
  bool isLast = batch + 1 == batches;
  if (!isFirstRank() || !options.logEvery ||
      (batch % options.logEvery && !isLast))
    return;
  uint64_t now = monotonicNs();
  double seconds = (now - reportedNs) * 1e-9 / double(batch + 1 - reported);
  reportedNs = now;
  reported = batch + 1;
  printf("batch %llu/%llu  %.3g ms  %.4g samples/s\n",
         (unsigned long long)batch + 1, (unsigned long long)batches,
         seconds * 1e3, program.header().global_batch / seconds);
  fflush(stdout);
}

static std::string timed(const char *what, uint64_t ns,
                         const Program &program) {
  double seconds = ns * 1e-9;
  return format("\"%s\":%s,\"samples_per_s\":%s}", what,
                jsonNumber(seconds).c_str(),
                jsonNumber(program.header().global_batch / seconds).c_str());
}

void InferenceRun::measure(uint64_t batch) {
  uint64_t now = monotonicNs();
  if (metricsFile)
    metricsFile.write(format("{\"batch\":%llu,", (unsigned long long)batch) +
                      timed("batch_time_s", now - latestNs, program));
  latestNs = now;
  if (batch == warmingBatches())
    firstNs = now;
}

/// What a rank does once, such as opening a library, takes as long as many
/// batches: where others follow, all ranks do it before those begin, and not
/// one rank after the other while the others wait.
uint64_t InferenceRun::warmingBatches() const { return batches > 2 ? 1 : 0; }

/// From one batch to the next, the first one's way through the stages aside: on
/// the rank where that takes longest, as others may be ahead of it.
void InferenceRun::measurePeriod(uint64_t endNs) {
  if (batches < 2)
    return;
  uint64_t counted = batches - 1 - warmingBatches();
  uint64_t periodNs =
      agreeOnMost(program, link, (endNs - firstNs) / counted, "period");
  if (metricsFile)
    metricsFile.write(
        format("{\"batches\":%llu,", (unsigned long long)batches) +
        timed("period_s", periodNs, program));
}

void InferenceRun::feed(const Pass &pass, uint32_t input, uint64_t microbatch,
                        void *to) {
  const ah_program &header = program.header();
  feeder->fill(input, pass.step,
               header.first_sample + microbatch * header.microbatch_size, to);
}

/// All batches of a run are one tensor, unless each has a file of its own.
void InferenceRun::output(const Pass &pass, uint32_t index, uint64_t microbatch,
                          const void *from) {
  if (outputFile.empty())
    return;
  int64_t dim = program.outputs[index].batch_dim;
  bool isPerStep = outputFile.isPerStep();
  // What no sample is in is the same in each batch and microbatch.
  if (dim < 0 && !isPerStep && pass.step)
    return;
  Piece piece = readOutput(memory, index, microbatch, from);
  if (dim >= 0 && !isPerStep) {
    int64_t batch = program.header().global_batch;
    piece.box.global[dim] = batch * batches;
    piece.box.offset[dim] += batch * pass.step;
  }
  outputs.push_back(std::move(piece));
}

void InferenceRun::agree(Pass &) {
  fail(AH_ERROR_MISMATCH, "a program of inference has nothing to agree on");
}

void InferenceRun::save(uint64_t batch) {
  auto pieces =
      gatherPieces(program, link, std::exchange(outputs, {}), "--save-outputs");
  if (isFirstRank())
    writePieces(outputFile.pathOf(batch), pieces);
}

} // namespace autohet::runtime

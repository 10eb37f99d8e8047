//===- Trainer.cpp - the steps of a run -------------------------------------===//

#include "core/Trainer.h"

#include "core/Error.h"
#include "core/Fields.h"
#include "core/StandardOutput.h"
#include "data/Weights.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <regex>
#include <unistd.h>
#include <utility>

namespace autohet::runtime {

/// What the program cannot heed is no setting of its run.
static void refuseWithoutEffect(const NodeOptions &options,
                                const Program &program) {
  bool isSgd = program.header().optimizer == AH_SGD;
  for (const char *name : {"betas", "eps"})
    if (isSgd && options.isGiven(name))
      fail(AH_ERROR_INPUT,
           "option --%s: it is Adam's, the program was compiled with "
           "--optimizer=sgd",
           name);
  bool isMasked = program.header().objective == AH_MASKED;
  for (const char *name : {"mask-token", "mask-probability"})
    if (!isMasked && options.isGiven(name))
      fail(AH_ERROR_INPUT,
           "option --%s: the program was not compiled with "
           "--objective=masked",
           name);
}

Trainer::Trainer(const Program &program, const NodeOptions &options,
                 const ah_worker_link &link, const std::string &folder)
    : program(program), options(options), link(link),
      memory(program, *ah_cpu_device_table(), program.header().device),
      outputFile(options.saveOutputs), gradientFile(options.saveGradients),
      steps(options.steps.value_or(1)) {
  if (options.oneAtATime)
    fail(AH_ERROR_INPUT, "option --one-at-a-time: of executables that were "
                         "compiled with --mode=inference; steps of training "
                         "never overlap");
  refuseWithoutEffect(options, program);
  checkOutputs(options, program);
  load(folder);
  if (!options.trace.empty())
    trace = std::make_unique<Trace>(program);
  if (isFirstRank() && !options.saveLoss.empty())
    lossFile = LineFile(options.saveLoss, false);
  if (isFirstRank() && !options.metrics.empty())
    metricsFile = LineFile(options.metrics, options.resume);
  StepClient &client = *this;
  walker = std::make_unique<Walker>(memory, client, link, trace.get());
}

Trainer::~Trainer() = default;

void Trainer::log(const std::string &line) const {
  if (!isFirstRank())
    return;
  printf("%s\n", line.c_str());
  fflush(stdout);
}

/// What is so at every save is said at the first.
void Trainer::warnOnce(const std::string &warning) {
  if (isFirstRank() && warned.insert(warning).second)
    fprintf(stderr, "warning: %s\n", warning.c_str());
}

// The command line's number, else the checkpoint's, else PyTorch's default;
// what differs from the checkpoint is said.
void Trainer::chooseSettings(const CheckpointManifest *resumed) {
  ah_optimizer_defaults(ah_optimizer(program.header().optimizer), &settings);
  settings.total_steps = steps;
  if (resumed)
    settings = resumed->settings;
  auto choose = [&](const char *option, auto given, auto &value) {
    if (!given || double(*given) == double(value))
      return;
    if (resumed)
      log(format("%s is now %g; it was %g in the checkpoint", option,
                 double(*given), double(value)));
    value = *given;
  };
  choose("--lr", options.learningRate, settings.learning_rate);
  choose("--betas (first)", options.beta1, settings.beta1);
  choose("--betas (second)", options.beta2, settings.beta2);
  choose("--eps", options.epsilon, settings.epsilon);
  choose("--weight-decay", options.weightDecay, settings.weight_decay);
  choose("--clip-norm", options.clipNorm, settings.clip_norm);
  choose("--schedule (0 constant, 1 linear, 2 cosine)", options.schedule,
         settings.schedule);
  choose("--warmup-steps", options.warmupSteps, settings.warmup_steps);
  choose("--total-steps", options.totalSteps, settings.total_steps);
  uint32_t length = program.header().sequence_length;
  if (resumed && resumed->sequenceLength && resumed->sequenceLength != length)
    log(format("the sequence length is now %u; it was %u in the checkpoint: "
               "the data's windows are others",
               length, resumed->sequenceLength));
  seed = resumed ? resumed->seed : 0;
  choose("--seed", options.seed, seed);
  noDecay = options.noDecay.value_or(resumed ? resumed->noDecay : "");
  if (resumed && noDecay != resumed->noDecay)
    log(format("--no-decay is now '%s'; it was '%s' in the checkpoint",
               noDecay.c_str(), resumed->noDecay.c_str()));
}

/// Of each parameter, by any of its names.
void Trainer::chooseDecay() {
  decay.assign(program.parameters.size(), settings.weight_decay);
  if (noDecay.empty())
    return;
  std::regex pattern;
  try {
    pattern.assign(noDecay, std::regex::ECMAScript);
  } catch (const std::regex_error &error) {
    fail(AH_ERROR_INPUT,
         "option --no-decay: '%s' is not a regular expression: %s",
         noDecay.c_str(), error.what());
  }
  for (uint32_t index = 0; index < program.parameters.size(); ++index) {
    std::string name = program.string(program.parameters[index].name);
    bool isNamed = std::regex_search(name, pattern);
    for (auto &[alias, target] : aliases)
      isNamed |= target == name && std::regex_search(alias, pattern);
    if (isNamed)
      decay[index] = 0;
  }
}

/// What the index knows of names beyond the program's.
void Trainer::readNames(const std::string &indexPath) {
  if (options.saveWeights.empty() && options.checkpoints.empty() &&
      noDecay.empty())
    return;
  WeightsIndex index(indexPath);
  aliases = index.aliases();
  frozen = index.frozen();
}

FeedOptions Trainer::feedOptions(bool evaluation) const {
  FeedOptions feed;
  if (!evaluation) {
    feed.inputs = options.inputs;
    feed.labels = options.labels;
  }
  feed.text.path = evaluation ? options.evalData : options.data;
  feed.text.dtype = options.dataDtype;
  feed.text.shuffled = options.shuffled && !evaluation;
  feed.text.seed = seed;
  feed.text.maskProbability = options.maskProbability;
  feed.text.maskToken = options.maskToken;
  return feed;
}

// By rank 0 for all. Before anybody looks at what is in the folder.
void Trainer::lockCheckpoints() {
  // Where there is no folder there is nothing to resume from, which is said
  // when one is sought.
  if (!isFirstRank() || access(options.checkpoints.c_str(), F_OK) != 0)
    return;
  std::string warning;
  lock = std::make_unique<FolderLock>(options.checkpoints, warning);
  if (!warning.empty())
    fprintf(stderr, "warning: %s\n", warning.c_str());
}

/// Runs `read`. Where it fails, says which other checkpoint there is: nobody
/// goes back further than he knows.
template <typename Read>
static auto readOrNameAnother(const std::string &folder, uint64_t step,
                              Read &&read) {
  try {
    return read();
  } catch (const Error &error) {
    std::optional<FoundCheckpoint> other = findOther(folder, step);
    if (!other || error.status == AH_ERROR_MISMATCH) // as all of them are
      throw;
    fail(error.status, "%s; another one is '%s': --resume=%llu goes on from it",
         error.what(), other->folder.c_str(), (unsigned long long)other->step);
  }
}

// All ranks must go on from the same one: the first chooses.
std::unique_ptr<CheckpointReader> Trainer::openCheckpoint() {
  if (options.checkpoints.empty()) {
    if (options.resume || options.checkpointEvery)
      fail(AH_ERROR_INPUT,
           "options --resume and --checkpoint-every need --checkpoint=FOLDER");
    return nullptr;
  }
  lockCheckpoints();
  if (!options.resume) {
    // Two runs' checkpoints in one folder would be taken for one run's.
    if (isFirstRank() && access(options.checkpoints.c_str(), F_OK) == 0)
      for (const FoundCheckpoint &one : findCheckpoints(options.checkpoints))
        if (one.complete)
          fail(AH_ERROR_INPUT,
               "'%s' is a checkpoint of an earlier run: --resume from it, or "
               "give another "
               "folder",
               one.folder.c_str());
    return nullptr;
  }
  uint64_t step = 0;
  if (isFirstRank()) {
    std::vector<std::string> skipped;
    step =
        chooseCheckpoint(options.checkpoints, options.resumeStep, skipped).step;
    for (const std::string &name : skipped)
      log(format("skipped '%s': it is incomplete", name.c_str()));
    for (const FoundCheckpoint &one : findCheckpoints(options.checkpoints))
      if (one.complete && one.step > step)
        warnOnce(format("'%s' is newer and stays until this run saves that "
                        "step: --resume without a step would take it",
                        one.folder.c_str()));
  }
  step = broadcast(memory, link, step, "choice of a checkpoint");
  std::string folder = options.checkpoints + "/" + stepFolderName(step);
  log(format("resuming from '%s', %llu steps done", folder.c_str(),
             (unsigned long long)step));
  for (auto [isGiven, name] :
       {std::pair(options.init, "init"), {!options.weights.empty(), "weights"}})
    if (isGiven)
      log(format("option --%s: trained parameters have the checkpoint's values",
                 name));
  return readOrNameAnother(options.checkpoints, step, [&] {
    return std::make_unique<CheckpointReader>(folder);
  });
}

void Trainer::load(const std::string &folder) {
  std::unique_ptr<CheckpointReader> checkpoint = openCheckpoint();
  WeightOptions weights;
  weights.indexPath = options.weightsIndex.empty() ? folder + "weights.index"
                                                   : options.weightsIndex;
  chooseSettings(checkpoint ? &checkpoint->manifest() : nullptr);
  readNames(weights.indexPath);
  chooseDecay();
  training = std::make_unique<Feeder>(program, feedOptions(false));
  if (!options.evalData.empty())
    evaluation = std::make_unique<Feeder>(program, feedOptions(true));
  else if (options.evalEvery)
    fail(AH_ERROR_INPUT, "option --eval-every needs --eval-data");
  training->checkFileBatches(
      agreeOnMost(program, link, training->fileBatches(), "number of batches"));
  weights.overrideFiles = options.weights;
  weights.draw = options.init;
  weights.deviation = options.initDeviation;
  weights.seed = seed;
  weights.skipTrained = checkpoint != nullptr;
  std::vector<std::string> warnings = loadWeights(memory, weights);
  warnings.insert(warnings.end(), training->warnings().begin(),
                  training->warnings().end());
  std::vector<std::string> unused = training->unusedInputs();
  for (std::string &text : training->unusedData())
    unused.push_back(std::move(text));
  unused = findCommonTexts(program, link, unused, "unused data");
  warnings.insert(warnings.end(), unused.begin(), unused.end());
  for (const std::string &warning : warnings)
    if (isFirstRank())
      fprintf(stderr, "warning: %s\n", warning.c_str());
  if (!checkpoint)
    return;
  readOrNameAnother(options.checkpoints, checkpoint->manifest().step,
                    [&] { loadCheckpoint(memory, *checkpoint); });
  firstStep = savedStep = checkpoint->manifest().step;
  updates = checkpoint->manifest().updates;
  if (firstStep >= steps)
    log(format("nothing to do: --steps %llu counts from the start of training",
               (unsigned long long)steps));
}

void Trainer::run() {
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_RUNNING),
                   __ATOMIC_RELAXED);
  for (uint64_t step = firstStep; step < steps && !stops; ++step) {
    trainStep(step);
    if (evaluation && options.evalEvery && (step + 1) % options.evalEvery == 0)
      evaluate(step);
    bool isDue =
        options.checkpointEvery && (step + 1) % options.checkpointEvery == 0;
    bool isLast = step + 1 == steps || stops;
    if (!options.checkpoints.empty() &&
        (isDue || isLast || (flags & AH_FLAG_SAVE)))
      save(step + 1);
  }
  walker->drain();
  if (!options.saveWeights.empty())
    saveWeights();
  if (trace)
    trace->write(tracePath(options, program));
  // Now that everything else is safe.
  if (isFirstRank())
    checkStandardOutput();
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_FINISHED),
                   __ATOMIC_RELAXED);
}

Pass Trainer::makePass(uint64_t step, Feeder &from) const {
  Pass pass;
  pass.step = step;
  pass.seed = seed;
  pass.labelCount = from.countLabels(step);
  pass.update.kind = program.header().optimizer;
  pass.update.learning_rate = ah_learning_rate(&settings, step);
  pass.update.beta1 = settings.beta1;
  pass.update.beta2 = settings.beta2;
  pass.update.epsilon = settings.epsilon;
  pass.update.clips = settings.clip_norm > 0;
  pass.update.clip = 1;
  pass.update.updates = updates + 1;
  return pass;
}

void Trainer::trainStep(uint64_t step) {
  uint64_t begin = monotonicNs();
  Pass pass = makePass(step, *training);
  feeder = training.get();
  flags = 0;
  walker->run(pass);
  if (flags & AH_FLAG_NONFINITE) {
    if (options.onNonfinite == OnNonfinite::Stop)
      stopAtNonfinite(pass);
    log(format("step %llu: loss %g, gradient norm %g: update skipped",
               (unsigned long long)step, loss, norm));
  } else {
    ++updates;
  }
  saveOutputs(step);
  saveGradients(step);
  if (flags & AH_FLAG_STOP)
    stops = true;
  if (options.checkCopies)
    checkCopies(step);
  report(step, (monotonicNs() - begin) * 1e-9);
}

void Trainer::feed(const Pass &pass, uint32_t input, uint64_t microbatch,
                   void *to) {
  const ah_program &header = program.header();
  feeder->fill(input, pass.step,
               header.first_sample + microbatch * header.microbatch_size, to);
}

void Trainer::agree(Pass &pass) {
  double lossSum = memory.scalar64(AH_SCALAR_LOSS);
  ah_agreement agreement = {};
  agreement.struct_bytes = sizeof agreement;
  agreement.step = pass.step;
  agreement.squared_norm = memory.scalar64(AH_SCALAR_SQUARED_NORM);
  agreement.loss = lossSum;
  agreement.first_nonfinite_rank = ~uint64_t(0);
  agreement.label_count = pass.labelCount;
  if (!std::isfinite(agreement.squared_norm) ||
      !std::isfinite(agreement.loss)) {
    agreement.flags |= AH_FLAG_NONFINITE;
    agreement.first_nonfinite_rank = program.header().rank;
  }
  uint64_t requests = __atomic_load_n(&link.board->requests, __ATOMIC_RELAXED);
  if (pass.updates)
    agreement.flags |= requests & (AH_FLAG_SAVE | AH_FLAG_STOP);
  if (link.table)
    check(link.table->agree(link.comm, &agreement));
  // x86 makes negative NaNs, which print as "-nan".
  auto withoutSign = [](double x) { return std::isnan(x) ? std::fabs(x) : x; };
  loss = withoutSign(agreement.loss);
  norm = withoutSign(std::sqrt(agreement.squared_norm));
  flags = agreement.flags;
  labelCount = agreement.label_count;
  pass.update.clip = ah_clip_factor(&settings, agreement.squared_norm);
  pass.gateOpen = pass.updates && !(flags & AH_FLAG_NONFINITE);

  // All gradients have reached their owners and none is changed yet.
  if (pass.updates && gradientFile.holds(pass.step, firstStep))
    for (const ah_parameter &parameter : program.parameters) {
      if (!parameter.owned || !parameter.trained ||
          parameter.gradient_buffer == AH_NO_INDEX)
        continue;
      gradients.push_back(readSlice(parameter, parameter.gradient_buffer));
    }
}

void Trainer::output(const Pass &pass, uint32_t index, uint64_t microbatch,
                     const void *from) {
  if (!pass.updates || !outputFile.holds(pass.step, firstStep))
    return;
  outputs.push_back(readOutput(memory, index, microbatch, from));
}

void Trainer::scan(const Pass &pass, const ah_command &command,
                   int64_t microbatch) {
  search->look(command, microbatch, pass.firstMicrobatch);
}

void Trainer::stopAtNonfinite(const Pass &failed) {
  double badLoss = loss, badNorm = norm;
  // Walk the step again: nothing was updated, so it takes the same course.
  walker->drain();
  search = std::make_unique<NonfiniteSearch>(memory);
  search->lookAtParameters();
  Pass again = failed;
  again.updates = false;
  again.scans = true;
  walker->run(again);
  walker->drain();
  std::string finding = search->finding();
  if (finding.empty())
    finding =
        link.table ? "made on another rank" : "no command's result shows where";
  if (link.table)
    leaveToWhereItBegan(failed.step);
  fail(AH_ERROR_NONFINITE, "step %llu: loss %g, gradient norm %g: %s",
       (unsigned long long)failed.step, badLoss, badNorm, finding.c_str());
}

/// Returns on the first rank that did not receive the bad value, or on all
/// where none is; the others wait for the end that its report brings.
void Trainer::leaveToWhereItBegan(uint64_t step) {
  ah_agreement agreement = {};
  agreement.struct_bytes = sizeof agreement;
  agreement.step = step;
  if (search->beganHere())
    agreement.flags = AH_FLAG_NONFINITE;
  agreement.first_nonfinite_rank = ~uint64_t(0);
  check(link.table->agree(link.comm, &agreement));
  if (agreement.first_nonfinite_rank != ~uint64_t(0) &&
      agreement.first_nonfinite_rank != program.header().rank)
    check(link.table->barrier(link.comm, "the report of a non-finite loss"));
}

void Trainer::evaluate(uint64_t step) {
  walker->drain();
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_EVALUATING),
                   __ATOMIC_RELAXED);
  uint64_t batches =
      std::min<uint64_t>(options.evalBatches, evaluation->batches());
  if (batches == 0)
    fail(AH_ERROR_INPUT, "'%s' does not hold one global batch of %u samples",
         options.evalData.c_str(), program.header().global_batch);
  feeder = evaluation.get();
  uint32_t trainingFlags = flags;
  double sum = 0, labels = 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    Pass pass = makePass(batch, *evaluation);
    pass.updates = false;
    pass.evaluates = true;
    walker->run(pass);
    double weight = labelCount ? double(labelCount) : 1;
    sum += loss * weight;
    labels += weight;
  }
  walker->drain();
  flags = trainingFlags;
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_RUNNING),
                   __ATOMIC_RELAXED);
  log(format("step %llu: evaluation loss %.6g", (unsigned long long)step,
             sum / labels));
  if (metricsFile)
    metricsFile.write(format("{\"step\":%llu,\"eval_loss\":%s}",
                             (unsigned long long)step,
                             jsonNumber(sum / labels).c_str()));
}

void Trainer::report(uint64_t step, double seconds) {
  if (!isFirstRank())
    return;
  double rate = ah_learning_rate(&settings, step);
  std::string line =
      format("{\"step\":%llu,\"loss\":%s,\"gradient_norm\":%s,\"lr\":%s",
             (unsigned long long)step, jsonNumber(loss).c_str(),
             jsonNumber(norm).c_str(), jsonNumber(rate).c_str());
  if (lossFile)
    lossFile.write(line + "}");
  double samplesPerSecond = program.header().global_batch / seconds;
  double tokensPerSecond = samplesPerSecond * program.header().sequence_length;
  if (metricsFile)
    metricsFile.write(line + format(",\"step_time_s\":%s,\"samples_per_s\":%s,"
                                    "\"tokens_per_s\":%s}",
                                    jsonNumber(seconds).c_str(),
                                    jsonNumber(samplesPerSecond).c_str(),
                                    jsonNumber(tokensPerSecond).c_str()));
  bool isLast = step + 1 == steps || stops;
  if (options.logEvery && (step % options.logEvery == 0 || isLast))
    log(format("step %llu/%llu  loss %.6g  gradient norm %.4g  lr %.3g  %.1f "
               "ms  %.0f %s/s",
               (unsigned long long)step, (unsigned long long)steps, loss, norm,
               rate, seconds * 1e3,
               tokensPerSecond ? tokensPerSecond : samplesPerSecond,
               tokensPerSecond ? "tokens" : "samples"));
}

void Trainer::saveOutputs(uint64_t step) {
  if (!outputFile.holds(step, firstStep))
    return;
  walker->drain();
  auto pieces =
      gatherPieces(program, link, std::exchange(outputs, {}), "--save-outputs");
  if (isFirstRank())
    writePieces(outputFile.pathOf(step), pieces);
}

void Trainer::saveGradients(uint64_t step) {
  if (!gradientFile.holds(step, firstStep))
    return;
  auto pieces = gatherPieces(program, link, std::exchange(gradients, {}),
                             "--save-gradients");
  if (isFirstRank())
    writePieces(gradientFile.pathOf(step), pieces);
}

/// What a buffer of a parameter's slice holds: the slice, or its gradient.
Piece Trainer::readSlice(const ah_parameter &parameter, uint32_t buffer) const {
  Box box = Box::of(parameter);
  int64_t bytes = box.elements() * dtypeBytes(parameter.dtype);
  return {program.string(parameter.name), parameter.dtype, box,
          memory.read(buffer, bytes)};
}

void Trainer::saveWeights() {
  std::vector<Piece> pieces;
  for (const ah_parameter &parameter : program.parameters)
    if (isSavedHere(program, parameter, frozen))
      pieces.push_back(readSlice(parameter, parameter.parameter_buffer));
  pieces = gatherPieces(program, link, std::move(pieces), "--save-weights");
  if (isFirstRank())
    writePieces(options.saveWeights, pieces, aliases);
}

void Trainer::save(uint64_t stepsDone) {
  walker->drain();
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_SAVING),
                   __ATOMIC_RELAXED);
  uint64_t begin = monotonicNs();
  CheckpointManifest head;
  head.step = stepsDone;
  head.updates = updates;
  head.structureHash = program.header().structure_hash;
  head.seed = seed;
  head.globalBatch = program.header().global_batch;
  head.sequenceLength = program.header().sequence_length;
  head.optimizer = ah_optimizer(program.header().optimizer);
  head.settings = settings;
  head.noDecay = noDecay;
  head.aliases = aliases;
  saveCheckpoint(memory, link, options.checkpoints, head, frozen);
  // Older ones go only when the new one is on disk.
  if (isFirstRank() && options.checkpointKeep)
    for (const std::string &warning :
         keepCheckpoints(options.checkpoints, options.checkpointKeep))
      warnOnce(warning);
  savedStep = stepsDone;
  __atomic_store_n(&link.board->last_saved_step, stepsDone, __ATOMIC_RELAXED);
  __atomic_fetch_and(&link.board->requests, ~uint64_t(AH_FLAG_SAVE),
                     __ATOMIC_RELAXED);
  __atomic_store_n(&link.board->phase, uint64_t(AH_PHASE_RUNNING),
                   __ATOMIC_RELAXED);
  log(format("saved '%s/%s' in %.0f ms", options.checkpoints.c_str(),
             stepFolderName(stepsDone).c_str(),
             (monotonicNs() - begin) * 1e-6));
}

/// Whether a rank has the slice only to sum its gradient, and computes with a
/// larger one that has it, too.
static bool isOnlySummed(const Program &program, const ah_parameter &slice) {
  if (slice.owned)
    return false;
  Box box = Box::of(slice);
  for (const ah_parameter &other : program.parameters)
    if (&other != &slice &&
        strcmp(program.string(other.name), program.string(slice.name)) == 0 &&
        Box::of(other).size != box.size && Box::of(other).contains(box))
      return true;
  return false;
}

// Holders of a slice must have its owner's bits.
void Trainer::checkCopies(uint64_t step) {
  walker->drain();
  std::vector<Piece> pieces;
  for (bool owned : {true, false})
    for (const ah_parameter &parameter : program.parameters)
      if (parameter.trained && bool(parameter.owned) == owned &&
          !isOnlySummed(program, parameter))
        pieces.push_back(readSlice(parameter, parameter.parameter_buffer));
  pieces = gatherPieces(program, link, std::move(pieces), "--check-copies");
  if (!isFirstRank())
    return;
  std::string different = findDifferentCopies(pieces);
  if (!different.empty())
    fail(AH_ERROR_INTERNAL, "step %llu: copies differ: %s",
         (unsigned long long)step, different.c_str());
}

} // namespace autohet::runtime

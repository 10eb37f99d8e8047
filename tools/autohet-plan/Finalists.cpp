//===- Finalists.cpp - a closer look at the best plans ----------------------===//

#include "Finalists.h"
#include "Options/Diagnostics.h"
#include "Options/Programs.h"
#include "Options/SiblingTool.h"

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Schedule/MemoryUse.h"
#include "autohet/Passes/Schedule/SimulatePrograms.h"
#include "autohet/Simulator/Simulate.h"
#include "autohet/Support/Parallel.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BuryPointer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ThreadPool.h"
#include <mutex>

using namespace mlir;
using namespace autohet;

// The first step begins with nothing under way: as a batch does that is asked
// for alone.
static constexpr int64_t simulatedSteps = 2;
// Plans run in turn, so that they meet the same machine; the first step of a
// run warms up. Batches are shorter.
static constexpr unsigned measuredRounds = 3, measuredSteps = 5,
                          measuredBatches = 20;

// Making and simulating programs takes about a second for 64 devices; of more
// devices, only those that are asked for.
static constexpr size_t fewDevices = 16, manyDevices = 64;
static constexpr unsigned finalistsOfFew = 3, finalistsOfMany = 1;

// Of a rank's unit, on a quick machine; and of what comes behind: see
// simulatePlan().
static constexpr double placingSeconds = 5e-5;
static constexpr double orderingByPlacing = 2, restByOrdering = 0.4;

// Of a rank's unit: what its programs take; and what all that are made at a
// time may take together.
static constexpr double programBytes = 1e5, mostProgramBytes = 2e9;

struct FinalistJudge::Workbench {
  Workbench(const DialectRegistry &dialects, unsigned threads)
      : context(std::make_unique<MLIRContext>(
            dialects, MLIRContext::Threading::DISABLED)) {
    context->loadAllAvailableDialects();
    if (threads == 1)
      return;
    pool.emplace(llvm::hardware_concurrency(threads));
    context->setThreadPool(*pool);
  }
  // The end of the process is near: taking half a million commands apart one
  // by one would be a tenth of what a finalist takes.
  ~Workbench() {
    llvm::BuryPointer(programs.release().getOperation());
    for (auto &[size, model] : models)
      llvm::BuryPointer(model.release().getOperation());
    llvm::BuryPointer(std::move(context));
  }

  /// Of devices whose programs are made at a time.
  std::optional<llvm::DefaultThreadPool> pool;
  std::unique_ptr<MLIRContext> context;
  ModelsBySize models;
  /// Of the last finalist.
  OwningOpRef<ModuleOp> programs;
};

FinalistJudge::FinalistJudge(const PlanOptions &options, const Cluster &cluster,
                             Deadline deadline, MLIRContext &context)
    : options(options), cluster(cluster), deadline(std::move(deadline)),
      context(context) {}
FinalistJudge::~FinalistJudge() = default;

unsigned FinalistJudge::count() const {
  size_t devices = cluster.devices().size();
  unsigned usual = devices <= fewDevices    ? finalistsOfFew
                   : devices <= manyDevices ? finalistsOfMany
                                            : 0;
  return std::max(options.finalists.value_or(usual), options.measureTop);
}

size_t FinalistJudge::choose(llvm::ArrayRef<PlannedStep> plans,
                             const UnitTable &estimates) {
  finalists.clear();
  lacking.clear();
  excess.emplace(estimates);
  for (const PlannedStep &step :
       plans.take_front(std::min<size_t>(count(), plans.size()))) {
    if (!hasPrograms(step.plan))
      break;
    finalists.emplace_back().step = step;
  }
  // What has no programs is taken as it is.
  if (finalists.empty()) {
    failed = options.measureTop > 0;
    if (failed)
      emitError(UnknownLoc::get(&context))
          << "--measure-top: nothing executes the best plan, which needs what "
             "--allow allows";
    chosen_s = plans.front().evaluation.step_s;
    return 0;
  }
  if (mlir::failed(simulatePlans()) ||
      (options.measureTop && mlir::failed(measurePlans()))) {
    failed = true;
    return 0;
  }
  // Where some were run, only those count; what there was no time for counts
  // as it was predicted.
  bool isMeasured = llvm::any_of(
      finalists, [](const Finalist &other) { return other.measured_s; });
  auto seconds = [&](const Finalist &finalist) {
    std::optional<double> found =
        isMeasured ? finalist.measured_s : finalist.simulated_s;
    if (!isMeasured && !found)
      found = finalist.step.evaluation.step_s;
    return finalist.why_not.empty() && found
               ? *found
               : std::numeric_limits<double>::infinity();
  };
  auto best = llvm::min_element(finalists, [&](const auto &a, const auto &b) {
    return seconds(a) < seconds(b);
  });
  chosen_s = seconds(*best);
  best->is_chosen = finalists.size() > 1 && !std::isinf(chosen_s);
  return best - finalists.begin();
}

PlanTextFacts FinalistJudge::facts() const {
  PlanTextFacts facts;
  facts.finalists = finalists;
  facts.simulating_s = simulating_s;
  facts.measuring_s = measuring_s;
  return facts;
}

//===----------------------------------------------------------------------===//
// Simulated
//===----------------------------------------------------------------------===//

/// Of all units the ranks together: what is placed.
static double ranksOfUnits(const Finalist &finalist) {
  double ranks = 0;
  for (const ResolvedReplica &replica : finalist.step.resolved.replicas)
    for (const ResolvedStage &stage : replica.stages)
      ranks += static_cast<double>(stage.devices.size() * stage.units.size());
  return ranks;
}

// Passes cannot be stopped. Whatever they take is in proportion to the commands
// that there are, so the first of them says what the others will take.
LogicalResult FinalistJudge::simulatePlan(Finalist &finalist,
                                          Workbench &bench) {
  MLIRContext &context = *bench.context;
  OwningOpRef<ModuleOp> &programs = bench.programs;
  const Plan &plan = finalist.step.plan;
  double begin_s = deadline.now();
  auto leaveOut = [&](llvm::StringRef what, double needed_s) {
    if (!deadline.isOver(needed_s))
      return false;
    finalist.left_out = ("not simulated: --deadline leaves no time to " + what +
                         " its programs")
                            .str();
    return true;
  };
  if (leaveOut("make", ranksOfUnits(finalist) * placingSeconds))
    return success();
  if (mlir::failed(addModels(bench.models, options.model, plan, context)))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> module =
      placeModels(bench.models, plan, cluster, context, Verifier::None);
  if (mlir::failed(module))
    return failure();
  programs = std::move(*module);
  if (leaveOut("order", orderingByPlacing * (deadline.now() - begin_s)))
    return success();
  if (mlir::failed(orderPrograms(*programs, plan, Verifier::None)))
    return failure();
  if (leaveOut("simulate", restByOrdering * (deadline.now() - begin_s)))
    return success();
  if (mlir::failed(planMemory(*programs, Verifier::None)))
    return failure();
  for (const DeviceEvaluation &entry : finalist.step.evaluation.devices)
    finalist.program_bytes.push_back(
        static_cast<double>(programs
                                ->lookupSymbol<exec::ProgramOp>(
                                    cluster.devices()[entry.device].name)
                                .getTotalBytes()));
  std::vector<std::string> shortages = findShortages(*programs, plan, cluster);
  if (!shortages.empty()) {
    finalist.why_not = shortages.front();
    if (&finalist == &finalists.front()) {
      excess->add(finalist.step, *programs, cluster);
      lacking = std::move(shortages);
    }
  }
  FailureOr<SimProgram> timed =
      simProgramOf(*programs, cluster, SimDetail::Times);
  if (mlir::failed(timed))
    return failure();
  SimOptions steps;
  steps.steps = isOfOneBatch() ? 1 : simulatedSteps;
  steps.keep_timeline = false;
  steps.deadline = deadline;
  llvm::Expected<SimResult> result = simulate(*timed, steps);
  if (!result)
    return emitError(UnknownLoc::get(&context))
           << "the programs of finalist " << (&finalist - finalists.data() + 1)
           << " wait for each other forever: "
           << llvm::toString(result.takeError());
  if (result->is_cut_short)
    finalist.left_out = "not simulated: --deadline leaves no time to simulate "
                        "its programs";
  else
    finalist.simulated_s = result->step_s.back();
  return success();
}

size_t FinalistJudge::chooseThreads() const {
  double bytes = 0;
  for (const Finalist &finalist : finalists)
    bytes = std::max(bytes, ranksOfUnits(finalist) * programBytes);
  size_t room = bytes > 0 ? mostProgramBytes / bytes : finalists.size();
  return std::min({finalists.size(), size_t(options.planner.threads),
                   std::max<size_t>(1, room)});
}

// What is found and said does not depend on how many threads there are.
LogicalResult FinalistJudge::simulatePlans() {
  double begin_s = deadline.now();
  size_t threads = chooseThreads();
  while (benches.size() < threads)
    benches.push_back(std::make_unique<Workbench>(
        context.getDialectRegistry(),
        std::max<unsigned>(1, options.planner.threads / threads)));
  struct Outcome {
    LogicalResult result = success();
    KeptDiagnostics said;
  };
  std::vector<Outcome> outcomes(finalists.size());
  std::mutex taking;
  std::vector<Workbench *> idle;
  for (const std::unique_ptr<Workbench> &bench : benches)
    idle.push_back(bench.get());
  size_t firstFailed = finalists.size();
  SharedJobs jobs(finalists.size(), threads - 1, [&](size_t number) {
    std::unique_lock<std::mutex> lock(taking);
    if (number > firstFailed)
      return;
    Workbench &bench = *idle.back();
    idle.pop_back();
    lock.unlock();
    Outcome &outcome = outcomes[number];
    {
      auto keeping = outcome.said.keep(*bench.context);
      outcome.result = simulatePlan(finalists[number], bench);
    }
    lock.lock();
    idle.push_back(&bench);
    if (mlir::failed(outcome.result))
      firstFailed = std::min(firstFailed, number);
  });
  jobs.finish();
  simulating_s += deadline.now() - begin_s;
  for (const Outcome &outcome : outcomes) {
    outcome.said.sayIn(context);
    if (mlir::failed(outcome.result))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Measured
//===----------------------------------------------------------------------===//

llvm::Error FinalistJudge::checkMeasuring() const {
  if (!options.measureTop)
    return llvm::Error::success();
  auto error = [](const llvm::Twine &text) {
    return llvm::createStringError("--measure-top runs plans on this machine, "
                                   "but " +
                                   text);
  };
  std::vector<std::string> kinds;
  for (const Device &device : cluster.devices()) {
    const Node &node = cluster.nodes[device.node];
    const DeviceKind &kind = cluster.kinds[device.kind];
    if (!node.address.empty())
      return error("node '" + node.name + "' is another one (address " +
                   node.address + ")");
    if (kind.is_gpu)
      return error("device " + device.name + " is a GPU (" + kind.name +
                   "): there is no code for it yet");
    if (!llvm::is_contained(kinds, kind.name))
      kinds.push_back(kind.name);
  }
  if (kinds.size() > 1 && !options.emulate)
    return error("this machine is of one kind, and the cluster has " +
                 llvm::join(kinds, ", ") + ": --emulate gives each its speed");
  return llvm::Error::success();
}

llvm::Error FinalistJudge::compilePlan(Finalist &finalist,
                                       const std::string &folder) {
  std::string planFile = folder + ".json", output;
  std::error_code code;
  llvm::raw_fd_ostream(planFile, code) << formatPlan(finalist.step.plan);
  if (code)
    return llvm::createStringError(planFile + ": " + code.message());
  std::vector<std::string> arguments = {
      options.model.path, "--plan=" + planFile, "-o=" + folder,
      "--kernel-cache=" + options.work + "/kernels"};
  arguments.insert(arguments.end(), options.arguments.begin(),
                   options.arguments.end());
  llvm::Error failure =
      runTool("autohet-compile", arguments, options.work, output);
  // Kernels' own memory is known only now.
  if (failure && llvm::StringRef(output).contains(kMoreThanItsMemory)) {
    llvm::consumeError(std::move(failure));
    finalist.why_not = "its programs need more memory than a device has";
    return llvm::Error::success();
  }
  return failure;
}

bool FinalistJudge::isOfOneBatch() const {
  return options.model.inference &&
         options.planner.objective == PlanObjective::Latency;
}

/// The numbers under `key` in a file of JSON lines.
static llvm::Expected<std::vector<double>> readNumbers(llvm::StringRef path,
                                                       llvm::StringRef key) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return llvm::createStringError(path + ": " + text.getError().message());
  std::vector<double> numbers;
  for (llvm::line_iterator line(**text); !line.is_at_eof(); ++line) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(*line);
    if (!value)
      return value.takeError();
    const llvm::json::Object *object = value->getAsObject();
    if (std::optional<double> found =
            object ? object->getNumber(key) : std::nullopt)
      numbers.push_back(*found);
  }
  return numbers;
}

llvm::Error FinalistJudge::runPlan(const std::string &folder,
                                   std::vector<double> &step_s) {
  bool isInference = options.model.inference;
  std::string metrics = options.work + "/metrics.jsonl", output;
  std::vector<std::string> arguments = {
      folder,
      "--data=random",
      "--init",
      "--steps=" +
          std::to_string(isInference ? measuredBatches : measuredSteps),
      "--log-every=0",
      "--metrics=" + metrics};
  if (isOfOneBatch())
    arguments.push_back("--one-at-a-time");
  if (options.emulate)
    arguments.push_back("--emulate");
  if (llvm::Error failure =
          runTool("autohet-run", arguments, options.work, output))
    return failure;
  llvm::StringRef key = isOfOneBatch() ? "batch_time_s"
                        : isInference  ? "period_s"
                                       : "step_time_s";
  llvm::Expected<std::vector<double>> numbers = readNumbers(metrics, key);
  if (!numbers)
    return numbers.takeError();
  // A period leaves the first batches out.
  size_t warming = isInference && !isOfOneBatch() ? 0 : 1;
  if (numbers->size() <= warming)
    return llvm::createStringError(metrics + " has no " + key);
  step_s.insert(step_s.end(), numbers->begin() + warming, numbers->end());
  return llvm::Error::success();
}

LogicalResult FinalistJudge::measurePlans() {
  double begin_s = deadline.now(), job_s = 0;
  std::vector<Finalist *> order;
  for (Finalist &finalist : finalists)
    if (finalist.why_not.empty() && finalist.simulated_s)
      order.push_back(&finalist);
  llvm::sort(order, [](const Finalist *a, const Finalist *b) {
    return *a->simulated_s < *b->simulated_s;
  });
  struct Job {
    Finalist &finalist;
    std::string folder;
    std::vector<double> step_s;
  };
  std::vector<Job> jobs;
  for (Finalist *finalist : order) {
    if (jobs.size() == options.measureTop)
      break;
    // Each that is compiled is run once at least.
    if (deadline.isOver(2 * job_s)) {
      finalist->left_out = "not run: --deadline leaves no time";
      continue;
    }
    double compiling_s = deadline.now();
    std::string folder = options.work + "/" + std::to_string(jobs.size());
    if (llvm::Error problem = compilePlan(*finalist, folder))
      return emitProblem(context, std::move(problem));
    job_s = deadline.now() - compiling_s;
    if (finalist->why_not.empty())
      jobs.push_back({*finalist, folder, {}});
  }
  for (unsigned round = 0; round < measuredRounds; ++round) {
    double round_s = deadline.now();
    for (Job &job : jobs)
      if (llvm::Error problem = runPlan(job.folder, job.step_s))
        return emitProblem(context, std::move(problem));
    if (deadline.isOver(deadline.now() - round_s))
      break;
  }
  for (Job &job : jobs) {
    llvm::sort(job.step_s);
    job.finalist.measured_s = job.step_s[job.step_s.size() / 2];
  }
  measuring_s += deadline.now() - begin_s;
  return success();
}

//===- Profile.cpp - short runs of one device, and their fit --------------===//
//
// Each kind computes the whole model alone for a few steps at some microbatch
// sizes; the trace says what each unit took. Units differ in their share of
// arithmetic, traffic and commands, so few runs determine all three rates.
//
//===----------------------------------------------------------------------===//

#include "Profile.h"
#include "Fit.h"
#include "Options/SiblingTool.h"

#include "autohet/Plan/Plan.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cmath>

namespace autohet {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// Seconds of one microbatch's forward and backward, by unit.
using UnitSeconds = llvm::StringMap<double>;

class Profiler {
public:
  explicit Profiler(const ProfileOptions &options) : options(options) {}
  llvm::Expected<Cluster> run();

private:
  const ProfileOptions &options;
  Cluster cluster;
  UnitTable units;
  unsigned runs = 0;

  llvm::Error profileKind(unsigned kind, llvm::StringRef device);
  llvm::Expected<UnitSeconds> measure(llvm::StringRef device,
                                      int64_t microbatch, bool &fits);
  llvm::Error readTrace(llvm::StringRef path, UnitSeconds &seconds);
  std::vector<std::string> compileArguments() const;
  Observation observe(unsigned unit, int64_t microbatch) const;
};

} // namespace

/// To four digits: more were not measured.
static double rounded(double value) {
  if (value <= 0)
    return 0;
  double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return std::round(value / unit) * unit;
}

static llvm::Error error(const llvm::Twine &text) {
  return llvm::createStringError(text);
}

std::vector<std::string> Profiler::compileArguments() const {
  std::vector<std::string> arguments = {options.model};
  if (!options.machines.file.empty())
    arguments.push_back("--cluster=" + options.machines.file);
  if (!options.machines.hostfile.empty())
    arguments.push_back("--hostfile=" + options.machines.hostfile);
  arguments.insert(arguments.end(), options.compile.begin(),
                   options.compile.end());
  return arguments;
}

/// What the cost model counts of a unit's forward and backward together.
Observation Profiler::observe(unsigned unit, int64_t microbatch) const {
  const Unit &data = units.units[unit];
  double samples = static_cast<double>(microbatch);
  Work work = data.forward.of(samples);
  work += data.backward.of(samples);
  Observation result;
  result.overheads = work.commands;
  result.flops = work.flops + work.attention_flops + work.elementwise_flops;
  result.bytes = work.traffic_bytes;
  return result;
}

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

/// Names of commands are "kernel unit/op"; the first step is not counted.
llvm::Error Profiler::readTrace(llvm::StringRef path, UnitSeconds &seconds) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return error(path + ": " + text.getError().message());
  llvm::Expected<llvm::json::Value> trace =
      llvm::json::parse((*text)->getBuffer());
  if (!trace)
    return trace.takeError();
  const llvm::json::Object *root = trace->getAsObject();
  const llvm::json::Array *events =
      root ? root->getArray("traceEvents") : trace->getAsArray();
  if (!events)
    return error(path + ": is no trace");
  llvm::DenseMap<std::pair<int64_t, int64_t>, char> passes;
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object *event = value.getAsObject();
    const llvm::json::Object *of = event ? event->getObject("args") : nullptr;
    std::optional<llvm::StringRef> name =
        event ? event->getString("name") : std::nullopt;
    std::optional<double> duration_us =
        event ? event->getNumber("dur") : std::nullopt;
    if (!of || !name || !duration_us)
      continue;
    std::optional<int64_t> step = of->getInteger("step"),
                           microbatch = of->getInteger("microbatch");
    llvm::StringRef unit = name->split(' ').second.split('/').first;
    if (!step || !microbatch || *step < 1 || !units.find(unit))
      continue;
    seconds[unit] += *duration_us * 1e-6;
    passes[{*step, *microbatch}] = 1;
  }
  if (passes.empty())
    return error(path + ": has no command of a unit");
  for (auto &entry : seconds)
    entry.second /= static_cast<double>(passes.size());
  return llvm::Error::success();
}

llvm::Expected<UnitSeconds> Profiler::measure(llvm::StringRef device,
                                              int64_t microbatch, bool &fits) {
  Plan plan;
  plan.global_batch = microbatch;
  plan.optimizer = OptimizerKind::SGD;
  Replica &replica = plan.replicas.emplace_back();
  replica.microbatch_size = microbatch;
  Stage &stage = replica.stages.emplace_back();
  std::vector<unsigned> all(units.units.size());
  for (unsigned unit = 0; unit < all.size(); ++unit)
    all[unit] = unit;
  stage.units = compressUnits(all, units);
  stage.devices = {device.str()};
  std::string planFile = options.work + "/plan.json",
              program = options.work + "/program",
              trace = options.work + "/trace.json";
  std::error_code code;
  llvm::raw_fd_ostream(planFile, code) << formatPlan(plan);
  if (code)
    return error(planFile + ": " + code.message());

  std::vector<std::string> compile = compileArguments();
  compile.insert(compile.end(),
                 {"--optimizer=sgd", "--plan=" + planFile, "-o=" + program});
  std::string output;
  if (llvm::Error failure =
          runTool("autohet-compile", compile, options.work, output)) {
    // Larger microbatches than a device holds are no mistake.
    fits = !llvm::StringRef(output).contains("more than its");
    return std::move(failure);
  }
  // Enough of them to last a second: emulation hands out time in slices.
  int64_t steps = 4;
  for (int attempt = 0;; ++attempt) {
    std::vector<std::string> run = {
        program,         "--data=random",
        "--init",        "--steps=" + std::to_string(steps),
        "--log-every=0", "--trace=" + trace};
    if (options.emulate)
      run.push_back("--emulate");
    run.insert(run.end(), options.run.begin(), options.run.end());
    if (llvm::Error failure = runTool("autohet-run", run, options.work, output))
      return std::move(failure);
    ++runs;
    UnitSeconds seconds;
    if (llvm::Error failure = readTrace(trace, seconds))
      return std::move(failure);
    double step_s = 0;
    for (auto &entry : seconds)
      step_s += entry.second;
    int64_t wanted = 1 + static_cast<int64_t>(std::ceil(1 / step_s));
    if (attempt > 0 || wanted <= steps)
      return seconds;
    steps = std::min<int64_t>(wanted, 400);
  }
}

//===----------------------------------------------------------------------===//
// One kind
//===----------------------------------------------------------------------===//

llvm::Error Profiler::profileKind(unsigned index, llvm::StringRef device) {
  DeviceKind &kind = cluster.kinds[index];
  llvm::outs() << "kind " << kind.name << ", on " << device << "\n";
  auto begin = Clock::now();
  std::vector<Observation> observations;
  std::vector<std::pair<size_t, int64_t>> starts; // of each microbatch size
  for (int64_t microbatch : options.microbatches) {
    if (!starts.empty() && secondsSince(begin) > options.secondsPerKind)
      break;
    bool fits = true;
    llvm::Expected<UnitSeconds> seconds = measure(device, microbatch, fits);
    if (!seconds) {
      if (fits || starts.empty())
        return seconds.takeError();
      llvm::consumeError(seconds.takeError());
      break;
    }
    starts.push_back({observations.size(), microbatch});
    double step_s = 0;
    for (auto &entry : *seconds)
      step_s += entry.second;
    for (unsigned unit = 0; unit < units.units.size(); ++unit) {
      auto found = seconds->find(units.units[unit].id);
      if (found == seconds->end())
        continue; // computes nothing
      Observation &one = observations.emplace_back(observe(unit, microbatch));
      one.seconds = found->second;
      // Errors count by their part of the step.
      one.weight = 1 / (step_s * step_s);
    }
  }
  FittedRates rates = fitRates(observations);
  double worst = 0;
  for (size_t run = 0; run < starts.size(); ++run) {
    size_t end =
        run + 1 < starts.size() ? starts[run + 1].first : observations.size();
    double measured = 0, fitted = 0, off = 0;
    for (size_t i = starts[run].first; i < end; ++i) {
      measured += observations[i].seconds;
      fitted += rates.seconds(observations[i]);
      off +=
          std::fabs(rates.seconds(observations[i]) - observations[i].seconds);
    }
    worst = std::max(worst, off / measured);
    llvm::outs() << "  microbatch " << starts[run].second << ": "
                 << formatQuantity(measured, Dimension::Seconds)
                 << " measured, " << formatQuantity(fitted, Dimension::Seconds)
                 << " fitted, its units off by "
                 << llvm::format("%.1f %%", 100 * off / measured) << "\n";
  }
  auto say = [&](llvm::StringRef name, double before, double now,
                 Dimension dimension) {
    llvm::outs() << "  " << name << ": "
                 << (now > 0 ? formatQuantity(now, dimension) : "not counted")
                 << ", was "
                 << (before > 0 ? formatQuantity(before, dimension)
                                : "not counted")
                 << "\n";
  };
  say("flops", kind.flops_per_s, rates.flops_per_s, Dimension::FlopsPerSecond);
  say("memory_bandwidth", kind.memory_bandwidth_bytes_per_s,
      rates.bandwidth_bytes_per_s, Dimension::BytesPerSecond);
  say("overhead", kind.overhead_s, rates.overhead_s, Dimension::Seconds);
  llvm::outs() << "  " << llvm::format("%.0f s", secondsSince(begin)) << "\n";
  if (worst > 0.25)
    llvm::errs()
        << "autohet-profile: warning: units of kind '" << kind.name
        << "' are off by a quarter of the step: was the machine busy?\n";
  kind.flops_per_s = rounded(rates.flops_per_s);
  kind.memory_bandwidth_bytes_per_s = rounded(rates.bandwidth_bytes_per_s);
  kind.overhead_s = rounded(rates.overhead_s);
  return llvm::Error::success();
}

llvm::Expected<Cluster> Profiler::run() {
  // All of it is written again, though only some devices may be measured.
  std::vector<std::string> warnings;
  ClusterSource whole = options.machines;
  whole.include.clear();
  llvm::Expected<Cluster> loaded = loadCluster(whole, warnings);
  if (!loaded)
    return loaded.takeError();
  cluster = std::move(*loaded);
  std::vector<std::string> again; // the same ones
  llvm::Expected<Cluster> included = loadCluster(options.machines, again);
  if (!included)
    return included.takeError();
  for (const std::string &warning : warnings)
    llvm::errs() << warning << "\n";

  std::vector<std::string> emit = compileArguments();
  emit.push_back("--emit=units");
  std::string text;
  if (llvm::Error failure =
          runTool("autohet-compile", emit, options.work, text))
    return std::move(failure);
  // Notes stand before the table.
  llvm::Expected<UnitTable> table = parseUnitTable(
      llvm::StringRef(text).substr(text.find('{')), "autohet-compile");
  if (!table)
    return table.takeError();
  units = std::move(*table);

  std::vector<std::pair<unsigned, std::string>> wanted;
  for (const std::string &name : options.kinds)
    if (!cluster.findKind(name))
      return error("--kind=" + name + ": the cluster has no such kind");
  for (const Device &device : included->devices()) {
    const DeviceKind &kind = cluster.kinds[device.kind];
    bool isChosen =
        options.kinds.empty() || llvm::is_contained(options.kinds, kind.name);
    bool isNew = llvm::none_of(
        wanted, [&](const auto &one) { return one.first == device.kind; });
    if (isChosen && isNew && !kind.is_gpu)
      wanted.push_back({device.kind, device.name});
  }
  if (wanted.empty())
    return error("no device of the cluster is of a kind that this machine can "
                 "measure: graphics processors have no code yet");
  if (wanted.size() > 1 && !options.emulate) {
    std::string names;
    for (auto &[kind, device] : wanted)
      names += (names.empty() ? "" : ", ") + cluster.kinds[kind].name;
    return error("this machine is of one kind, the cluster has " + names +
                 ": say which with --kind, or --emulate all of them");
  }
  for (auto &[kind, device] : wanted)
    if (llvm::Error failure = profileKind(kind, device))
      return std::move(failure);
  return std::move(cluster);
}

llvm::Expected<Cluster> profile(const ProfileOptions &options) {
  return Profiler(options).run();
}

} // namespace autohet

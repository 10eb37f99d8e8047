//===- Profile.cpp - short runs of one device, and their fit --------------===//
//
// Each kind computes the whole model alone for a few steps at some microbatch
// sizes. The run's trace says what each command took, the simulator's trace
// what it had to do. Commands differ in their share of arithmetic and traffic,
// so few runs determine all rates.
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
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

namespace autohet {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// What a command had to do and took: once a step, or a microbatch.
struct Command {
  Work work;
  std::vector<double> seconds;
};
using Commands = std::map<std::string, Command>;

/// One microbatch size: the commands of the run, in the order of names.
struct Run {
  int64_t microbatch = 1;
  std::vector<std::string> units; ///< of each; empty: of none
  std::vector<Observation> observations;
};

class Profiler {
public:
  explicit Profiler(const ProfileOptions &options) : options(options) {}
  llvm::Expected<Cluster> run();

private:
  const ProfileOptions &options;
  Cluster cluster;
  UnitTable units;

  llvm::Error profileKind(unsigned kind, llvm::StringRef device);
  llvm::Expected<Run> measure(llvm::StringRef device, int64_t microbatch,
                              bool &fits);
  /// Calls `add` with the name and arguments of each event that took time.
  llvm::Error readTrace(llvm::StringRef path,
                        llvm::function_ref<void(llvm::StringRef, double seconds,
                                                const llvm::json::Object &)>
                            add) const;
  std::string unitOf(llvm::StringRef command) const;
  double secondsOf(Command &command) const;
  void printFit(llvm::ArrayRef<Run> runs, const DeviceKind &kind) const;
  std::vector<std::string> compileArguments() const;
};

} // namespace

/// A profile should be no reason to wait.
static constexpr double kMostSecondsPerKind = 60;

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

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

llvm::Error
Profiler::readTrace(llvm::StringRef path,
                    llvm::function_ref<void(llvm::StringRef, double,
                                            const llvm::json::Object &)>
                        add) const {
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
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object *event = value.getAsObject();
    const llvm::json::Object *of = event ? event->getObject("args") : nullptr;
    std::optional<llvm::StringRef> name =
        event ? event->getString("name") : std::nullopt;
    std::optional<double> duration_us =
        event ? event->getNumber("dur") : std::nullopt;
    if (of && name && duration_us)
      add(*name, *duration_us * 1e-6, *of);
  }
  return llvm::Error::success();
}

/// Names are "kernel unit/op", or "gemm parameter.gradient".
std::string Profiler::unitOf(llvm::StringRef command) const {
  llvm::StringRef subject = command.split(' ').second;
  llvm::StringRef unit = subject.split('/').first;
  if (units.find(unit))
    return unit.str();
  llvm::StringRef parameter = subject.substr(0, subject.rfind(".gradient"));
  for (const Unit &one : units.units)
    for (unsigned index : one.parameters)
      if (units.parameters[index].name == parameter)
        return one.id;
  return "";
}

/// An emulated device's pauses are part of its speed; on a real one whoever
/// else runs is not.
double Profiler::secondsOf(Command &command) const {
  std::vector<double> &all = command.seconds;
  if (options.emulate)
    return std::accumulate(all.begin(), all.end(), 0.0) /
           static_cast<double>(all.size());
  auto middle = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

llvm::Expected<Run> Profiler::measure(llvm::StringRef device,
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
  Commands commands;
  if (llvm::Error failure = runTool(
          "autohet-simulate", {program, "--steps=1", "--timeline=" + trace},
          options.work, output))
    return std::move(failure);
  if (llvm::Error failure = readTrace(
          trace, [&](llvm::StringRef name, double, const auto &arguments) {
            for (auto [key, quantity] : kWorkQuantities)
              if (std::optional<double> value = arguments.getNumber(key))
                commands[name.str()].work.*quantity = *value;
          }))
    return std::move(failure);

  // Enough steps to last a second: emulation hands out time in slices.
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
    // The first step warms up.
    for (auto &[name, command] : commands)
      command.seconds.clear();
    if (llvm::Error failure = readTrace(
            trace, [&](llvm::StringRef name, double seconds, const auto &args) {
              auto found = commands.find(name.str());
              if (found != commands.end() &&
                  args.getInteger("step").value_or(0) > 0)
                found->second.seconds.push_back(seconds);
            }))
      return std::move(failure);
    Run result;
    result.microbatch = microbatch;
    double step_s = 0;
    for (auto &[name, command] : commands) {
      if (command.seconds.empty())
        continue;
      result.units.push_back(unitOf(name));
      result.observations.push_back({command.work, secondsOf(command)});
      step_s += result.observations.back().seconds;
    }
    if (result.observations.empty())
      return error(trace + ": has no command of the program");
    int64_t wanted = 1 + static_cast<int64_t>(std::ceil(1 / step_s));
    if (attempt == 0 && wanted > steps) {
      steps = std::min<int64_t>(wanted, 400);
      continue;
    }
    // Errors count by their part of the step.
    for (Observation &one : result.observations)
      one.weight = 1 / (step_s * step_s);
    return result;
  }
}

//===----------------------------------------------------------------------===//
// One kind
//===----------------------------------------------------------------------===//

/// How far the fit is from what was measured, by what commands mostly do.
void Profiler::printFit(llvm::ArrayRef<Run> runs,
                        const DeviceKind &kind) const {
  struct Sum {
    double measured = 0, fitted = 0;
  };
  auto print = [](const Sum &sum) {
    llvm::outs() << formatQuantity(sum.measured, Dimension::Seconds)
                 << " measured, "
                 << formatQuantity(sum.fitted, Dimension::Seconds)
                 << llvm::format(" fitted (%+.1f %%)",
                                 100 * (sum.fitted / sum.measured - 1));
  };
  double worst = 0;
  for (const Run &run : runs) {
    Sum all;
    std::pair<llvm::StringRef, Sum> classes[] = {
        {"products", {}}, {"attention", {}}, {"all else", {}}};
    std::map<std::string, Sum> ofUnits;
    for (auto [one, unit] : llvm::zip_equal(run.observations, run.units)) {
      unsigned what = one.work.flops > 0             ? 0
                      : one.work.attention_flops > 0 ? 1
                                                     : 2;
      for (Sum *sum : {&all, &classes[what].second, &ofUnits[unit]}) {
        sum->measured += one.seconds;
        sum->fitted += kind.seconds(one.work);
      }
    }
    double off = 0;
    for (auto &[unit, sum] : ofUnits)
      off += std::fabs(sum.fitted - sum.measured);
    worst = std::max(worst, off / all.measured);
    llvm::outs() << "  microbatch " << run.microbatch << ": ";
    print(all);
    llvm::outs() << llvm::format(", its units off by %.1f %%\n",
                                 100 * off / all.measured);
    for (auto &[what, sum] : classes) {
      if (sum.measured == 0)
        continue;
      llvm::outs() << "    " << what << ": ";
      print(sum);
      llvm::outs() << "\n";
    }
  }
  if (worst > 0.25)
    llvm::errs()
        << "autohet-profile: warning: units of kind '" << kind.name
        << "' are off by a quarter of the step: was the machine busy?\n";
}

llvm::Error Profiler::profileKind(unsigned index, llvm::StringRef device) {
  DeviceKind &kind = cluster.kinds[index];
  llvm::outs() << "kind " << kind.name << ", on " << device << "\n";
  auto begin = Clock::now();
  std::vector<Run> runs;
  std::vector<Observation> observations;
  for (int64_t microbatch : options.microbatches) {
    if (!runs.empty() && secondsSince(begin) > options.secondsPerKind)
      break;
    bool fits = true;
    llvm::Expected<Run> run = measure(device, microbatch, fits);
    if (!run) {
      if (fits || runs.empty())
        return run.takeError();
      llvm::consumeError(run.takeError());
      break;
    }
    llvm::append_range(observations, run->observations);
    runs.push_back(std::move(*run));
  }
  DeviceKind before = kind;
  fitRates(observations, kind);
  printFit(runs, kind);
  auto say = [&](llvm::StringRef name, double DeviceKind::*figure,
                 Dimension dimension, llvm::StringRef none) {
    auto text = [&](const DeviceKind &of) {
      return of.*figure > 0 ? formatQuantity(of.*figure, dimension)
                            : none.str();
    };
    llvm::outs() << "  " << name << ": " << text(kind) << ", was "
                 << text(before) << "\n";
    kind.*figure = rounded(kind.*figure);
  };
  say("flops", &DeviceKind::flops_per_s, Dimension::FlopsPerSecond, "");
  say("attention_flops", &DeviceKind::attention_flops_per_s,
      Dimension::FlopsPerSecond, "as products");
  say("elementwise_flops", &DeviceKind::elementwise_flops_per_s,
      Dimension::FlopsPerSecond, "as products");
  say("memory_bandwidth", &DeviceKind::memory_bandwidth_bytes_per_s,
      Dimension::BytesPerSecond, "not counted");
  say("overhead", &DeviceKind::overhead_s, Dimension::Seconds, "not counted");
  for (const std::string &figure : findImplausible(kind))
    llvm::errs() << "autohet-profile: warning: kind '" << kind.name
                 << "': " << figure
                 << " is no figure of a machine: it explains these times and "
                    "no others; measure again while nothing else runs, at "
                    "other --microbatches, or leave the key out\n";
  double took_s = secondsSince(begin);
  llvm::outs() << "  "
               << llvm::format("%.0f s, of at most %.0f wanted", took_s,
                               kMostSecondsPerKind)
               << "\n";
  if (took_s > kMostSecondsPerKind)
    llvm::errs() << "autohet-profile: warning: kind '" << kind.name
                 << llvm::format("' took %.0f s: fewer or smaller "
                                 "--microbatches take less\n",
                                 took_s);
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

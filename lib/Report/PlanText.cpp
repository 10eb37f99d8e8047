//===- PlanText.cpp - a plan as a picture in text -------------------------===//

#include "autohet/Report/PlanText.h"
#include "PlanFigures.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace autohet {
namespace {

constexpr unsigned barWidth = 16, headingWidth = 14;

std::string seconds(double value) {
  return formatQuantity(value, Dimension::Seconds);
}
std::string bytes(double value) {
  return formatQuantity(value, Dimension::Bytes);
}

/// "n0/0-3" of some devices of one node, ascending; the node where it is all.
std::string formatOfNode(llvm::ArrayRef<unsigned> devices,
                         const Cluster &cluster) {
  const Node &node = cluster.nodes[cluster.devices()[devices.front()].node];
  if (devices.size() == node.device_count && node.device_count > 1)
    return node.name;
  std::string text;
  for (size_t i = 0, end; i < devices.size(); i = end) {
    unsigned first = cluster.devices()[devices[i]].index;
    for (end = i + 1; end < devices.size() &&
                      cluster.devices()[devices[end]].index == first + end - i;
         ++end)
      ;
    text += (text.empty() ? node.name + "/" : ",") + std::to_string(first);
    if (end - i > 1)
      text += "-" + std::to_string(first + end - i - 1);
  }
  return text;
}

class PlanWriter {
public:
  PlanWriter(const PlannerResult &result, const UnitTable &table,
             const Cluster &cluster, const PlanTextFacts &facts,
             llvm::raw_ostream &os)
      : result(result), cluster(cluster), facts(facts), os(os),
        figures(computeFigures(result.best, table, cluster, facts.tokens)) {}

  void write() {
    writePlan();
    writeOrigin();
    writeStep();
    writeMoney();
    writeQuality();
    writeIdle();
    writeFinalists();
    writeOthers();
    writeSources();
    if (facts.remarks)
      for (const std::string &reason : result.reasons)
        os << "remark: " << reason << "\n";
  }

private:
  llvm::raw_ostream &heading(llvm::StringRef name) {
    os << name;
    os.indent(headingWidth - name.size());
    return os;
  }

  //===-- The picture ------------------------------------------------------===//

  void writePlan() {
    const PlannedStep &best = result.best;
    std::vector<ReplicaGroup> groups = groupReplicas(best, cluster);
    os << "plan: " << best.plan.replicas.size() << " replica"
       << (best.plan.replicas.size() == 1 ? "" : "s") << " on "
       << best.evaluation.devices.size() << " of " << cluster.devices().size()
       << " devices, ";
    if (!isForwardOnly())
      os << "schedule " << scheduleName(best.plan.schedule) << ", ";
    os << "global batch " << best.plan.global_batch;
    if (best.plan.gradient_exchange == GradientExchange::Hierarchical)
      os << ", gradients summed in each node first";
    os << "\n";
    for (const ReplicaGroup &group : groups)
      writeGroup(group);
  }

  /// "0 to 3, 7": in rising order.
  static std::string rangesOf(llvm::ArrayRef<unsigned> numbers) {
    std::string text;
    for (size_t begin = 0, end; begin < numbers.size(); begin = end) {
      for (end = begin + 1; end < numbers.size() &&
                            numbers[end] == numbers[begin] + (end - begin);
           ++end)
        ;
      text += (begin ? ", " : "") + std::to_string(numbers[begin]);
      if (end - begin > 1)
        text += (end - begin > 2 ? " to " : ", ") +
                std::to_string(numbers[end - 1]);
    }
    return text;
  }

  void writeGroup(const ReplicaGroup &group) {
    unsigned first = group.replicas.front();
    const Replica &replica = result.best.plan.replicas[first];
    os << "  replica";
    if (group.replicas.size() > 1)
      os << "s " << rangesOf(group.replicas) << " (" << group.replicas.size()
         << " alike, each";
    else
      os << " " << first << " (";
    os << (group.replicas.size() > 1 ? " " : "") << replica.microbatches
       << (replica.microbatches == 1 ? " microbatch of " : " microbatches of ")
       << replica.microbatch_size << ")\n";
    for (auto [number, stage] : llvm::enumerate(replica.stages))
      writeStage(group, number, stage);
  }

  /// Of the state of what a device computes.
  double ownedPart(const MemoryNeed &need) const {
    double all =
        need.gradient_bytes * stateBytesPerByte(result.best.plan.optimizer);
    return all > 0 ? need.state_bytes / all : 0;
  }

  void writeStage(const ReplicaGroup &group, unsigned number,
                  const Stage &stage) {
    os << "    stage " << number << ": " << llvm::join(stage.units, ", ");
    if (stage.state_share != 1)
      os << llvm::format(" (owns %.0f %% of its state)",
                         100 * ownedPart(group.stages[number].front().fullest));
    if (stage.keeping == Keeping::Inputs)
      os << " (forward computed again)";
    if (stage.keeping == Keeping::OnHost)
      os << " (activations on the host)";
    os << "\n";
    // Devices of one kind and share are alike: the fullest speaks for them.
    for (const DeviceGroup &devices : group.stages[number]) {
      const DeviceKind &kind = cluster.kinds[devices.kind];
      double busy = devices.busiest_s / result.best.evaluation.step_s;
      os << llvm::format("      %3zu x %-10s ", devices.count,
                         kind.name.c_str());
      unsigned full =
          std::min(barWidth, static_cast<unsigned>(busy * barWidth + 0.5));
      os << '[' << std::string(full, '#') << std::string(barWidth - full, '.')
         << ']' << llvm::format(" busy %3.0f %%", 100 * busy) << ", memory "
         << bytes(devices.fullest.total()) << " of " << bytes(kind.memory_bytes)
         << "  " << formatDevices(devices.examples, cluster)
         << (group.replicas.size() > 1 ? ", ..." : "");
      if (devices.share < 1)
        os << llvm::format(", %.0f %% of each product", 100 * devices.share);
      os << "\n";
    }
  }

  void writeOrigin() {
    if (!result.origin.empty())
      heading("plan is") << result.origin << "\n";
    if (result.effort.is_cut_short)
      heading("plan is")
          << "what was found until the deadline, which cut the search short\n";
  }

  //===-- The numbers ------------------------------------------------------===//

  bool isForwardOnly() const { return result.best.evaluation.latency_s > 0; }

  void writeStep() {
    const PlanEvaluation &evaluation = result.best.evaluation;
    if (isForwardOnly())
      heading("batch") << seconds(evaluation.latency_s)
                       << " predicted from inputs to outputs; one every "
                       << seconds(evaluation.interval_s)
                       << " where they follow one another\n";
    else
      heading("step") << seconds(evaluation.step_s) << " predicted = pipelines "
                      << seconds(evaluation.pipeline_s)
                      << " + exposed gradients "
                      << seconds(evaluation.exposed_sync_s) << " + agreement "
                      << seconds(evaluation.agreement_s) << " + update "
                      << seconds(evaluation.update_s)
                      << " + exposed parameters "
                      << seconds(evaluation.exposed_parameters_s) << "\n";
    heading("throughput") << formatQuantity(figures.samples_per_s,
                                            Dimension::None)
                          << " samples/s";
    if (facts.tokens)
      os << ", " << llvm::format("%.0f", figures.tokens_per_s) << " tokens/s";
    // Profiles know no arithmetic.
    if (figures.flops_per_s > 0)
      os << ", model FLOPs "
         << formatQuantity(figures.flops_per_s, Dimension::FlopsPerSecond)
         << llvm::format(" = %.1f %% of the %s rates that the used "
                         "devices are taken to reach",
                         100 * figures.utilisation,
                         precisionName(facts.precision).data());
    os << "\n";
    heading("bubble") << llvm::format("%.1f %%", 100 * evaluation.bubble)
                      << " of the pipelines";
    if (!isForwardOnly())
      os << "; exposed communication " << seconds(figures.exposed_s)
         << llvm::format(" = %.1f %% of the step",
                         100 * figures.exposed_s / evaluation.step_s);
    os << "\n";
  }

  void writeMoney() {
    if (figures.unpriced.empty() && figures.usd_per_step > 0) {
      heading("cost") << llvm::format("%.4g USD a step", figures.usd_per_step);
      if (facts.tokens)
        os << llvm::format(", %.4g USD per million tokens",
                           figures.usd_per_million_tokens);
      if (figures.idle_usd_per_hour > 0)
        os << llvm::format("; idle devices %.4g USD/h more",
                           figures.idle_usd_per_hour);
      os << "\n";
    } else if (figures.usd_per_step > 0) {
      heading("cost") << "unknown: no price of "
                      << llvm::join(figures.unpriced, ", ") << "\n";
    }
  }

  void writeQuality() {
    heading("bound") << "no plan can take less than "
                     << seconds(result.lower_bound_s) << ": "
                     << result.gapText() << "\n";
  }

  void writeIdle() {
    for (const IdleDevices &idle : result.idle) {
      if (idle.devices.empty())
        continue;
      heading("idle") << idle.devices.size() << " x "
                      << cluster.kindOf(idle.devices.front()).name << ": "
                      << formatDevices(idle.devices, cluster) << ": "
                      << idle.reason << "\n";
    }
  }

  void writeFinalists() {
    if (facts.finalists.empty()) {
      if (facts.precision != Precision::FP32)
        os << "finalists: none simulated, since programs compute in fp32 and "
              "this plan is for "
           << precisionName(facts.precision) << "\n";
      else if (!hasPrograms(result.best.plan))
        os << "finalists: none simulated, since nothing executes this plan "
              "yet\n";
      return;
    }
    os << "finalists, lowered and simulated in " << seconds(facts.simulating_s);
    if (facts.measuring_s > 0)
      os << ", compiled and run for " << seconds(facts.measuring_s);
    os << "\n";
    for (auto [number, finalist] : llvm::enumerate(facts.finalists)) {
      os << llvm::format("  %zu  predicted %s", number + 1,
                         seconds(finalist.step.evaluation.step_s).c_str());
      if (finalist.simulated_s)
        os << ", simulated " << seconds(*finalist.simulated_s);
      if (finalist.measured_s)
        os << ", measured " << seconds(*finalist.measured_s);
      for (const std::string &reason : {finalist.why_not, finalist.left_out})
        if (!reason.empty())
          os << ": " << reason;
      os << "  " << formatPlanShape(finalist.step, cluster)
         << (finalist.is_chosen ? ", chosen" : "") << "\n";
    }
  }

  void writeOthers() {
    double step = result.best.evaluation.step_s;
    auto line = [&](llvm::StringRef name, const PlannedStep &other) {
      os << llvm::format("  %-12s %9s  %5.2f x  ", name.str().c_str(),
                         seconds(other.evaluation.step_s).c_str(),
                         other.evaluation.step_s / step)
         << formatPlanShape(other, cluster) << "\n";
    };
    if (!result.modes.empty())
      os << "best plans of other planners\n";
    for (const ModeResult &mode : result.modes) {
      if (mode.step)
        line(plannerModeName(mode.mode), *mode.step);
      else
        os << llvm::format("  %-12s      none: ",
                           plannerModeName(mode.mode).str().c_str())
           << mode.why_not << "\n";
    }
    if (!result.alternatives.empty())
      os << "nearest alternatives\n";
    for (auto [number, other] : llvm::enumerate(result.alternatives))
      line(std::to_string(number + 1), other);
  }

  // Rates that nobody measured are said with the plan that rests on them.
  void writeSources() {
    for (const DeviceKind &kind : cluster.kinds)
      if (!kind.source.empty() &&
          llvm::any_of(cluster.devices(), [&](const Device &device) {
            return &cluster.kinds[device.kind] == &kind;
          }))
        heading("rates") << kind.name << ": "
                         << formatQuantity(kind.flops_per_s,
                                           Dimension::FlopsPerSecond)
                         << " in " << precisionName(facts.precision)
                         << ", assumed from the " << kind.source << "\n";
  }

  const PlannerResult &result;
  const Cluster &cluster;
  const PlanTextFacts &facts;
  llvm::raw_ostream &os;
  PlanFigures figures;
};

} // namespace

std::string formatDevices(llvm::ArrayRef<unsigned> devices,
                          const Cluster &cluster) {
  constexpr size_t mostShown = 4;
  std::vector<unsigned> sorted(devices.begin(), devices.end());
  llvm::sort(sorted);
  std::vector<std::string> parts;
  for (size_t i = 0, end; i < sorted.size(); i = end) {
    unsigned node = cluster.devices()[sorted[i]].node;
    for (end = i;
         end < sorted.size() && cluster.devices()[sorted[end]].node == node;
         ++end)
      ;
    parts.push_back(
        formatOfNode(llvm::ArrayRef(sorted).slice(i, end - i), cluster));
  }
  size_t more = parts.size() > mostShown ? parts.size() - mostShown : 0;
  if (more)
    parts.resize(mostShown);
  return llvm::join(parts, ", ") +
         (more ? " and on " + std::to_string(more) + " more nodes" : "");
}

std::string formatPlanShape(const PlannedStep &step, const Cluster &cluster) {
  std::vector<std::string> parts;
  for (const ReplicaGroup &group : groupReplicas(step, cluster)) {
    std::vector<std::string> stages;
    for (const std::vector<DeviceGroup> &stage : group.stages) {
      std::vector<std::string> kinds;
      for (const DeviceGroup &devices : stage)
        kinds.push_back(std::to_string(devices.count) + " " +
                        cluster.kinds[devices.kind].name);
      stages.push_back(llvm::join(kinds, " + "));
    }
    // Equal stages in a row are one entry.
    std::vector<std::string> runs;
    for (size_t i = 0, end; i < stages.size(); i = end) {
      for (end = i; end < stages.size() && stages[end] == stages[i]; ++end)
        ;
      runs.push_back((end - i > 1 ? std::to_string(end - i) + " of " : "") +
                     stages[i]);
    }
    const Replica &replica = step.plan.replicas[group.replicas.front()];
    parts.push_back(std::to_string(group.replicas.size()) + " x (" +
                    llvm::join(runs, " > ") + "; " +
                    std::to_string(replica.microbatches) + " of " +
                    std::to_string(replica.microbatch_size) + ")");
  }
  return llvm::join(parts, ", ");
}

std::string formatPlanText(const PlannerResult &result, const UnitTable &table,
                           const Cluster &cluster, const PlanTextFacts &facts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  PlanWriter(result, table, cluster, facts, os).write();
  return text;
}

} // namespace autohet

//===- PlanFigures.cpp - the numbers behind a plan's text -----------------===//

#include "PlanFigures.h"

#include "llvm/ADT/STLExtras.h"
#include <map>

namespace autohet {

namespace {

std::vector<DeviceGroup> groupDevices(const ResolvedStage &stage,
                                      llvm::ArrayRef<DeviceEvaluation> entries,
                                      const Cluster &cluster) {
  std::vector<DeviceGroup> groups;
  std::vector<double> shares = sharesOf(stage.weights);
  for (auto [device, share, entry] :
       llvm::zip_equal(stage.devices, shares, entries)) {
    unsigned kind = cluster.devices()[device].kind;
    auto group = llvm::find_if(groups, [&, share = share](const auto &other) {
      return other.kind == kind && other.share == share;
    });
    if (group == groups.end()) {
      groups.emplace_back();
      group = std::prev(groups.end());
      group->kind = kind;
      group->share = share;
    }
    ++group->count;
    group->examples.push_back(device);
    group->busiest_s = std::max(group->busiest_s, entry.busy_s);
    if (entry.memory.total() > group->fullest.total())
      group->fullest = entry.memory;
  }
  return groups;
}

} // namespace

std::vector<ReplicaGroup> groupReplicas(const PlannedStep &step,
                                        const Cluster &cluster) {
  std::vector<ReplicaGroup> groups;
  std::map<std::string, size_t> groupOf;
  llvm::ArrayRef<DeviceEvaluation> entries = step.evaluation.devices;
  for (auto [index, replica] : llvm::enumerate(step.resolved.replicas)) {
    std::string shape = std::to_string(replica.microbatch_size) + "x" +
                        std::to_string(replica.microbatches);
    std::vector<std::vector<DeviceGroup>> stages;
    for (const ResolvedStage &stage : replica.stages) {
      stages.push_back(groupDevices(
          stage, entries.take_front(stage.devices.size()), cluster));
      entries = entries.drop_front(stage.devices.size());
      shape += "|s" + std::to_string(stage.state_share) + "|";
      for (unsigned unit : stage.units)
        shape += std::to_string(unit) + ",";
      for (const DeviceGroup &group : stages.back())
        shape += "+" + std::to_string(group.count) + "k" +
                 std::to_string(group.kind) + "w" + std::to_string(group.share);
    }
    auto [found, isNew] = groupOf.try_emplace(shape, groups.size());
    if (isNew) {
      groups.push_back({{unsigned(index)}, std::move(stages)});
      continue;
    }
    ReplicaGroup &group = groups[found->second];
    group.replicas.push_back(index);
    // Owners of state differ between replicas: the fullest one speaks.
    for (auto [mine, other] : llvm::zip_equal(group.stages, stages))
      for (auto [a, b] : llvm::zip_equal(mine, other)) {
        a.busiest_s = std::max(a.busiest_s, b.busiest_s);
        if (b.fullest.total() > a.fullest.total())
          a.fullest = b.fullest;
      }
  }
  return groups;
}

PlanFigures computeFigures(const PlannedStep &step, const UnitTable &table,
                           const Cluster &cluster, int64_t tokens) {
  PlanFigures figures;
  const PlanEvaluation &evaluation = step.evaluation;
  double samples = static_cast<double>(step.plan.global_batch), flops = 0;
  for (const Unit &unit : table.units)
    flops += unit.productFlops();
  // Of many batches, whatever a plan without a backward is best in.
  double step_s =
      evaluation.latency_s > 0 ? evaluation.interval_s : evaluation.step_s;
  figures.samples_per_s = samples / step_s;
  figures.tokens_per_s = figures.samples_per_s * static_cast<double>(tokens);
  figures.flops_per_s = flops * figures.samples_per_s;
  figures.exposed_s = evaluation.exposed_sync_s + evaluation.agreement_s +
                      evaluation.exposed_parameters_s;
  double rate = 0, usdPerHour = 0;
  std::vector<bool> isUsed(cluster.devices().size());
  for (const DeviceEvaluation &entry : evaluation.devices) {
    const DeviceKind &kind = cluster.kindOf(entry.device);
    isUsed[entry.device] = true;
    rate += kind.flops_per_s;
    usdPerHour += kind.usd_per_hour;
    if (kind.usd_per_hour == 0 &&
        !llvm::is_contained(figures.unpriced, kind.name))
      figures.unpriced.push_back(kind.name);
  }
  figures.utilisation = rate > 0 ? figures.flops_per_s / rate : 0;
  for (unsigned device = 0; device < isUsed.size(); ++device)
    if (!isUsed[device])
      figures.idle_usd_per_hour += cluster.kindOf(device).usd_per_hour;
  figures.usd_per_step = usdPerHour * step_s / 3600;
  if (tokens)
    figures.usd_per_million_tokens =
        figures.usd_per_step * 1e6 / (samples * static_cast<double>(tokens));
  return figures;
}

} // namespace autohet

//===- SailorCosts.cpp - our search under Sailor's simulator --------------===//

#include "autohet/Profiles/SailorCosts.h"
#include "JudgeTerms.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>

namespace autohet {

static constexpr double bytesPerFloat = 4;
// Of a stage that was not measured, which mostInFlight() refuses: long, but
// finite, so that sums stay numbers.
static constexpr double unmeasured_s = 1e9;
// Depths that are asked for are smaller than this.
static constexpr int64_t anyDepth = 1 << 20;

UnitTable unitsOfSailorModel(const SailorModel &model) {
  UnitTable table;
  llvm::ArrayRef<LayerFloats> layers = model.sizes.begin()->second;
  for (unsigned layer = 0; layer < model.layer_count; ++layer) {
    Unit unit;
    unit.id = layer == 0 ? "embed"
              : layer + 1 == model.layer_count
                  ? "head"
                  : "block" + std::to_string(layer - 1);
    unit.parameters = {layer};
    table.parameters.push_back(
        {unit.id + ".weight", model.parameterBytes(layer), true});
    unit.activations.all = layers[layer].kept * bytesPerFloat;
    if (layer + 1 < model.layer_count)
      unit.successors = {{layer + 1, layers[layer].output * bytesPerFloat}};
    table.units.push_back(std::move(unit));
  }
  return table;
}

llvm::Expected<Cluster> clusterOfSailorPools(llvm::ArrayRef<SailorPool> pools,
                                             llvm::StringRef zone,
                                             const SailorData &data) {
  Cluster cluster;
  for (const SailorPool &pool : pools) {
    llvm::Expected<const SailorKind *> known = data.kind(pool.kind);
    if (!known)
      return known.takeError();
    if (pool.gpus < 1)
      return llvm::createStringError("a pool of " + pool.kind +
                                     " without GPUs");
    DeviceKind kind;
    kind.name = pool.kind;
    kind.memory_bytes = (*known)->memory_bytes;
    kind.flops_per_s = 1; // times are profiled
    kind.is_gpu = true;
    unsigned index = cluster.addKind(kind);
    int64_t perNode = (*known)->gpus_per_node;
    for (int64_t made = 0; made < pool.gpus; made += perNode)
      cluster.addNode(
          pool.kind + "-" + std::to_string(made / perNode), "",
          std::vector<unsigned>(std::min(perNode, pool.gpus - made), index));
  }
  return cluster;
}

llvm::Error SailorCosts::check(const Cluster &cluster, const SailorModel &model,
                               const SailorData &data, llvm::StringRef zone) {
  for (const DeviceKind &kind : cluster.kinds) {
    bool isUsed = llvm::any_of(cluster.devices(), [&](const Device &device) {
      return &cluster.kinds[device.kind] == &kind;
    });
    if (!isUsed)
      continue;
    if (llvm::Expected<const SailorKind *> known = data.kind(kind.name); !known)
      return known.takeError();
    bool hasProfile = llvm::any_of(model.times, [&](const auto &entry) {
      return std::get<0>(entry.first) == kind.name;
    });
    if (!hasProfile)
      return model.seconds(kind.name, 1, 1).takeError();
    for (const DeviceKind &other : cluster.kinds)
      if (llvm::any_of(cluster.devices(), [&](const Device &device) {
            return &cluster.kinds[device.kind] == &other;
          }))
        if (auto link = data.link({zone.str(), kind.name, 1},
                                  {zone.str(), other.name, 1});
            !link)
          return link.takeError();
  }
  return llvm::Error::success();
}

SailorCosts::SailorCosts(const UnitTable &table, const Cluster &cluster,
                         const SailorModel &model, const SailorData &data,
                         llvm::StringRef zone, const JudgeOptions &options)
    : PlanCosts(table, cluster, OptimizerKind::Adam), model(model), data(data),
      zone(zone), options(options),
      terms(std::make_unique<JudgeTerms>(model, data, options)) {
  makeShapes([&](const StageShape &shape) {
    if (shape.parts.size() != 1)
      return false;
    const std::string &kind =
        cluster.kinds[classes()[shape.parts[0].machine_class].kind].name;
    return llvm::any_of(model.times, [&](const auto &entry) {
      return std::get<0>(entry.first) == kind &&
             std::get<2>(entry.first) == shape.parts[0].count;
    });
  });
}

SailorCosts::~SailorCosts() = default;

SailorGroup SailorCosts::groupOf(unsigned machineClass, unsigned extent) const {
  const DeviceKind &kind = machines().kinds[classes()[machineClass].kind];
  int64_t perNode = extent;
  for (const SailorKind &known : data.kinds)
    if (known.name == kind.name)
      perNode = known.gpus_per_node;
  return {kind.name, perNode, zone, static_cast<int64_t>(extent)};
}

const std::vector<LayerSeconds> *
SailorCosts::secondsOf(unsigned shape, int64_t microbatchSize) const {
  const StageShape::Part &part = shapes()[shape].parts[0];
  return model.findSeconds(
      machines().kinds[classes()[part.machine_class].kind].name, microbatchSize,
      part.count);
}

PassSeconds SailorCosts::unitSeconds(unsigned shape, unsigned unit,
                                     int64_t microbatchSize) const {
  const std::vector<LayerSeconds> *layers = secondsOf(shape, microbatchSize);
  if (!layers)
    return {unmeasured_s, unmeasured_s};
  return {(*layers)[unit].forward_s, (*layers)[unit].backward_s};
}

// Every stage but the last is charged for its activations, whatever else.
PassSeconds SailorCosts::transferSeconds(unsigned fromClass, unsigned toClass,
                                         unsigned cut, int64_t microbatchSize,
                                         bool) const {
  double best = unmeasured_s;
  for (int64_t from = 1; from <= classes()[fromClass].per_node; from *= 2)
    for (int64_t to = 1; to <= classes()[toClass].per_node; to *= 2) {
      auto seconds =
          terms->sendSeconds(groupOf(fromClass, from), groupOf(toClass, to),
                             cut - 1, microbatchSize);
      if (seconds)
        best = std::min(best, *seconds);
      else // not every number of GPUs was measured
        llvm::consumeError(seconds.takeError());
    }
  return {best, 0};
}

int64_t SailorCosts::mostInFlight(const StageQuery &stage, double) const {
  if (!secondsOf(stage.shape, stage.microbatch_size))
    return 0;
  const StageShape::Part &part = shapes()[stage.shape].parts[0];
  double room = memoryRoom(classes()[part.machine_class].devices.front());
  auto need = [&](int64_t inFlight) {
    llvm::Expected<double> bytes = terms->memoryBytes(
        part.count, stage.begin, stage.end, stage.microbatch_size, inFlight);
    if (bytes)
      return *bytes;
    llvm::consumeError(bytes.takeError()); // no sizes for this extent
    return 2 * room;
  };
  double none = need(0), each = need(1) - none;
  if (none + each > room)
    return 0;
  if (each <= 0)
    return anyDepth;
  return std::min<int64_t>(anyDepth, std::min((room - none) / each, 1e15));
}

// Its links are those between groups of GPUs, wherever these are.
ExchangeWays SailorCosts::exchangeWays(const StageQuery &stage,
                                       const StageHolders &holders) const {
  if (holders.replicas < 2)
    return {ExchangeSeconds()};
  const StageShape::Part &part = shapes()[stage.shape].parts[0];
  std::vector<SailorGroup> ring(holders.replicas,
                                groupOf(part.machine_class, part.count));
  llvm::Expected<double> seconds =
      terms->ringSeconds(ring, stage.begin, stage.end);
  if (!seconds) {
    llvm::consumeError(seconds.takeError());
    return {{unmeasured_s, 0}};
  }
  // Both ways together are one all-reduce.
  return {{*seconds / 2, 0}};
}

std::vector<JudgedReplica>
SailorCosts::replicasOf(const ResolvedPlan &plan) const {
  std::vector<JudgedReplica> replicas;
  for (const ResolvedReplica &replica : plan.replicas) {
    JudgedReplica &judged = replicas.emplace_back();
    judged.microbatch_size = replica.microbatch_size;
    judged.microbatches = replica.microbatches;
    for (const ResolvedStage &stage : replica.stages)
      judged.stages.push_back({stage.units.front(), stage.units.back() + 1,
                               groupOf(classes().classOf(stage.devices.front()),
                                       stage.devices.size())});
  }
  return replicas;
}

PlanEvaluation SailorCosts::evaluate(const ResolvedPlan &plan, Schedule,
                                     llvm::StringRef) const {
  PlanEvaluation evaluation;
  // Rings pass from neighbour to neighbour: equal replicas stand together.
  llvm::Expected<JudgedStep> step =
      judgeReplicas(replicasOf(plan), model, data, options);
  if (!step) {
    llvm::consumeError(step.takeError()); // unmeasured: as mostInFlight says
    evaluation.step_s = unmeasured_s;
  } else {
    evaluation.step_s = step->step_s;
    evaluation.pipeline_s = step->pipeline_s;
    evaluation.update_s = step->update_s;
    evaluation.exposed_sync_s = step->sync_s;
  }
  double idle_s = 0;
  for (auto [r, replica] : llvm::enumerate(plan.replicas))
    for (auto [s, stage] : llvm::enumerate(replica.stages)) {
      auto bytes = terms->memoryBytes(
          stage.devices.size(), stage.units.front(), stage.units.back() + 1,
          replica.microbatch_size, replica.stages.size() - s);
      double need = std::numeric_limits<double>::infinity(), busy = 0;
      if (bytes && step)
        need = *bytes;
      else
        llvm::consumeError(bytes.takeError());
      if (const std::vector<LayerSeconds> *layers =
              model.findSeconds(machines().kindOf(stage.devices.front()).name,
                                replica.microbatch_size, stage.devices.size()))
        for (unsigned layer : stage.units)
          busy += (*layers)[layer].pass() *
                  static_cast<double>(replica.microbatches);
      idle_s += (evaluation.pipeline_s - busy) *
                static_cast<double>(stage.devices.size());
      for (auto [position, device] : llvm::enumerate(stage.devices)) {
        DeviceEvaluation &entry = evaluation.devices.emplace_back();
        entry.device = device;
        entry.replica = r;
        entry.stage = s;
        entry.position = position;
        entry.memory.workspace_bytes = need;
        entry.busy_s = busy;
      }
    }
  if (evaluation.pipeline_s > 0)
    evaluation.bubble =
        idle_s / (evaluation.pipeline_s *
                  static_cast<double>(evaluation.devices.size()));
  return evaluation;
}

llvm::Expected<SailorPlan> exportToSailor(const SailorCosts &costs,
                                          const ResolvedPlan &plan,
                                          int64_t globalBatch) {
  std::vector<JudgedReplica> replicas = costs.replicasOf(plan);
  const JudgedReplica &first = replicas.front();
  SailorPlan result;
  result.global_batch = globalBatch;
  result.microbatch_size = first.microbatch_size;
  SailorPipeline pipeline;
  for (const JudgedReplica::Stage &stage : first.stages)
    pipeline.stages.push_back({stage.begin, stage.end, {}});
  for (auto [number, replica] : llvm::enumerate(replicas)) {
    std::string what;
    if (replica.microbatch_size != first.microbatch_size)
      what = "microbatches of " + std::to_string(replica.microbatch_size);
    else if (replica.microbatches != first.microbatches)
      what = std::to_string(replica.microbatches) + " microbatches";
    else if (replica.stages.size() != first.stages.size())
      what = std::to_string(replica.stages.size()) + " stages";
    for (size_t s = 0; what.empty() && s < first.stages.size(); ++s)
      if (replica.stages[s].end != first.stages[s].end)
        what = "other cuts";
    if (!what.empty())
      return llvm::createStringError(
          "Sailor has equal replicas only: replica " + std::to_string(number) +
          " has " + what);
    for (size_t s = 0; s < first.stages.size(); ++s)
      pipeline.stages[s].groups.push_back(replica.stages[s].group);
  }
  result.pipelines.push_back(std::move(pipeline));
  return result;
}

} // namespace autohet

//===- Template.cpp - a pipeline of stage shapes --------------------------===//

#include "autohet/Planner/Template.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

int64_t Template::microbatchesWithin(double limit_s) const {
  double room = limit_s - way_s - rest_s;
  if (room < 0)
    return 0;
  if (pace_s <= 0)
    return std::numeric_limits<int64_t>::max() / 4;
  // A count that exactly fills the limit is within it.
  return 1 + static_cast<int64_t>(room / pace_s * (1 + 1e-12) + 1e-9);
}

bool TemplateSpace::allows(Keeping keeping, unsigned shape) const {
  switch (keeping) {
  case Keeping::All:
    return true;
  case Keeping::Inputs:
    return allow_recompute;
  case Keeping::OnHost:
    return allow_offload && costs.mayOffload(shape);
  }
  llvm_unreachable("unknown keeping");
}

bool TemplateSpace::allows(unsigned shape) const {
  return (allowed_shapes.empty() || allowed_shapes[shape]) &&
         (!tensor_parallel ||
          costs.shapes()[shape].deviceCount() == *tensor_parallel);
}

PassSeconds exposedSeconds(const ExchangeSeconds &exchange, double first,
                           const PassSeconds &before, const PassSeconds &own) {
  double all_s = exchange.total();
  double forward_s = std::max(all_s * first, all_s - own.forward_s);
  double backward_s =
      exchange.second_s +
      std::max(exchange.first_s * first, exchange.first_s - own.backward_s);
  return {std::max(0.0, forward_s - before.forward_s),
          std::max(0.0, backward_s - before.backward_s)};
}

PassSeconds exposedSeconds(llvm::ArrayRef<ExchangeSeconds> ways, double first,
                           const PassSeconds &before, const PassSeconds &own) {
  PassSeconds least = exposedSeconds(ways.front(), first, before, own);
  for (const ExchangeSeconds &way : ways.drop_front()) {
    PassSeconds seconds = exposedSeconds(way, first, before, own);
    if (seconds.total() < least.total())
      least = seconds;
  }
  return least;
}

void measureTemplate(Template &made, const TemplateSpace &space) {
  const PlanCosts &costs = space.costs;
  made.devices.assign(costs.classes().size(), 0);
  made.period_s = made.way_s = made.slack_s = made.rest_s = 0;
  for (const TemplateStage &stage : made.stages)
    for (const StageShape::Part &part : costs.shapes()[stage.shape].parts)
      made.devices[part.machine_class] += part.count;
  StageHolders holders = space.holders();
  // An estimate: parts differ little where all have room.
  if (space.are_stages_apart && holders.state_parts == StateParts::Uneven)
    holders.state_parts = StateParts::Even;
  if (space.are_stages_apart)
    for (auto [index, count] : llvm::enumerate(made.devices))
      if (count)
        holders.most_together = std::min<int64_t>(
            holders.most_together.value_or(space.min_replicas),
            costs.classes()[index].devices.size() / count);
  std::vector<double> times, forwards, transfers;
  PassSeconds before, exposed;
  for (auto [index, stage] : llvm::enumerate(made.stages)) {
    PassSeconds seconds;
    for (unsigned unit = stage.begin; unit < stage.end; ++unit)
      seconds += costs.secondsKeeping(stage.keeping, stage.shape, unit,
                                      made.microbatch_size);
    const StageShape &shape = costs.shapes()[stage.shape];
    // The first stage's last backward ends the pipelines, and its first forward
    // begins them: only stages before hide what a stage exchanges.
    StageQuery query = {stage.begin, stage.end, stage.shape,
                        made.microbatch_size, stage.keeping};
    ExchangeWays ways = costs.exchangeWays(query, holders);
    // Without a second that hides anything, all ways are seen whole.
    PassSeconds late =
        costs.syncOverlaps()
            ? exposedSeconds(ways, costs.firstMessage(query), before, seconds)
            : exposedSeconds(ways, 1, {}, {});
    if (index == 0) {
      PassSeconds update = costs.updateSeconds(query, space.ownedAtBest());
      late.forward_s = std::max(late.forward_s, update.forward_s);
      late.backward_s = std::max(late.backward_s, update.backward_s);
    }
    exposed.forward_s = std::max(exposed.forward_s, late.forward_s);
    exposed.backward_s = std::max(exposed.backward_s, late.backward_s);
    before += seconds;
    double time = seconds.total();
    made.way_s += time;
    transfers.push_back(0);
    if (index + 1 < made.stages.size()) {
      unsigned next = costs.shapes()[made.stages[index + 1].shape].mainClass();
      PassSeconds transfer =
          costs.transferSeconds(shape.mainClass(), next, stage.end,
                                made.microbatch_size, space.are_stages_apart);
      made.way_s += transfer.total();
      transfers.back() = transfer.total();
      before += transfer;
      if (costs.transfersOverlap())
        made.period_s = std::max(
            made.period_s,
            costs.transferPeriod(shape.mainClass(), next, stage.end,
                                 made.microbatch_size, space.are_stages_apart));
      else
        time += transfer.total();
    }
    times.push_back(time);
    forwards.push_back(seconds.forward_s);
    made.period_s = std::max(made.period_s, time);
  }
  made.rest_s = exposed.total();
  made.pace_s = made.period_s;
  if (!costs.hasBackward()) {
    if (costs.planObjective() == PlanObjective::Throughput)
      made.way_s = made.period_s;
    return;
  }
  if (costs.transfersOverlap()) {
    double way = 0;
    for (size_t index = times.size(); index-- > 0;) {
      way += times[index] + transfers[index];
      made.pace_s = std::max(made.pace_s,
                             way / static_cast<double>(times.size() - index));
    }
  }
  if (!costs.transfersOverlap())
    return;
  // Behind the last of the longest stages; none where a transfer is longer.
  double behind_s = 0;
  for (size_t index = times.size(); index-- > 0;) {
    behind_s += transfers[index];
    if (times[index] >= made.period_s) {
      double forwards_s =
          forwards[index] * static_cast<double>(times.size() - index - 1);
      made.slack_s = std::min({made.slack_s, behind_s, forwards_s});
      return;
    }
    behind_s += times[index];
    made.slack_s += made.period_s - times[index];
  }
  made.slack_s = 0;
}

void runTemplate(Template &made, const PlanCosts &costs, int64_t microbatches) {
  if (made.stages.size() < 2 || microbatches < 2 || !costs.transfersOverlap() ||
      !costs.hasBackward())
    return;
  Pipeline pipeline;
  unsigned inNode = 0;
  for (auto [index, stage] : llvm::enumerate(made.stages)) {
    PassSeconds &seconds = pipeline.stages.emplace_back();
    for (unsigned unit = stage.begin; unit < stage.end; ++unit)
      seconds += costs.secondsKeeping(stage.keeping, stage.shape, unit,
                                      made.microbatch_size);
    if (index + 1 == made.stages.size())
      break;
    // Stages fill nodes one after the other.
    const StageShape &shape = costs.shapes()[stage.shape];
    const StageShape &next = costs.shapes()[made.stages[index + 1].shape];
    const MachineClass &main = costs.classes()[shape.mainClass()];
    inNode += shape.deviceCount();
    bool areApart =
        main.node_make != costs.classes()[next.mainClass()].node_make ||
        inNode + next.deviceCount() > main.per_node;
    if (areApart)
      inNode = 0;
    PassSeconds transfer =
        costs.transferSeconds(shape.mainClass(), next.mainClass(), stage.end,
                              made.microbatch_size, areApart);
    // One byte over links of that speed.
    unsigned from = index, to = index + 1;
    pipeline.edges.push_back({from,
                              to,
                              1,
                              {1 / transfer.forward_s, 0},
                              {1 / transfer.backward_s, 0}});
  }
  auto secondsOf = [&](int64_t count) {
    pipeline.microbatches = count;
    return runPipeline(pipeline).end_s;
  };
  int64_t half = microbatches / 2;
  double all_s = secondsOf(microbatches), half_s = secondsOf(half);
  made.pace_s = (all_s - half_s) / static_cast<double>(microbatches - half);
  made.way_s = all_s - static_cast<double>(microbatches - 1) * made.pace_s;
}

std::string checkTemplate(const Template &made, const TemplateSpace &space,
                          double owned) {
  unsigned unit = 0;
  for (auto [index, stage] : llvm::enumerate(made.stages)) {
    std::string place = "stage " + std::to_string(index);
    if (stage.begin != unit || stage.end <= stage.begin)
      return place + " does not follow the one before";
    unit = stage.end;
    if (!space.allows(stage.shape))
      return place + " has a shape that is not allowed";
    if (!space.allows(stage.keeping, stage.shape))
      return place + " keeps activations in a way that is not allowed";
    int64_t depth = made.stages.size() - index;
    if (space.costs.mostInFlight({stage.begin, stage.end, stage.shape,
                                  made.microbatch_size, stage.keeping},
                                 owned) < depth)
      return place + " lacks memory";
  }
  return unit == space.costs.units().units.size() ? "" : "units are left over";
}

} // namespace autohet

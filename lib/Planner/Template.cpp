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

bool TemplateSpace::allows(unsigned shape) const {
  return (allowed_shapes.empty() || allowed_shapes[shape]) &&
         (!tensor_parallel ||
          costs.shapes()[shape].deviceCount() == *tensor_parallel);
}

void measureTemplate(Template &made, const TemplateSpace &space) {
  const PlanCosts &costs = space.costs;
  made.devices.assign(costs.classes().size(), 0);
  made.period_s = made.way_s = made.slack_s = made.rest_s = 0;
  std::vector<double> times, transfers;
  PassSeconds before, exposed;
  for (auto [index, stage] : llvm::enumerate(made.stages)) {
    PassSeconds seconds;
    for (unsigned unit = stage.begin; unit < stage.end; ++unit) {
      seconds += costs.unitSeconds(stage.shape, unit, made.microbatch_size);
      if (stage.recompute)
        seconds.backward_s +=
            costs.recomputeSeconds(stage.shape, unit, made.microbatch_size);
    }
    const StageShape &shape = costs.shapes()[stage.shape];
    for (const StageShape::Part &part : shape.parts)
      made.devices[part.machine_class] += part.count;
    // The first stage's last backward ends the pipelines, and its first forward
    // begins them: only stages before hide what a stage exchanges.
    before += seconds;
    double sync = costs.syncSeconds({stage.begin, stage.end, stage.shape,
                                     made.microbatch_size, stage.recompute},
                                    space.min_replicas);
    if (!costs.syncOverlaps())
      before = {};
    exposed.forward_s = std::max(exposed.forward_s, sync - before.forward_s);
    exposed.backward_s = std::max(exposed.backward_s, sync - before.backward_s);
    double time = seconds.total();
    made.way_s += time;
    transfers.push_back(0);
    if (index + 1 < made.stages.size()) {
      unsigned next = costs.shapes()[made.stages[index + 1].shape].mainClass();
      PassSeconds transfer = costs.transferSeconds(
          shape.mainClass(), next, stage.end, made.microbatch_size);
      made.way_s += transfer.total();
      transfers.back() = transfer.total();
      if (costs.transfersOverlap())
        made.period_s =
            std::max({made.period_s, transfer.forward_s, transfer.backward_s});
      else
        time += transfer.total();
    }
    times.push_back(time);
    made.period_s = std::max(made.period_s, time);
  }
  made.rest_s = exposed.total();
  made.pace_s = made.period_s;
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
      made.slack_s = std::min(made.slack_s, behind_s);
      return;
    }
    behind_s += times[index];
    made.slack_s += made.period_s - times[index];
  }
  made.slack_s = 0;
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
    if (stage.recompute && !space.allow_recompute)
      return place + " recomputes";
    int64_t depth = made.stages.size() - index;
    if (space.costs.mostInFlight({stage.begin, stage.end, stage.shape,
                                  made.microbatch_size, stage.recompute},
                                 owned) < depth)
      return place + " lacks memory";
  }
  return unit == space.costs.units().units.size() ? "" : "units are left over";
}

} // namespace autohet

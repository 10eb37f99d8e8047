//===- MeasuredRuns.cpp - our estimate of Sailor's measured runs ----------===//

#include "autohet/Profiles/MeasuredRuns.h"

#include <algorithm>

namespace autohet {
namespace {

class RunModel {
public:
  RunModel(const SailorPlan &plan, const SailorModel &model,
           const SailorData &data, const Installation &installation)
      : plan(plan), model(model), data(data), installation(installation),
        stages(plan.pipelines[0].stages) {}

  llvm::Expected<RunEstimate> estimate() {
    RunEstimate result;
    double update = 0, sync = 0;
    size_t replicas = stages[0].groups.size();
    for (size_t replica = 0; replica < replicas; ++replica) {
      auto seconds = replicaSeconds(replica);
      if (!seconds)
        return seconds.takeError();
      result.step_s = std::max(result.step_s, *seconds);
    }
    for (size_t s = 0; s < stages.size(); ++s)
      for (const SailorGroup &group : stages[s].groups) {
        auto layers =
            model.seconds(group.kind, plan.microbatch_size, group.tensor);
        if (!layers)
          return layers.takeError();
        update = std::max(update, (*layers)[stages[s].begin].update_s);
        auto bytes = memoryBytes(s, group.tensor);
        if (!bytes)
          return bytes.takeError();
        result.memory_bytes = std::max(result.memory_bytes, *bytes);
        auto seconds = syncSeconds(stages[s], group);
        if (!seconds)
          return seconds.takeError();
        sync = std::max(sync, *seconds);
      }
    result.step_s += update + sync;
    return result;
  }

private:
  llvm::Expected<double> replicaSeconds(size_t replica) {
    double way = 0, longest = 0, fromPrevious = 0;
    for (size_t s = 0; s < stages.size(); ++s) {
      const SailorGroup &group = stages[s].groups[replica];
      auto layers =
          model.seconds(group.kind, plan.microbatch_size, group.tensor);
      if (!layers)
        return layers.takeError();
      double compute = 0;
      for (unsigned layer = stages[s].begin; layer < stages[s].end; ++layer)
        compute += (*layers)[layer].pass();
      double toNext = 0;
      if (s + 1 < stages.size()) {
        double bytes = model.sizes.begin()->second[stages[s].end - 1].output *
                       4 * static_cast<double>(plan.microbatch_size);
        for (const SailorGroup *end :
             {&group, &stages[s + 1].groups[replica]}) {
          auto fit = data.sameKind(end->kind, 1);
          if (!fit)
            return fit.takeError();
          toNext = std::max(toNext, fit->seconds(bytes));
        }
      }
      longest = std::max(longest, compute + 2 * (fromPrevious + toNext));
      way += compute + 2 * toNext;
      fromPrevious = toNext;
    }
    return static_cast<double>(plan.microbatches() - 1) * longest + way;
  }

  llvm::Expected<double> syncSeconds(const SailorStage &stage,
                                     const SailorGroup &group) {
    double replicas = static_cast<double>(stage.groups.size());
    if (replicas < 2)
      return 0;
    double bytes = 0;
    for (unsigned layer = stage.begin; layer < stage.end; ++layer)
      bytes += model.parameterBytes(layer);
    auto fit = data.sameKind(group.kind, group.tensor);
    if (!fit)
      return fit.takeError();
    return installation.sync_start_s +
           2 * (replicas - 1) / replicas * bytes /
               fit->bytesPerSecond(bytes / replicas);
  }

  llvm::Expected<double> memoryBytes(size_t s, int64_t tensor) {
    auto layers = model.floats(tensor);
    if (!layers)
      return layers.takeError();
    double parameters = 0, kept = 0;
    double attention =
        static_cast<double>(installation.heads / tensor *
                            installation.sequence * installation.sequence);
    for (unsigned layer = stages[s].begin; layer < stages[s].end; ++layer) {
      parameters += (*layers)[layer].parameters;
      kept += (*layers)[layer].kept;
      bool isBlock = layer > 0 && layer + 1 < model.layer_count;
      if (isBlock && !installation.keeps_attention)
        kept -= attention;
    }
    int64_t inFlight =
        std::min<int64_t>(stages.size() - s, plan.microbatches());
    return parameters * installation.bytes_per_parameter +
           kept * 4 * static_cast<double>(plan.microbatch_size * inFlight) *
               installation.kept_factor +
           installation.base_bytes +
           installation.bytes_per_peer * static_cast<double>(tensor - 1);
  }

  const SailorPlan &plan;
  const SailorModel &model;
  const SailorData &data;
  const Installation &installation;
  const std::vector<SailorStage> &stages;
};

} // namespace

llvm::Expected<RunEstimate> estimateRun(const SailorPlan &plan,
                                        const SailorModel &model,
                                        const SailorData &data,
                                        const Installation &installation) {
  if (plan.pipelines.size() != 1)
    return llvm::createStringError("a run of " +
                                   std::to_string(plan.pipelines.size()) +
                                   " pipelines: only one is supported");
  for (const SailorStage &stage : plan.pipelines[0].stages)
    if (stage.groups.size() != plan.pipelines[0].stages[0].groups.size())
      return llvm::createStringError(
          "a run whose stages have unlike numbers of groups");
  return RunModel(plan, model, data, installation).estimate();
}

} // namespace autohet

//===- SailorJudge.cpp - what a plan costs by Sailor's simulator ----------===//

#include "autohet/Profiles/SailorJudge.h"
#include "JudgeTerms.h"

#include <algorithm>

namespace autohet {
namespace {

class Judge {
public:
  Judge(const SailorModel &model, const SailorData &data,
        const JudgeOptions &options)
      : terms(model, data, options), data(data) {}

  llvm::Error checkLayers(unsigned end, unsigned layerCount) {
    if (end == layerCount)
      return llvm::Error::success();
    return llvm::createStringError("the stages have " + std::to_string(end) +
                                   " layers, the model " +
                                   std::to_string(layerCount));
  }

  llvm::Error addMemory(const SailorGroup &group, unsigned begin, unsigned end,
                        int64_t microbatchSize, int64_t inFlight) {
    auto need =
        terms.memoryBytes(group.tensor, begin, end, microbatchSize, inFlight);
    if (!need)
      return need.takeError();
    auto kind = data.kind(group.kind);
    if (!kind)
      return kind.takeError();
    double room = (*kind)->memory_bytes - *need;
    if (isFirst || room < step.room_bytes) {
      step.memory_bytes = *need;
      step.room_bytes = room;
      isFirst = false;
    }
    return llvm::Error::success();
  }

  llvm::Error addPipeline(const SailorPipeline &pipeline,
                          int64_t microbatchSize, int64_t microbatches) {
    const std::vector<SailorStage> &stages = pipeline.stages;
    size_t count = stages.size();
    double longest = 0, way = 0, update = 0;
    for (size_t s = 0; s < count; ++s) {
      double pass = 0, activations = 0, gradients = 0;
      for (size_t g = 0; g < stages[s].groups.size(); ++g) {
        const SailorGroup &group = stages[s].groups[g];
        auto seconds = terms.stageSeconds(group, stages[s].begin, stages[s].end,
                                          microbatchSize);
        if (!seconds)
          return seconds.takeError();
        pass = std::max(pass, seconds->pass_s);
        update = std::max(update, seconds->update_s);
        if (llvm::Error error =
                addMemory(group, stages[s].begin, stages[s].end, microbatchSize,
                          static_cast<int64_t>(count - s)))
          return error;
        auto send = [&](const SailorStage &to, unsigned layer,
                        double &slowest) -> llvm::Error {
          auto time = terms.sendSeconds(group, to.groups[g % to.groups.size()],
                                        layer, microbatchSize);
          if (!time)
            return time.takeError();
          slowest = std::max(slowest, *time);
          return llvm::Error::success();
        };
        if (s + 1 < count)
          if (llvm::Error error =
                  send(stages[s + 1], stages[s].end - 1, activations))
            return error;
        if (s > 0)
          if (llvm::Error error =
                  send(stages[s - 1], stages[s].begin, gradients))
            return error;
      }
      double slot = pass + countedSends(s, count, activations, gradients);
      longest = std::max(longest, slot);
      way += slot;
    }
    step.pipeline_s = std::max(
        step.pipeline_s, static_cast<double>(microbatches - 1) * longest + way);
    step.update_s = std::max(step.update_s, update);
    return checkLayers(stages.back().end, terms.model().layer_count);
  }

  /// Within each pipeline, the stage whose groups need longest.
  llvm::Error addGroupSync(const SailorPlan &plan) {
    double slowest = 0;
    for (const SailorPipeline &pipeline : plan.pipelines)
      for (const SailorStage &stage : pipeline.stages) {
        auto seconds = terms.ringSeconds(stage.groups, stage.begin, stage.end);
        if (!seconds)
          return seconds.takeError();
        slowest = std::max(slowest, *seconds);
      }
    step.sync_s += slowest;
    return llvm::Error::success();
  }

  /// Between pipelines, by the cuts of the deepest one: whole parameters, at
  /// the rate between nodes of its own kinds.
  llvm::Error addPipelineSync(const SailorPlan &plan) {
    const SailorPipeline *deepest = &plan.pipelines[0];
    for (const SailorPipeline &pipeline : plan.pipelines)
      if (pipeline.stages.size() > deepest->stages.size())
        deepest = &pipeline;
    double slowest = 0;
    for (const SailorStage &stage : deepest->stages)
      for (const SailorGroup &group : stage.groups) {
        SailorGroup single = group;
        single.tensor = 1;
        std::vector<SailorGroup> ring(plan.pipelines.size(), single);
        auto seconds = terms.ringSeconds(ring, stage.begin, stage.end);
        if (!seconds)
          return seconds.takeError();
        slowest = std::max(slowest, *seconds);
      }
    step.sync_s += slowest;
    return llvm::Error::success();
  }

  llvm::Error addReplica(const JudgedReplica &replica) {
    SailorPipeline pipeline;
    for (const JudgedReplica::Stage &stage : replica.stages)
      pipeline.stages.push_back({stage.begin, stage.end, {stage.group}});
    return addPipeline(pipeline, replica.microbatch_size, replica.microbatches);
  }

  llvm::Error addReplicaSync(llvm::ArrayRef<JudgedReplica> replicas) {
    // [replica][stage]: what the stage's devices spend in all their rings.
    std::vector<std::vector<double>> spent;
    for (const JudgedReplica &replica : replicas)
      spent.emplace_back(replica.stages.size(), 0.0);
    std::vector<size_t> at(replicas.size(), 0);
    for (unsigned begin = 0; begin < terms.model().layer_count;) {
      unsigned end = terms.model().layer_count;
      std::vector<SailorGroup> holders;
      for (size_t r = 0; r < replicas.size(); ++r) {
        while (replicas[r].stages[at[r]].end <= begin)
          ++at[r];
        const JudgedReplica::Stage &stage = replicas[r].stages[at[r]];
        end = std::min(end, stage.end);
        holders.push_back(stage.group);
      }
      auto seconds = terms.ringSeconds(holders, begin, end);
      if (!seconds)
        return seconds.takeError();
      for (size_t r = 0; r < replicas.size(); ++r)
        spent[r][at[r]] += *seconds;
      begin = end;
    }
    for (const std::vector<double> &stages : spent)
      for (double seconds : stages)
        step.sync_s = std::max(step.sync_s, seconds);
    return llvm::Error::success();
  }

  JudgedStep finish() {
    step.step_s = step.pipeline_s + step.update_s + step.sync_s;
    return step;
  }

private:
  JudgeTerms terms;
  const SailorData &data;
  JudgedStep step;
  bool isFirst = true;
};

} // namespace

llvm::Expected<JudgedStep> judgeSailorPlan(const SailorPlan &plan,
                                           const SailorModel &model,
                                           const SailorData &data,
                                           const JudgeOptions &options) {
  Judge judge(model, data, options);
  for (const SailorPipeline &pipeline : plan.pipelines)
    if (llvm::Error error = judge.addPipeline(pipeline, plan.microbatch_size,
                                              plan.microbatches()))
      return error;
  if (llvm::Error error = judge.addGroupSync(plan))
    return error;
  if (plan.pipelines.size() > 1)
    if (llvm::Error error = judge.addPipelineSync(plan))
      return error;
  return judge.finish();
}

llvm::Expected<JudgedStep> judgeReplicas(llvm::ArrayRef<JudgedReplica> replicas,
                                         const SailorModel &model,
                                         const SailorData &data,
                                         const JudgeOptions &options) {
  Judge judge(model, data, options);
  for (const JudgedReplica &replica : replicas)
    if (llvm::Error error = judge.addReplica(replica))
      return error;
  if (llvm::Error error = judge.addReplicaSync(replicas))
    return error;
  return judge.finish();
}

} // namespace autohet

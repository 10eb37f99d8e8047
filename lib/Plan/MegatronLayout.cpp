//===- MegatronLayout.cpp - a plan as flags of Megatron-LM ----------------===//

#include "autohet/Plan/MegatronLayout.h"

#include "llvm/ADT/STLExtras.h"

namespace autohet {
namespace {

/// Whether a unit is the first, or the last, of its layer: "block3" is both.
struct LayerPart {
  bool is_layer = false, begins = false, ends = false;
};

LayerPart partOf(unsigned unit, const UnitTable &table) {
  auto layerOf = [&](unsigned other) {
    llvm::StringRef id = table.units[other].id;
    return id.starts_with("block") ? id.split('.').first : llvm::StringRef();
  };
  llvm::StringRef layer = layerOf(unit);
  if (layer.empty())
    return {};
  return {true, unit == 0 || layerOf(unit - 1) != layer,
          unit + 1 == table.units.size() || layerOf(unit + 1) != layer};
}

/// "Et*3", or the reason why not.
std::string describeStage(const ResolvedStage &stage, const UnitTable &table,
                          const std::string &where,
                          std::vector<std::string> &reasons) {
  std::string text;
  unsigned layers = 0;
  auto flush = [&] {
    if (layers)
      text += layers == 1 ? "t" : "t*" + std::to_string(layers);
    layers = 0;
  };
  for (auto [position, unit] : llvm::enumerate(stage.units)) {
    const std::string &id = table.units[unit].id;
    LayerPart part = partOf(unit, table);
    if (part.is_layer) {
      if (position == 0 && !part.begins)
        reasons.push_back(where + " begins within a layer, with " + id);
      if (position + 1 == stage.units.size() && !part.ends)
        reasons.push_back(where + " ends within a layer, with " + id);
      layers += part.ends;
    } else if (id == "embed" || id == "head") {
      flush();
      text += id == "embed" ? "E" : "L";
    } else {
      reasons.push_back(where + " has " + id + ", which is no layer");
    }
  }
  flush();
  return text;
}

bool isEqual(const ResolvedReplica &a, const ResolvedReplica &b) {
  return a.microbatch_size == b.microbatch_size &&
         a.microbatches == b.microbatches &&
         llvm::equal(a.stages, b.stages,
                     [](const ResolvedStage &x, const ResolvedStage &y) {
                       return x.units == y.units &&
                              x.devices.size() == y.devices.size();
                     });
}

} // namespace

std::string MegatronLayout::flags() const {
  std::string text =
      "--tensor-model-parallel-size " + std::to_string(tensor_parallel) +
      " --pipeline-model-parallel-size " + std::to_string(pipeline_parallel) +
      " --micro-batch-size " + std::to_string(microbatch) +
      " --global-batch-size " + std::to_string(global_batch);
  if (pipeline_parallel > 1)
    text += " --pipeline-model-parallel-layout \"" + layout + "\"";
  return text;
}

MegatronLayout exportToMegatron(const ResolvedPlan &plan,
                                const UnitTable &table, int64_t globalBatch,
                                std::vector<std::string> &reasons) {
  MegatronLayout result;
  const ResolvedReplica &first = plan.replicas.front();
  result.data_parallel = plan.replicas.size();
  result.pipeline_parallel = first.stages.size();
  result.tensor_parallel = first.stages.front().devices.size();
  result.microbatch = first.microbatch_size;
  result.global_batch = globalBatch;
  for (auto [number, replica] : llvm::enumerate(plan.replicas))
    if (!isEqual(replica, first))
      reasons.push_back("replica " + std::to_string(number) +
                        " differs from replica 0 in stages or batch");
  for (auto [number, stage] : llvm::enumerate(first.stages)) {
    std::string where = "stage " + std::to_string(number);
    if (int64_t(stage.devices.size()) != result.tensor_parallel)
      reasons.push_back(where + " has " + std::to_string(stage.devices.size()) +
                        " devices, stage 0 has " +
                        std::to_string(result.tensor_parallel));
    if (!llvm::all_equal(stage.weights))
      reasons.push_back(where + " has devices of unlike shares");
    for (auto [other, replica] : llvm::enumerate(plan.replicas))
      if (isEqual(replica, first) &&
          replica.stages[number].state_share != stage.state_share)
        reasons.push_back("replica " + std::to_string(other) +
                          " owns another part of " + where +
                          "'s state than replica 0");
    result.layout +=
        (number ? "|" : "") + describeStage(stage, table, where, reasons);
  }
  return result;
}

} // namespace autohet

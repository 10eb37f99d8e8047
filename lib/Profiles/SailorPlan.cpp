//===- SailorPlan.cpp - plans as Sailor writes them -----------------------===//

#include "autohet/Profiles/SailorPlan.h"
#include "autohet/Support/TreeReader.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace autohet {

int64_t SailorPlan::microbatches() const {
  int64_t groups = static_cast<int64_t>(pipelines.size() *
                                        pipelines[0].stages[0].groups.size());
  return llvm::divideCeil(global_batch, microbatch_size * groups);
}

//===-- Reading -----------------------------------------------------------===//

namespace {

class PlanReader {
public:
  explicit PlanReader(llvm::StringRef file) : errors(file) {}

  llvm::Expected<SailorPlan> read(const Tree &tree) {
    SailorPlan plan;
    MappingReader reader(tree, "a plan of Sailor", errors);
    reader.get("zone");
    reader.get("red_grads"); // waiting and sending, measured on one rank only
    reader.get("N");
    reader.required("mbs", plan.microbatch_size, 1);
    reader.required("gbs", plan.global_batch, 1);
    optionalNumber(reader.get("real"), "'real'", plan.measured_s);
    optionalNumber(reader.get("max_mem"), "'max_mem'", plan.measured_bytes);
    for (const Tree &item : reader.items("pipeline_list", true))
      plan.pipelines.push_back(pipeline(item));
    if (plan.pipelines.empty())
      errors.add(tree.location, "a plan needs a pipeline");
    reader.finish();
    if (llvm::Error error = errors.take())
      return error;
    return plan;
  }

private:
  void optionalNumber(const Tree *tree, const char *what,
                      std::optional<double> &value) {
    double number = 0;
    if (tree && readNumber(*tree, what, number, errors))
      value = number;
  }

  SailorPipeline pipeline(const Tree &tree) {
    SailorPipeline pipeline;
    MappingReader reader(tree, "a pipeline", errors);
    int64_t count = 0;
    reader.required("num_stages", count, 1);
    llvm::ArrayRef<Tree> layers = reader.items("layers_per_stage", true);
    llvm::ArrayRef<Tree> groups = reader.items("tmp_per_stage", true);
    llvm::ArrayRef<Tree> degrees = reader.items("dp", true);
    reader.finish();
    if (count != static_cast<int64_t>(layers.size()) ||
        layers.size() != groups.size() || layers.size() != degrees.size() ||
        layers.empty()) {
      errors.add(tree.location,
                 "'num_stages' is " + llvm::Twine(count) +
                     ", 'layers_per_stage', 'tmp_per_stage' and 'dp' have " +
                     llvm::Twine(layers.size()) + ", " +
                     llvm::Twine(groups.size()) + " and " +
                     llvm::Twine(degrees.size()) + " entries");
      return pipeline;
    }
    unsigned next = 0;
    for (size_t index = 0; index < layers.size(); ++index) {
      SailorStage stage;
      stage.begin = next;
      for (const Tree &item : layers[index].items) {
        int64_t layer = 0;
        if (readInteger(item, "a layer", layer, errors) && layer != next)
          errors.add(item.location, "expected layer " + llvm::Twine(next) +
                                        ", found " + llvm::Twine(layer));
        ++next;
      }
      stage.end = next;
      if (stage.begin == stage.end)
        errors.add(layers[index].location, "a stage without layers");
      for (const Tree &item : groups[index].items)
        stage.groups.push_back(group(item));
      int64_t degree = 0;
      readInteger(degrees[index], "'dp'", degree, errors, 1);
      if (degree != static_cast<int64_t>(stage.groups.size()))
        errors.add(degrees[index].location,
                   "stage " + llvm::Twine(index) + " has " +
                       llvm::Twine(stage.groups.size()) +
                       " groups, 'dp' says " + llvm::Twine(degree));
      pipeline.stages.push_back(std::move(stage));
    }
    return pipeline;
  }

  /// [[[kind, GPUs a node, zone]], tensor parallelism]
  SailorGroup group(const Tree &tree) {
    SailorGroup group;
    bool isPair = tree.items.size() == 2 && tree.items[0].items.size() == 1 &&
                  tree.items[0].items[0].items.size() == 3;
    if (!isPair) {
      errors.add(tree.location, "a group must be [[[kind, GPUs a node, zone]], "
                                "tensor parallelism] with one kind, found " +
                                    tree.describe());
      return group;
    }
    const std::vector<Tree> &machine = tree.items[0].items[0].items;
    readString(machine[0], "a device kind", group.kind, errors);
    readInteger(machine[1], "GPUs a node", group.gpus_per_node, errors, 1);
    readString(machine[2], "a zone", group.zone, errors);
    readInteger(tree.items[1], "tensor parallelism", group.tensor, errors, 1);
    return group;
  }

  ErrorList errors;
};

} // namespace

llvm::Expected<SailorPlan> parseSailorPlan(llvm::StringRef text,
                                           llvm::StringRef file) {
  llvm::Expected<Tree> tree = parseJson(text, file);
  if (!tree)
    return tree.takeError();
  return PlanReader(file).read(*tree);
}

llvm::Expected<SailorPlan> loadSailorPlan(llvm::StringRef path) {
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return text.takeError();
  return parseSailorPlan(*text, path);
}

//===-- Writing -----------------------------------------------------------===//

std::string formatSailorPlan(const SailorPlan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  \"zone\": \"" << plan.pipelines[0].stages[0].groups[0].zone
     << "\",\n  \"pipeline_list\": [";
  llvm::ListSeparator pipelineComma;
  for (const SailorPipeline &pipeline : plan.pipelines) {
    os << pipelineComma << "{\n    \"num_stages\": " << pipeline.stages.size()
       << ",\n    \"layers_per_stage\": [";
    llvm::ListSeparator stageComma;
    for (const SailorStage &stage : pipeline.stages) {
      os << stageComma << "[";
      llvm::ListSeparator comma;
      for (unsigned layer = stage.begin; layer < stage.end; ++layer)
        os << comma << layer;
      os << "]";
    }
    os << "],\n    \"tmp_per_stage\": [";
    llvm::ListSeparator groupsComma;
    for (const SailorStage &stage : pipeline.stages) {
      os << groupsComma << "[";
      llvm::ListSeparator comma;
      for (const SailorGroup &group : stage.groups)
        os << comma << "[[[\"" << group.kind << "\", " << group.gpus_per_node
           << ", \"" << group.zone << "\"]], " << group.tensor << "]";
      os << "]";
    }
    os << "],\n    \"dp\": [";
    llvm::ListSeparator degreeComma;
    for (const SailorStage &stage : pipeline.stages)
      os << degreeComma << stage.groups.size();
    os << "]\n  }";
  }
  os << "],\n  \"mbs\": " << plan.microbatch_size
     << ",\n  \"gbs\": " << plan.global_batch << "\n}\n";
  return text;
}

} // namespace autohet

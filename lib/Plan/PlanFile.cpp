//===- PlanFile.cpp - plan.json -------------------------------------------===//

#include "autohet/Plan/Plan.h"
#include "autohet/Support/Hash.h"
#include "autohet/Support/TreeReader.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

namespace json = llvm::json;

namespace autohet {

//===-- Names -------------------------------------------------------------===//

llvm::StringRef scheduleName(Schedule schedule) {
  return schedule == Schedule::GPipe ? "gpipe" : "1f1b";
}

std::optional<Schedule> parseSchedule(llvm::StringRef name) {
  for (Schedule schedule : {Schedule::GPipe, Schedule::OneForwardOneBackward})
    if (name == scheduleName(schedule))
      return schedule;
  return std::nullopt;
}

llvm::StringRef gradientExchangeName(GradientExchange exchange) {
  return exchange == GradientExchange::Direct ? "direct" : "hierarchical";
}

std::optional<GradientExchange> parseGradientExchange(llvm::StringRef name) {
  for (GradientExchange exchange :
       {GradientExchange::Direct, GradientExchange::Hierarchical})
    if (name == gradientExchangeName(exchange))
      return exchange;
  return std::nullopt;
}

llvm::StringRef optimizerName(OptimizerKind optimizer) {
  switch (optimizer) {
  case OptimizerKind::None:
    return "none";
  case OptimizerKind::SGD:
    return "sgd";
  case OptimizerKind::Adam:
    return "adam";
  case OptimizerKind::AdamW:
    return "adamw";
  }
  llvm_unreachable("covered switch");
}

std::optional<OptimizerKind> parseOptimizer(llvm::StringRef name) {
  for (OptimizerKind optimizer : {OptimizerKind::None, OptimizerKind::SGD,
                                  OptimizerKind::Adam, OptimizerKind::AdamW})
    if (name == optimizerName(optimizer))
      return optimizer;
  return std::nullopt;
}

double stateBytesPerByte(OptimizerKind optimizer) {
  bool hasMoments =
      optimizer == OptimizerKind::Adam || optimizer == OptimizerKind::AdamW;
  return hasMoments ? 2 : 0;
}

//===-- Equality ----------------------------------------------------------===//

bool Stage::operator==(const Stage &other) const {
  return std::tie(units, devices, tensor_parallel, state_share, keeping) ==
         std::tie(other.units, other.devices, other.tensor_parallel,
                  other.state_share, other.keeping);
}

bool Replica::operator==(const Replica &other) const {
  return std::tie(microbatch_size, microbatches, stages) ==
         std::tie(other.microbatch_size, other.microbatches, other.stages);
}

bool Plan::operator==(const Plan &other) const {
  auto fields = [](const Plan &plan) {
    return std::tie(plan.structure_hash, plan.global_batch, plan.optimizer,
                    plan.schedule, plan.state_owner, plan.gradient_exchange,
                    plan.replicas);
  };
  return fields(*this) == fields(other);
}

//===-- Writing -----------------------------------------------------------===//

namespace {

void writeStage(const Stage &stage, llvm::raw_ostream &os) {
  auto strings = [&](const char *key, llvm::ArrayRef<std::string> values) {
    os << "\"" << key << "\": [";
    llvm::ListSeparator comma;
    for (const std::string &value : values)
      os << comma << json::Value(value);
    os << "]";
  };
  os << "        {";
  strings("units", stage.units);
  os << ", ";
  strings("devices", stage.devices);
  if (!stage.tensor_parallel.empty()) {
    os << ", \"tensor_parallel\": [";
    llvm::interleaveComma(stage.tensor_parallel, os);
    os << "]";
  }
  if (stage.state_share != 1)
    os << ", \"state_share\": " << stage.state_share;
  if (stage.keeping == Keeping::Inputs)
    os << ", \"recompute\": true";
  if (stage.keeping == Keeping::OnHost)
    os << ", \"offload\": true";
  os << "}";
}

} // namespace

// By hand, so that a stage is a line: plans are read and diffed by people.
std::string formatPlan(const Plan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  \"format\": 1,\n";
  if (plan.structure_hash)
    os << "  \"structure_hash\": \"" << formatHash(plan.structure_hash)
       << "\",\n";
  os << "  \"global_batch\": " << plan.global_batch << ",\n"
     << "  \"optimizer\": \"" << optimizerName(plan.optimizer) << "\",\n"
     << "  \"schedule\": \"" << scheduleName(plan.schedule) << "\",\n"
     << "  \"state_owner\": " << json::Value(plan.state_owner) << ",\n"
     << "  \"gradient_exchange\": \""
     << gradientExchangeName(plan.gradient_exchange) << "\",\n"
     << "  \"replicas\": [";
  llvm::ListSeparator replicaComma(",");
  for (const Replica &replica : plan.replicas) {
    os << replicaComma
       << "\n    {\n      \"microbatch_size\": " << replica.microbatch_size
       << ",\n      \"microbatches\": " << replica.microbatches
       << ",\n      \"stages\": [";
    llvm::ListSeparator stageComma(",");
    for (const Stage &stage : replica.stages) {
      os << stageComma << "\n";
      writeStage(stage, os);
    }
    os << "\n      ]\n    }";
  }
  os << "\n  ]\n}\n";
  return text;
}

uint64_t planHash(const Plan &plan) { return hashBytes(formatPlan(plan)); }

//===-- Reading -----------------------------------------------------------===//

namespace {

class PlanReader {
public:
  PlanReader(llvm::StringRef file, PlanPurpose purpose)
      : errors(file), purpose(purpose) {}

  llvm::Expected<Plan> read(const Tree &tree) {
    MappingReader reader(tree, "a plan", errors);
    reader.requireFormat(1);
    if (const Tree *hash = reader.get("structure_hash"))
      if (readHash(*hash, "'structure_hash'", plan.structure_hash, errors) &&
          plan.structure_hash == 0)
        errors.add(hash->location,
                   "'structure_hash' is 0, which is no model's; a plan for any "
                   "model has no such key");
    reader.required("global_batch", plan.global_batch, 1);
    readName(reader, "optimizer", "none, sgd, adam, adamw", parseOptimizer,
             plan.optimizer);
    readName(reader, "schedule", "gpipe, 1f1b", parseSchedule, plan.schedule);
    reader.optional("state_owner", plan.state_owner);
    if (reader.get("gradient_exchange"))
      readName(reader, "gradient_exchange", "direct, hierarchical",
               parseGradientExchange, plan.gradient_exchange);
    for (const Tree &item : itemsOf(reader, "replicas"))
      readReplica(item);
    refuseReserved(reader);
    reader.finish();
    if (llvm::Error error = errors.take())
      return error;
    return std::move(plan);
  }

private:
  template <typename T>
  void readName(MappingReader &reader, llvm::StringRef key,
                llvm::StringRef known,
                std::optional<T> (*parse)(llvm::StringRef), T &value) {
    std::string name;
    const Tree *tree = reader.require(key);
    if (!tree || !readString(*tree, "'" + key + "'", name, errors))
      return;
    if (std::optional<T> parsed = parse(name))
      value = *parsed;
    else
      errors.add(tree->location,
                 "unknown " + key + " '" + name + "'; known ones: " + known);
  }

  /// Of a list that must not be empty.
  llvm::ArrayRef<Tree> itemsOf(MappingReader &reader, llvm::StringRef key) {
    const Tree *list = reader.get(key);
    if (list && list->kind == Tree::Kind::Sequence && list->items.empty())
      errors.add(list->location, "'" + key + "' is empty");
    return reader.items(key, true);
  }

  void readReplica(const Tree &tree) {
    Replica &replica = plan.replicas.emplace_back();
    std::string what = "replica " + std::to_string(plan.replicas.size() - 1);
    MappingReader reader(tree, what, errors);
    // Before a model of that size is read, which would be blamed for it.
    for (auto [key, count] :
         {std::pair("microbatch_size", &replica.microbatch_size),
          {"microbatches", &replica.microbatches}})
      if (reader.required(key, *count, 1) && *count > kLargestGlobalBatch)
        errors.add(tree.find(key)->location,
                   "'" + llvm::Twine(key) + "' of " + what + " is " +
                       llvm::Twine(*count) + ", wanted at most " +
                       llvm::Twine(kLargestGlobalBatch));
    for (const Tree &item : itemsOf(reader, "stages"))
      readStage(item, what, replica.stages.emplace_back());
    refuseReserved(reader);
    reader.finish();
  }

  void readStage(const Tree &tree, const llvm::Twine &replica, Stage &stage) {
    MappingReader reader(tree, "a stage of " + replica, errors);
    readStrings(reader, "units", stage.units);
    readStrings(reader, "devices", stage.devices);
    for (const Tree &item : reader.items("tensor_parallel", false))
      readInteger(item, "a share of 'tensor_parallel'",
                  stage.tensor_parallel.emplace_back(), errors);
    reader.optional("state_share", stage.state_share, 0);
    if (purpose == PlanPurpose::Planning)
      stage.keeping = readKeeping(reader);
    else
      refuseReserved(reader);
    reader.finish();
  }

  void readStrings(MappingReader &reader, llvm::StringRef key,
                   std::vector<std::string> &values) {
    for (const Tree &item : itemsOf(reader, key))
      readString(item, "an item of '" + key + "'", values.emplace_back(),
                 errors);
  }

  Keeping readKeeping(MappingReader &reader) {
    bool again = false, onHost = false;
    reader.optional("recompute", again);
    reader.optional("offload", onHost);
    if (again && onHost)
      errors.add(reader.get("offload")->location,
                 "a stage has 'recompute' or 'offload', not both");
    return again ? Keeping::Inputs : onHost ? Keeping::OnHost : Keeping::All;
  }

  // Keys of what nothing executes: said so, instead of "unknown" or ignored.
  void refuseReserved(MappingReader &reader) {
    for (llvm::StringRef key : {"recompute", "offload"})
      if (const Tree *tree = reader.get(key))
        if (tree->text != "false" || tree->quoted)
          errors.add(tree->location,
                     "'" + key +
                         "' is reserved: this version cannot do it; "
                         "leave it out");
  }

  ErrorList errors;
  PlanPurpose purpose;
  Plan plan;
};

} // namespace

llvm::Expected<Plan> parsePlan(llvm::StringRef text, llvm::StringRef file,
                               PlanPurpose purpose) {
  llvm::Expected<Tree> tree = parseJson(text, file);
  if (!tree)
    return llvm::createStringError(llvm::toString(tree.takeError()) +
                                   "; a plan is a JSON file");
  return PlanReader(file, purpose).read(*tree);
}

llvm::Expected<Plan> loadPlan(llvm::StringRef path, PlanPurpose purpose) {
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return text.takeError();
  return parsePlan(*text, path, purpose);
}

} // namespace autohet

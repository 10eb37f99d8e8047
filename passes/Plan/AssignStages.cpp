//===- AssignStages.cpp - the model cut into the stages of a plan -----------===//
//
// Each replica gets a copy of the model function of its microbatch size, cut at
// unit boundaries into one function a stage. Only here do values start to cross
// between places, and only by dist.send and dist.recv.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Plan/Passes.h"
#include "autohet/Plan/Plan.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace autohet {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "autohet/Passes/Plan/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

StringRef unitOf(Operation *op) {
  auto unit = op->getAttrOfType<StringAttr>(het::kUnitAttr);
  return unit ? unit.getValue() : StringRef(het::kInputsUnit);
}

/// Parameters are held wherever they are used; ops of the unit `inputs` are
/// repeated wherever they are read.
bool isAnywhere(Operation *op) {
  return isa<het::ParameterOp, het::ConstantOp>(op) ||
         unitOf(op) == het::kInputsUnit;
}

/// A model function, and what its ops are of. Asked of each op for each
/// replica, so names are looked up once.
struct Model {
  func::FuncOp func;
  UnitTable table; ///< only ids: costs are not asked for here
  llvm::DenseMap<Operation *, unsigned> units; ///< not of what is anywhere
};

/// Where replicas cut a model: the stage of each unit, and what crosses.
class Cut {
public:
  Cut(const Model &model, std::vector<unsigned> stageOfUnit)
      : model(model), stageOfUnit(std::move(stageOfUnit)) {}

  std::optional<unsigned> stageOf(Operation *op) const {
    auto unit = model.units.find(op);
    if (unit == model.units.end())
      return std::nullopt;
    return stageOfUnit[unit->second];
  }
  /// The stages that read `value` from the one that it is of.
  ArrayRef<unsigned> readersOf(Value value) const {
    auto readers = edges.find(value);
    return readers == edges.end() ? ArrayRef<unsigned>()
                                  : readers->second.getArrayRef();
  }
  int64_t channelOf(Value value, unsigned reader) const {
    return channels.lookup({value, reader});
  }

  /// A channel for each (value, reading stage) across stages, in program order.
  LogicalResult findEdges() {
    func::FuncOp func = model.func;
    for (Operation &op : func.getBody().front()) {
      std::optional<unsigned> from = stageOf(&op);
      if (!from)
        continue;
      for (Value result : op.getResults()) {
        SmallVector<Operation *> users(result.getUsers()); // the last one first
        for (Operation *user : llvm::reverse(users)) {
          if (isa<func::ReturnOp>(user))
            continue;
          std::optional<unsigned> to = stageOf(user);
          if (!to)
            return user->emitOpError(
                       "is repeated wherever it is read, but reads a value "
                       "of unit '")
                   << unitOf(&op) << "'";
          if (*to < *from && !het::isBackward(user))
            return op.emitOpError("is in stage ")
                   << *from << ", but stage " << *to
                   << " reads it in the forward part";
          if (*to != *from)
            edges[result].insert(*to);
        }
      }
    }
    int64_t next = 0;
    for (auto &[value, readers] : edges)
      for (unsigned reader : readers)
        channels[{value, reader}] = next++;
    return success();
  }

  const Model &model;

private:
  std::vector<unsigned> stageOfUnit;
  llvm::MapVector<Value, llvm::SetVector<unsigned>> edges;
  llvm::DenseMap<std::pair<Value, unsigned>, int64_t> channels;
};

/// Makes the function of one stage of one replica. Only reads the model.
class StageCutter {
public:
  StageCutter(const Cut &cut, dist::StageAttr attribute)
      : cut(cut), model(cut.model.func), attribute(attribute),
        stage(attribute.getStage()), builder(model.getContext()) {}

  /// The function, in no module yet.
  func::FuncOp run() {
    auto func = func::FuncOp::create(
        model.getLoc(),
        llvm::formatv("r{0}.s{1}", attribute.getReplica(), stage).str(),
        model.getFunctionType());
    if (ArrayAttr attributes = model.getAllArgAttrs())
      func.setAllArgAttrs(attributes);
    func->setAttr(dist::kStageAttr, attribute);
    Block *body = func.addEntryBlock();
    mapping.map(model.getArguments(), body->getArguments());
    builder.setInsertionPointToStart(body);

    for (Operation &op : model.getBody().front().without_terminator()) {
      if (cut.stageOf(&op) != stage)
        continue;
      for (Value operand : op.getOperands())
        bring(operand, &op);
      Operation *copy = builder.clone(op, mapping);
      for (Value result : op.getResults())
        for (unsigned reader : cut.readersOf(result)) {
          auto send = dist::SendOp::create(
              builder, op.getLoc(), mapping.lookup(result), reader,
              cut.channelOf(result, reader), false);
          copyPlace(copy, send);
        }
    }
    finish(func);
    return func;
  }

private:
  /// Makes `value` available, before `reader`.
  void bring(Value value, Operation *reader) {
    if (mapping.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    std::optional<unsigned> home = cut.stageOf(op);
    if (!home) {
      for (Value operand : op->getOperands())
        bring(operand, op);
      builder.clone(*op, mapping);
      return;
    }
    auto recv = dist::RecvOp::create(builder, op->getLoc(), value.getType(),
                                     *home, cut.channelOf(value, stage), false);
    copyPlace(reader, recv);
    mapping.map(value, recv.getResult());
  }

  static void copyPlace(Operation *from, Operation *to) {
    for (StringRef name : {het::kUnitAttr, het::kPhaseAttr})
      if (Attribute attribute = from->getAttr(name))
        to->setAttr(name, attribute);
  }

  /// The results that this stage computes, and only the arguments that it
  /// reads.
  void finish(func::FuncOp func) {
    SmallVector<Value> results;
    SmallVector<DictionaryAttr> attributes;
    auto returns = model.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(returns->getOperands())) {
      Operation *op = value.getDefiningOp();
      std::optional<unsigned> home = op ? cut.stageOf(op) : std::nullopt;
      if (home.value_or(attribute.getStages() - 1) != stage)
        continue;
      if (op && !home)
        bring(value, returns);
      results.push_back(mapping.lookup(value));
      attributes.push_back(model.getResultAttrDict(i));
    }
    func::ReturnOp::create(builder, model.getLoc(), results);
    func.setFunctionType(builder.getFunctionType(
        func.getFunctionType().getInputs(),
        llvm::map_to_vector(results, [](Value v) { return v.getType(); })));
    func.setAllResultAttrs(attributes);
    llvm::BitVector unread(func.getNumArguments());
    for (BlockArgument argument : func.getArguments())
      if (argument.use_empty())
        unread.set(argument.getArgNumber());
    (void)func.eraseArguments(unread);
  }

  const Cut &cut;
  func::FuncOp model;
  dist::StageAttr attribute;
  unsigned stage;
  OpBuilder builder;
  IRMapping mapping;
};

struct AssignStages : autohet::impl::AssignStagesBase<AssignStages> {
  using AssignStagesBase::AssignStagesBase;

  void runOnOperation() override {
    if (failed(assign()))
      signalPassFailure();
  }

  LogicalResult error(const llvm::Twine &message) {
    return getOperation().emitError(message);
  }

  /// The plan of the option, else of the module.
  FailureOr<Plan> readPlan() {
    if (!stages.empty()) {
      llvm::Expected<std::vector<Replica>> replicas =
          parseStageAssignment(stages);
      if (!replicas)
        return error("stages: " + llvm::toString(replicas.takeError()));
      Plan plan;
      plan.replicas = *replicas;
      plan.global_batch = globalBatch;
      if (plan.global_batch == 0)
        for (const Replica &replica : plan.replicas)
          plan.global_batch += replica.microbatch_size * replica.microbatches;
      return plan;
    }
    auto text = getOperation()->getAttrOfType<StringAttr>(dist::kPlanAttr);
    if (!text)
      return error(
          "has no plan: give the option 'stages' or the attribute 'dist.plan'");
    llvm::Expected<Plan> plan = parsePlan(text.getValue(), "dist.plan");
    if (!plan)
      return error(llvm::toString(plan.takeError()));
    return *plan;
  }

  /// With the units that het-number-units wrote down.
  static FailureOr<Model> readModel(func::FuncOp func) {
    if (failed(het::verifyStraightLine(func)))
      return failure();
    auto names = func->getAttrOfType<ArrayAttr>(het::kUnitsAttr);
    if (!names)
      return func.emitError("has no ")
             << het::kUnitsAttr << ": het-number-units writes it";
    Model model;
    model.func = func;
    llvm::StringMap<unsigned> numbers;
    for (auto name : names.getAsRange<StringAttr>()) {
      numbers.try_emplace(name.getValue(), numbers.size());
      model.table.units.emplace_back().id = name.str();
    }
    for (Operation &op : func.getBody().front().without_terminator()) {
      if (isAnywhere(&op))
        continue;
      auto number = numbers.find(unitOf(&op));
      if (number == numbers.end())
        return op.emitOpError("is of unit '")
               << unitOf(&op) << "', which " << het::kUnitsAttr
               << " does not list";
      model.units[&op] = number->second;
    }
    return model;
  }

  /// Ranks by device name: a node's are consecutive, in the order of its
  /// devices. Nodes come in the cluster's order, so that they keep their
  /// numbers from plan to plan; where no cluster is known, in the plan's.
  llvm::StringMap<int64_t> rankDevices(const Plan &plan) {
    llvm::MapVector<StringRef, SmallVector<std::pair<unsigned, StringRef>>>
        nodes;
    if (auto names = getOperation()->getAttrOfType<ArrayAttr>(dist::kNodesAttr))
      for (auto name : names.getAsRange<StringAttr>())
        nodes[name];
    for (const Replica &replica : plan.replicas)
      for (const Stage &stage : replica.stages)
        for (StringRef device : stage.devices) {
          auto [node, index] = device.rsplit('/');
          unsigned number = 0;
          index.getAsInteger(10, number);
          nodes[node].push_back({number, device});
        }
    llvm::StringMap<int64_t> ranks;
    for (auto &[node, devices] : nodes) {
      llvm::sort(devices);
      for (auto &[number, device] : devices)
        ranks.try_emplace(device, ranks.size());
    }
    return ranks;
  }

  /// verifyPlan() says this and more, but asks for a cluster.
  LogicalResult checkDevices(const Stage &stage, size_t r, size_t s) {
    std::string place = llvm::formatv("replica {0}, stage {1}: ", r, s);
    for (StringRef device : stage.devices)
      if (!usedDevices.insert(device).second)
        return error(place + "device " + device + " is used twice");
    if (stage.tensor_parallel.empty())
      return success();
    if (stage.tensor_parallel.size() != stage.devices.size())
      return error(place + "has " + llvm::Twine(stage.tensor_parallel.size()) +
                   " shares for " + llvm::Twine(stage.devices.size()) +
                   " devices");
    for (int64_t share : stage.tensor_parallel)
      if (share < 1)
        return error(place + "a share is " + llvm::Twine(share) +
                     ", wanted 1 or more");
    return success();
  }

  LogicalResult checkBatch(const Plan &plan) {
    int64_t samples = 0;
    for (const Replica &replica : plan.replicas)
      samples += replica.microbatch_size * replica.microbatches;
    if (samples == plan.global_batch)
      return success();
    return error("replicas do " + llvm::Twine(samples) +
                 " samples a step, the plan says " +
                 llvm::Twine(plan.global_batch));
  }

  /// The stage of each of the model's units: exactly one.
  FailureOr<std::vector<unsigned>> placeUnits(const Replica &replica, size_t r,
                                              const UnitTable &table) {
    constexpr unsigned nowhere = -1;
    std::vector<unsigned> stageOfUnit(table.units.size(), nowhere);
    std::string who = llvm::formatv("replica {0}", r);
    for (auto [s, stage] : llvm::enumerate(replica.stages))
      for (StringRef spec : stage.units) {
        llvm::Expected<std::vector<unsigned>> units = expandUnits(spec, table);
        if (!units)
          return error(who + ", stage " + llvm::Twine(s) + ": " +
                       llvm::toString(units.takeError()));
        for (unsigned unit : *units) {
          if (stageOfUnit[unit] != nowhere)
            return error(who + " has unit " + table.units[unit].id +
                         " in stage " + llvm::Twine(stageOfUnit[unit]) +
                         " and in stage " + llvm::Twine(s));
          stageOfUnit[unit] = s;
        }
      }
    for (auto [unit, stage] : llvm::zip_equal(table.units, stageOfUnit))
      if (stage == nowhere)
        return error(who + " has unit " + unit.id + " in no stage");
    return stageOfUnit;
  }

  /// By batch size.
  FailureOr<std::map<int64_t, Model>> readModels() {
    std::map<int64_t, Model> models;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      auto batch = func->getAttrOfType<IntegerAttr>(het::kBatchSizeAttr);
      if (!batch)
        continue;
      FailureOr<Model> model = readModel(func);
      if (failed(model))
        return failure();
      auto [other, isNew] =
          models.try_emplace(batch.getInt(), std::move(*model));
      if (!isNew)
        return func.emitOpError("is of batch size ")
               << batch.getInt() << " like '" << other->second.func.getSymName()
               << "'";
    }
    return models;
  }

  LogicalResult assign() {
    FailureOr<Plan> plan = readPlan();
    if (failed(plan) || failed(checkBatch(*plan)))
      return failure();
    FailureOr<std::map<int64_t, Model>> models = readModels();
    if (failed(models))
      return failure();
    llvm::StringMap<int64_t> ranks = rankDevices(*plan);

    // Replicas that are cut in the same places share what is known of it.
    std::map<std::pair<int64_t, std::vector<unsigned>>, Cut> cuts;
    struct StageJob {
      const Cut *cut;
      dist::StageAttr attribute;
      func::FuncOp made;
    };
    std::vector<StageJob> jobs;
    int64_t firstSample = 0;
    for (auto [r, replica] : llvm::enumerate(plan->replicas)) {
      auto model = models->find(replica.microbatch_size);
      if (model == models->end())
        return error("has no model for microbatches of " +
                     llvm::Twine(replica.microbatch_size) +
                     " samples, which replica " + llvm::Twine(r) + " asks for");
      FailureOr<std::vector<unsigned>> stageOfUnit =
          placeUnits(replica, r, model->second.table);
      if (failed(stageOfUnit))
        return failure();
      for (auto [s, stage] : llvm::enumerate(replica.stages))
        if (failed(checkDevices(stage, r, s)))
          return failure();
      auto [cut, isNew] = cuts.try_emplace(
          {replica.microbatch_size, *stageOfUnit}, model->second, *stageOfUnit);
      if (isNew && failed(cut->second.findEdges()))
        return failure();
      for (auto [s, stage] : llvm::enumerate(replica.stages)) {
        dist::StageAttr attribute = stageAttr(replica, stage, r, s, ranks,
                                              firstSample, plan->global_batch);
        if (!attribute)
          return failure();
        jobs.push_back({&cut->second, attribute, nullptr});
      }
      firstSample += replica.microbatch_size * replica.microbatches;
    }
    parallelForEach(&getContext(), jobs, [](StageJob &job) {
      job.made = StageCutter(*job.cut, job.attribute).run();
    });
    for (const StageJob &job : jobs)
      OpBuilder(job.cut->model.func).insert(job.made);
    for (auto &[batch, model] : *models)
      model.func.erase();
    return success();
  }

  /// Null after a diagnostic where the attribute's own constraints are broken.
  dist::StageAttr stageAttr(const Replica &replica, const Stage &stage,
                            int64_t r, int64_t s,
                            const llvm::StringMap<int64_t> &ranks,
                            int64_t firstSample, int64_t batch) {
    Builder builder(&getContext());
    SmallVector<int64_t> stageRanks,
        weights(stage.tensor_parallel.begin(), stage.tensor_parallel.end());
    SmallVector<StringRef> names;
    for (StringRef device : stage.devices) {
      stageRanks.push_back(ranks.lookup(device));
      names.push_back(device);
    }
    if (weights.empty())
      weights.assign(names.size(), 1);
    auto diagnose = [&] {
      return getOperation().emitError()
             << "replica " << r << ", stage " << s << ": ";
    };
    return dist::StageAttr::getChecked(
        llvm::function_ref<InFlightDiagnostic()>(diagnose), &getContext(), r, s,
        int64_t(replica.stages.size()), int64_t(ranks.size()),
        builder.getDenseI64ArrayAttr(stageRanks),
        builder.getDenseI64ArrayAttr(weights), builder.getStrArrayAttr(names),
        replica.microbatches, replica.microbatch_size, firstSample, batch);
  }

  llvm::StringSet<> usedDevices;
};

} // namespace

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

/// Cuts one model function into the stages of one replica.
class ReplicaCutter {
public:
  ReplicaCutter(func::FuncOp model, ArrayRef<dist::StageAttr> stages,
                llvm::StringMap<unsigned> stageOfUnit)
      : model(model), stages(stages), stageOfUnit(std::move(stageOfUnit)) {}

  LogicalResult run() {
    if (failed(findEdges()))
      return failure();
    for (unsigned stage = 0; stage < stages.size(); ++stage)
      cut(stage);
    return success();
  }

private:
  std::optional<unsigned> stageOf(Operation *op) {
    if (isAnywhere(op))
      return std::nullopt;
    return stageOfUnit.lookup(unitOf(op));
  }

  /// A channel for each (value, reading stage) across stages, in program order.
  LogicalResult findEdges() {
    for (Operation &op : model.getBody().front()) {
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

  void cut(unsigned stage) {
    OpBuilder builder(model);
    auto func = func::FuncOp::create(
        builder, model.getLoc(),
        llvm::formatv("r{0}.s{1}", stages[stage].getReplica(), stage).str(),
        model.getFunctionType());
    if (ArrayAttr attributes = model.getAllArgAttrs())
      func.setAllArgAttrs(attributes);
    func->setAttr(dist::kStageAttr, stages[stage]);
    mapping.clear();
    Block *body = func.addEntryBlock();
    mapping.map(model.getArguments(), body->getArguments());
    builder.setInsertionPointToStart(body);

    Block &source = model.getBody().front();
    for (Operation &op : source.without_terminator()) {
      if (stageOf(&op) != stage)
        continue;
      for (Value operand : op.getOperands())
        bring(builder, operand, &op, stage);
      Operation *copy = builder.clone(op, mapping);
      for (Value result : op.getResults())
        if (auto readers = edges.find(result); readers != edges.end())
          for (unsigned reader : readers->second) {
            auto send = dist::SendOp::create(
                builder, op.getLoc(), mapping.lookup(result), reader,
                channels.lookup({result, reader}), false);
            copyPlace(copy, send);
          }
    }
    finish(func, builder, stage);
  }

  /// Makes `value` available in the stage that is being cut, before `reader`.
  void bring(OpBuilder &builder, Value value, Operation *reader,
             unsigned stage) {
    if (mapping.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    if (isAnywhere(op)) {
      for (Value operand : op->getOperands())
        bring(builder, operand, op, stage);
      builder.clone(*op, mapping);
      return;
    }
    auto recv = dist::RecvOp::create(builder, op->getLoc(), value.getType(),
                                     *stageOf(op),
                                     channels.lookup({value, stage}), false);
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
  void finish(func::FuncOp func, OpBuilder &builder, unsigned stage) {
    SmallVector<Value> results;
    SmallVector<DictionaryAttr> attributes;
    auto returns = model.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(returns->getOperands())) {
      Operation *op = value.getDefiningOp();
      std::optional<unsigned> home = op ? stageOf(op) : std::nullopt;
      if (home.value_or(stages.size() - 1) != stage)
        continue;
      if (op && !home)
        bring(builder, value, returns, stage);
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

  func::FuncOp model;
  ArrayRef<dist::StageAttr> stages;
  llvm::StringMap<unsigned> stageOfUnit;
  llvm::MapVector<Value, llvm::SetVector<unsigned>> edges;
  llvm::DenseMap<std::pair<Value, unsigned>, int64_t> channels;
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

  /// The units that het-number-units wrote down; costs are not asked for here.
  static FailureOr<UnitTable> unitsOf(func::FuncOp model) {
    auto names = model->getAttrOfType<ArrayAttr>(het::kUnitsAttr);
    if (!names)
      return model.emitError("has no ")
             << het::kUnitsAttr << ": het-number-units writes it";
    UnitTable table;
    for (auto name : names.getAsRange<StringAttr>())
      table.units.emplace_back().id = name.str();
    for (Operation &op : model.getBody().front().without_terminator())
      if (!isAnywhere(&op) && !table.find(unitOf(&op)))
        return op.emitOpError("is of unit '")
               << unitOf(&op) << "', which " << het::kUnitsAttr
               << " does not list";
    return table;
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

  /// Each of the model's units in exactly one stage.
  FailureOr<llvm::StringMap<unsigned>>
  placeUnits(const Replica &replica, size_t r, const UnitTable &table) {
    llvm::StringMap<unsigned> stageOfUnit;
    std::string who = llvm::formatv("replica {0}", r);
    for (auto [s, stage] : llvm::enumerate(replica.stages))
      for (StringRef spec : stage.units) {
        llvm::Expected<std::vector<unsigned>> units = expandUnits(spec, table);
        if (!units)
          return error(who + ", stage " + llvm::Twine(s) + ": " +
                       llvm::toString(units.takeError()));
        for (unsigned unit : *units)
          if (auto [place, isNew] =
                  stageOfUnit.try_emplace(table.units[unit].id, s);
              !isNew)
            return error(who + " has unit " + place->first() + " in stage " +
                         llvm::Twine(place->second) + " and in stage " +
                         llvm::Twine(s));
      }
    for (const Unit &unit : table.units)
      if (!stageOfUnit.count(unit.id))
        return error(who + " has unit " + unit.id + " in no stage");
    return stageOfUnit;
  }

  LogicalResult assign() {
    FailureOr<Plan> plan = readPlan();
    if (failed(plan) || failed(checkBatch(*plan)))
      return failure();
    std::map<int64_t, func::FuncOp> models; // by batch size
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (auto batch = func->getAttrOfType<IntegerAttr>(het::kBatchSizeAttr)) {
        if (failed(het::verifyStraightLine(func)))
          return failure();
        auto [other, isNew] = models.try_emplace(batch.getInt(), func);
        if (!isNew)
          return func.emitOpError("is of batch size ")
                 << batch.getInt() << " like '" << other->second.getSymName()
                 << "'";
      }
    llvm::StringMap<int64_t> ranks = rankDevices(*plan);

    int64_t firstSample = 0;
    for (auto [r, replica] : llvm::enumerate(plan->replicas)) {
      auto model = models.find(replica.microbatch_size);
      if (model == models.end())
        return error("has no model for microbatches of " +
                     llvm::Twine(replica.microbatch_size) +
                     " samples, which replica " + llvm::Twine(r) + " asks for");
      FailureOr<UnitTable> table = unitsOf(model->second);
      if (failed(table))
        return failure();
      FailureOr<llvm::StringMap<unsigned>> stageOfUnit =
          placeUnits(replica, r, *table);
      if (failed(stageOfUnit))
        return failure();
      SmallVector<dist::StageAttr> attributes;
      for (auto [s, stage] : llvm::enumerate(replica.stages))
        if (failed(checkDevices(stage, r, s)))
          return failure();
      for (auto [s, stage] : llvm::enumerate(replica.stages)) {
        dist::StageAttr attribute = stageAttr(replica, stage, r, s, ranks,
                                              firstSample, plan->global_batch);
        if (!attribute)
          return failure();
        attributes.push_back(attribute);
      }
      if (failed(ReplicaCutter(model->second, attributes, *stageOfUnit).run()))
        return failure();
      firstSample += replica.microbatch_size * replica.microbatches;
    }
    for (auto &[batch, model] : models)
      model.erase();
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

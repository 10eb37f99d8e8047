//===- CollectUnits.cpp - the model's units as planning sees them -----------===//
//
// From the IR to the table of numbers that planner and plan verifier work with.
// Everything is summed over the ops of a unit through their own interfaces, so
// a new op is priced without a change here; and over the kernels that they will
// be, so that what is planned with is what will run.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Units.h"
#include "autohet/Passes/Schedule/KernelGroups.h"
#include "autohet/Support/Hash.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

class UnitCollector {
public:
  explicit UnitCollector(func::FuncOp function) : function(function) {
    if (auto batch = function->getAttrOfType<IntegerAttr>(kBatchSizeAttr))
      samples = double(batch.getInt());
  }

  UnitTable run() {
    table.structure_hash = hashStructure(function);
    if (auto names = function->getAttrOfType<ArrayAttr>(kUnitsAttr))
      for (auto name : names.getAsRange<StringAttr>()) {
        numbers[name.getValue()] = table.units.size();
        table.units.emplace_back().id = name.str();
      }
    for (Operation &op : function.front().without_terminator())
      if (std::optional<unsigned> unit = unitOf(&op)) {
        if (auto parameter = dyn_cast<ParameterOp>(op))
          addParameter(*unit, parameter);
        else
          addWorkspace(table.units[*unit], &op);
        if (!isBackward(&op) && !isa<ParameterOp>(op))
          for (Value result : op.getResults())
            addValue(*unit, result);
      }
    addWork();
    table.is_forward_only = llvm::none_of(
        function.front(), [](Operation &op) { return isBackward(&op); });
    for (unsigned unit = 0; unit < table.units.size(); ++unit)
      estimateDivision(unit);
    return std::move(table);
  }

private:
  /// Nothing for what belongs nowhere.
  std::optional<unsigned> unitOf(Operation *op) const {
    auto name = op->getAttrOfType<StringAttr>(kUnitAttr);
    auto found = name ? numbers.find(name.getValue()) : numbers.end();
    if (found == numbers.end())
      return std::nullopt;
    return found->second;
  }

  void addParameter(unsigned unit, ParameterOp op) {
    auto [known, isNew] =
        parameters.try_emplace(op.getName(), table.parameters.size());
    if (isNew) {
      auto whole = RankedTensorType::get(op.getWholeShape(),
                                         op.getType().getElementType());
      table.parameters.push_back(
          {op.getName().str(), storedBytes(whole), op.isTrained()});
      if (whole.getRank() >= 2)
        matrixBytes[known->second] = storedBytes(whole);
    }
    std::vector<unsigned> &mine = table.units[unit].parameters;
    if (!llvm::is_contained(mine, known->second))
      mine.push_back(known->second);
  }

  /// Of the kernels and products that the Schedule phase would make of the
  /// function.
  void addWork() {
    OwningOpRef<func::FuncOp> copy = function.clone();
    normalizeMatmuls(*copy);
    IRRewriter rewriter(copy->getContext());
    DominanceInfo dominance(*copy);
    eliminateCommonSubExpressions(rewriter, dominance, *copy);
    Block &block = copy->front();
    findScalingValues(block);
    for (const KernelGroup &group : groupKernels(block))
      if (PassWork *pass = passOf(group.last()))
        addKernel(*pass, group.ops);
    for (Operation &op : block.without_terminator())
      if (PassWork *pass = passOf(&op)) {
        if (auto product = dyn_cast<MatmulOp>(op);
            product && isLibraryProduct(product))
          addProduct(*pass, product);
        else if (auto gradient = dyn_cast<GradientOp>(op))
          addSum(*pass, gradient);
      }
  }

  PassWork *passOf(Operation *op) {
    std::optional<unsigned> unit = unitOf(op);
    if (!unit)
      return nullptr;
    return isBackward(op) ? &table.units[*unit].backward
                          : &table.units[*unit].forward;
  }

  /// Those that grow with the number of samples: what is made of inputs, but
  /// for gradients of parameters.
  void findScalingValues(Block &block) {
    scaling.insert(block.args_begin(), block.args_end());
    for (Operation &op : block)
      if (llvm::any_of(op.getOperands(),
                       [&](Value v) { return scaling.contains(v); }))
        scaling.insert(op.result_begin(), op.result_end());
    // Readers first: what is only made into a gradient of a parameter is one.
    for (Operation &op : llvm::reverse(block))
      for (Value result : op.getResults())
        if (!result.use_empty() &&
            llvm::all_of(result.getUsers(), [&](Operation *user) {
              return isa<GradientOp>(user) ||
                     (isa<ReshapeOp, TransposeOp, ElementwiseOpInterface>(
                          user) &&
                      gradients.contains(user->getResult(0)));
            })) {
          gradients.insert(result);
          scaling.erase(result);
        }
  }

  bool scales(Operation *op) const {
    return llvm::any_of(op->getOperands(),
                        [&](Value v) { return scaling.contains(v); });
  }

  void addKernel(PassWork &pass, ArrayRef<Operation *> ops) {
    Work work = workOf(ops);
    KernelPorts ports = portsOf(ops);
    pass.once.commands += work.commands;
    work.commands = 0;
    if (llvm::none_of(ops, [&](Operation *op) { return scales(op); })) {
      pass.once += work;
      return;
    }
    double fixed = 0, inputs = 0;
    for (Value value : ports.outputs)
      fixed += scaling.contains(value) ? 0 : storedBytes(value);
    for (Value value : ports.inputs)
      inputs += storedBytes(value);
    // Of a table that is only looked up, little is read.
    OpCost cost = cast<CostedOpInterface>(ops.front()).getCost();
    if (ops.size() > 1 || cost.bytesRead >= inputs)
      for (Value value : ports.inputs)
        fixed += scaling.contains(value) ? 0 : storedBytes(value);
    work.traffic_bytes -= fixed;
    pass.once.traffic_bytes += fixed;
    pass.per_sample += work * (1 / samples);
  }

  /// As the simulator prices it: weights and their gradients go through memory.
  void addProduct(PassWork &pass, MatmulOp product) {
    pass.once.commands += 1;
    double flops = product.getCost().matmulFlops;
    if (scales(product))
      pass.per_sample.flops += flops / samples;
    else
      pass.once.flops += flops;
    for (Value operand : product->getOperands())
      if (rootOf(operand).getDefiningOp<ParameterOp>())
        pass.once.traffic_bytes += storedBytes(operand);
    if (isAddedUp(product))
      pass.once.traffic_bytes += 2 * storedBytes(product);
  }

  /// Adding a gradient to those of earlier microbatches.
  void addSum(PassWork &pass, GradientOp gradient) {
    auto product = gradient.getValue().getDefiningOp<MatmulOp>();
    if (product && isAddedUp(product))
      return;
    double bytes = storedBytes(gradient.getValue());
    auto type = cast<RankedTensorType>(gradient.getValue().getType());
    pass.once.commands += 1;
    pass.once.elementwise_flops += 2 * double(type.getNumElements());
    pass.once.traffic_bytes += 3 * bytes;
  }

  void addWorkspace(Unit &unit, Operation *op) {
    double live = 0;
    for (Value v : op->getResults())
      if (!isParameterGradient(v))
        live += storedBytes(v) / samples;
      else if (!isa<MatmulOp>(op))
        unit.gradient_workspace_bytes =
            std::max(unit.gradient_workspace_bytes, storedBytes(v));
    unit.workspace_bytes = std::max(unit.workspace_bytes, live);
  }

  /// Products add them up where gradients are kept: no temporary. Others are
  /// made whole first.
  static bool isParameterGradient(Value v) {
    return !v.use_empty() && llvm::all_of(v.getUsers(), [](Operation *user) {
      return isa<GradientOp>(user);
    });
  }

  /// Who needs a forward value later: units behind this one, and its own or
  /// their backward ops, the first of which accounts for the bytes kept.
  void addValue(unsigned unit, Value value) {
    double bytes = storedBytes(value) / samples;
    std::optional<unsigned> keeper;
    llvm::SmallVector<unsigned> readers;
    for (Operation *user : value.getUsers()) {
      std::optional<unsigned> to = unitOf(user);
      if (!to)
        continue;
      if (*to != unit && !llvm::is_contained(readers, *to))
        readers.push_back(*to);
      if (isBackward(user))
        keeper = keeper ? std::min(*keeper, *to) : *to;
    }
    if (keeper)
      table.units[*keeper].activation_bytes += bytes;
    llvm::sort(readers);
    for (unsigned reader : readers) {
      std::vector<UnitEdge> &edges = table.units[unit].successors;
      auto edge = llvm::find_if(
          edges, [&](const UnitEdge &e) { return e.to == reader; });
      if (edge == edges.end())
        edges.push_back({reader, bytes});
      else
        edge->bytes_per_sample += bytes;
    }
  }

  /// Under tensor parallelism matrices are divided, vectors beside the residual
  /// stream are not, and each unit sums its stream once a pass: block and
  /// embedding at their end, the head (backward) at its beginning.
  void estimateDivision(unsigned number) {
    Unit &unit = table.units[number];
    double matrices = 0, all = 0;
    for (unsigned parameter : unit.parameters) {
      all += table.parameters[parameter].bytes;
      matrices += matrixBytes.lookup(parameter);
    }
    unit.divisible = all > 0 ? matrices / all : 0;
    for (const UnitEdge &edge : unit.successors)
      unit.all_reduce_bytes =
          std::max(unit.all_reduce_bytes, edge.bytes_per_sample);
    if (!unit.successors.empty() || number == 0)
      return;
    for (const UnitEdge &edge : table.units[number - 1].successors)
      if (edge.to == number)
        unit.all_reduce_bytes = edge.bytes_per_sample;
  }

  func::FuncOp function;
  double samples = 1;
  UnitTable table;
  llvm::StringMap<unsigned> numbers, parameters;
  llvm::DenseMap<unsigned, double> matrixBytes;
  llvm::DenseSet<Value> scaling, gradients; ///< in the copy that is priced
};

} // namespace

UnitTable autohet::collectUnits(func::FuncOp function) {
  return UnitCollector(function).run();
}

/// What is left of the model at every batch size: in which unit what arithmetic
/// is done, with which weights. Views, constants and inputs are left out, for a
/// batch of 1 folds some of them away.
uint64_t autohet::hashStructure(func::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (Operation &op : function.front().without_terminator()) {
    auto unit = op.getAttrOfType<StringAttr>(kUnitAttr);
    if (isBackward(&op) || !unit || unit.getValue() == kInputsUnit)
      continue;
    if (auto parameter = dyn_cast<ParameterOp>(op)) {
      os << unit.getValue() << " \"" << parameter.getName() << "\" "
         << parameter.getType().getElementType() << ' ';
      llvm::interleave(parameter.getWholeShape(), os, "x");
      os << (parameter.isTrained() ? "\n" : " untrained\n");
      continue;
    }
    auto costed = dyn_cast<CostedOpInterface>(op);
    if (costed &&
        costed.getCost().matmulFlops + costed.getCost().otherFlops > 0)
      os << unit.getValue() << ' ' << op.getName() << '\n';
  }
  return hashBytes(text);
}

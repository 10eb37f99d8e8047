//===- CollectUnits.cpp - the model's units as planning sees them -----------===//
//
// From the IR to the table of numbers that planner and plan verifier work with.
// Everything is summed over the ops of a unit through their own interfaces, so
// a new op is priced without a change here; what they compute is UnitWork's.
//
//===----------------------------------------------------------------------===//

#include "UnitWork.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Units.h"
#include "autohet/Support/Hash.h"

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
    auto passOfOp = [&](Operation *op) { return passOf(op); };
    work.emplace(function, samples, passOfOp);
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
    table.is_forward_only = llvm::none_of(
        function.front(), [](Operation &op) { return isBackward(&op); });
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
      table.parameters.push_back({op.getName().str(), storedBytes(whole),
                                  op.isTrained(), work->isDivided(op),
                                  work->isDividedByRows(op)});
    }
    // Of all that a unit divides, the coarsest.
    if (int64_t extent = work->extentOf(op)) {
      int64_t &divided = table.units[unit].divided_extent;
      divided = divided ? std::min(divided, extent) : extent;
    }
    std::vector<unsigned> &mine = table.units[unit].parameters;
    if (!llvm::is_contained(mine, known->second))
      mine.push_back(known->second);
  }

  PassWork *passOf(Operation *op) {
    std::optional<unsigned> unit = unitOf(op);
    if (!unit)
      return nullptr;
    return isBackward(op) ? &table.units[*unit].backward
                          : &table.units[*unit].forward;
  }

  void addWorkspace(Unit &unit, Operation *op) {
    DividedBytes live;
    for (Value v : op->getResults())
      if (!isParameterGradient(v))
        live += bytesOf(v, samples);
      else if (!isa<MatmulOp>(op))
        keepLarger(unit.gradient_workspace, bytesOf(v, 1));
    keepLarger(unit.workspace, live);
  }

  DividedBytes bytesOf(Value value, double count) const {
    double bytes = storedBytes(value) / count;
    return {bytes, work->isDivided(value) ? 0 : bytes};
  }

  /// No less than either, whatever a rank's share.
  static void keepLarger(DividedBytes &largest, const DividedBytes &other) {
    largest = {std::max(largest.all, other.all),
               std::max(largest.whole, other.whole)};
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
      table.units[*keeper].activations += bytesOf(value, samples);
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

  func::FuncOp function;
  double samples = 1;
  UnitTable table;
  std::optional<UnitWork> work;
  llvm::StringMap<unsigned> numbers, parameters;
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

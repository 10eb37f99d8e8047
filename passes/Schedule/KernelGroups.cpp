//===- KernelGroups.cpp - which ops become one kernel -----------------------===//

#include "autohet/Passes/Schedule/KernelGroups.h"

using namespace mlir;
using namespace autohet;

double autohet::storedBytes(RankedTensorType type) {
  // i1 is stored as a byte.
  return double(type.getNumElements()) *
         double((type.getElementType().getIntOrFloatBitWidth() + 7) / 8);
}

bool autohet::isLibraryProduct(het::MatmulOp product) {
  return product.getType().getElementType().isF32();
}

bool autohet::isAddedUp(het::MatmulOp product) {
  return product->hasOneUse() && isa<het::GradientOp>(*product->user_begin());
}

namespace {

/// One more pass over memory is nothing beside so many ops, and LLVM's time
/// grows with the square of a function's length: 1,000 took 9 s.
constexpr size_t kMostOpsOfKernel = 64;

/// Ops that are never part of a kernel.
bool staysOutside(Operation *op) {
  if (auto product = dyn_cast<het::MatmulOp>(op))
    return isLibraryProduct(product);
  return op->getDialect()->getNamespace() != "het" ||
         isa<het::ReshapeOp, het::ParameterOp, het::GradientOp,
             het::ConstantOp>(op);
}

StringRef phaseOf(Operation *op) {
  auto phase = op->getAttrOfType<StringAttr>(het::kPhaseAttr);
  return phase ? phase.getValue() : "forward";
}

class Grouping {
public:
  explicit Grouping(Block &block) {
    for (Operation &op : block) {
      position[&op] = position.size();
      if (!staysOutside(&op))
        place(&op);
      closeGroupsBefore(&op);
    }
  }
  std::vector<KernelGroup> groups;

private:
  /// Joins the latest group that feeds `op` and may be extended, or opens one.
  void place(Operation *op) {
    std::optional<size_t> best;
    if (isa<het::ElementwiseOpInterface>(op))
      for (Value operand : op->getOperands()) {
        auto found = groupOf.find(operand.getDefiningOp());
        if (found == groupOf.end() || found->second == best ||
            !mayJoin(found->second, op))
          continue;
        if (!best || position[groups[found->second].last()] >
                         position[groups[*best].last()])
          best = found->second;
      }
    if (!best) {
      best = groups.size();
      groups.emplace_back();
    }
    groups[*best].ops.push_back(op);
    groupOf[op] = *best;
  }

  /// Whom `op` uses without being a member may not grow any more: it would run
  /// behind `op`.
  void closeGroupsBefore(Operation *op) {
    auto own = groupOf.find(op);
    for (Value operand : op->getOperands()) {
      auto found = groupOf.find(operand.getDefiningOp());
      if (found != groupOf.end() &&
          (own == groupOf.end() || own->second != found->second))
        closed.insert(found->second);
    }
  }

  /// A kernel has one loop nest, one phase, and runs at its last op: what it
  /// gives to others must not be used before that.
  bool mayJoin(size_t number, Operation *op) const {
    const KernelGroup &group = groups[number];
    Operation *first = group.ops.front();
    if (closed.contains(number) || group.ops.size() == kMostOpsOfKernel ||
        !isa<het::ElementwiseOpInterface>(first) ||
        phaseOf(first) != phaseOf(op) ||
        first->getAttr(het::kUnitAttr) != op->getAttr(het::kUnitAttr))
      return false;
    auto shapeOf = [](Operation *o) {
      return cast<RankedTensorType>(o->getResult(0).getType()).getShape();
    };
    return shapeOf(group.last()) == shapeOf(op);
  }

  llvm::DenseMap<Operation *, size_t> groupOf;
  llvm::DenseMap<Operation *, size_t> position;
  llvm::DenseSet<size_t> closed; ///< groups
};

} // namespace

std::vector<KernelGroup> autohet::groupKernels(Block &block) {
  return std::move(Grouping(block).groups);
}

KernelPorts autohet::portsOf(ArrayRef<Operation *> ops) {
  llvm::SmallPtrSet<Operation *, 8> members(ops.begin(), ops.end());
  KernelPorts ports;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (!members.contains(operand.getDefiningOp()) &&
          !operand.getDefiningOp<het::ConstantOp>())
        ports.inputs.insert(operand);
    // All results of a row kernel are written anyway; of an elementwise one
    // only what others read.
    for (Value result : op->getResults())
      if (ops.size() == 1 || llvm::any_of(result.getUsers(), [&](Operation *u) {
            return !members.contains(u);
          }))
        ports.outputs.push_back(result);
  }
  return ports;
}

Work autohet::workOf(ArrayRef<Operation *> ops) {
  Work work;
  work.commands = 1;
  for (Operation *op : ops) {
    het::OpCost cost = cast<het::CostedOpInterface>(op).getCost();
    work.attention_flops += cost.matmulFlops;
    work.elementwise_flops += cost.otherFlops;
    work.traffic_bytes += cost.bytesRead + cost.bytesWritten;
  }
  if (ops.size() == 1)
    return work;
  // Between its ops, nothing goes through memory.
  KernelPorts ports = portsOf(ops);
  work.traffic_bytes = 0;
  for (Value value : ports.inputs)
    work.traffic_bytes += storedBytes(value);
  for (Value value : ports.outputs)
    work.traffic_bytes += storedBytes(value);
  return work;
}

//===- FormKernels.cpp - groups of ops become kernels -----------------------===//
//
// A kernel is a private function whose body says, in het, what it computes; how
// it is mapped to a machine is the Codegen phase's. Equal bodies are one
// function, so that a model of many equal blocks compiles each kernel once.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace autohet {
#define GEN_PASS_DEF_FORMKERNELS
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

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

/// Ops that one kernel will hold, in program order; the kernel runs at the
/// last.
struct Group {
  SmallVector<Operation *> ops;
  Operation *last() const { return ops.back(); }
};

class Grouping {
public:
  explicit Grouping(Block &block) {
    for (Operation &op : block) {
      position[&op] = position.size();
      if (!staysOutside(&op))
        place(&op);
    }
  }
  std::vector<std::unique_ptr<Group>> groups;

private:
  /// Joins the latest group that feeds `op` and may be extended, or opens one.
  void place(Operation *op) {
    Group *best = nullptr;
    if (isa<het::ElementwiseOpInterface>(op))
      for (Value operand : op->getOperands()) {
        Group *candidate = groupOf.lookup(operand.getDefiningOp());
        if (candidate && candidate != best && mayJoin(*candidate, op) &&
            (!best || position[candidate->last()] > position[best->last()]))
          best = candidate;
      }
    if (!best) {
      groups.push_back(std::make_unique<Group>());
      best = groups.back().get();
    }
    best->ops.push_back(op);
    groupOf[op] = best;
  }

  /// A kernel has one loop nest, one phase, and runs at its last op: what it
  /// gives to others must not be used before that.
  bool mayJoin(const Group &group, Operation *op) {
    Operation *first = group.ops.front();
    if (!isa<het::ElementwiseOpInterface>(first) ||
        phaseOf(first) != phaseOf(op) ||
        first->getAttr(het::kUnitAttr) != op->getAttr(het::kUnitAttr))
      return false;
    auto shapeOf = [](Operation *o) {
      return cast<RankedTensorType>(o->getResult(0).getType()).getShape();
    };
    if (shapeOf(group.last()) != shapeOf(op))
      return false;
    for (Operation *member : group.ops)
      for (Operation *user : member->getUsers())
        if (user != op && groupOf.lookup(user) != &group &&
            position.count(user))
          return false; // already placed outside and before `op`
    return true;
  }

  llvm::DenseMap<Operation *, Group *> groupOf;
  llvm::DenseMap<Operation *, size_t> position;
};

struct FormKernels : autohet::impl::FormKernelsBase<FormKernels> {
  void runOnOperation() override {
    if (failed(dist::verifyPrograms(getOperation())))
      return signalPassFailure();
    SmallVector<func::FuncOp> programs;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr(dist::kProgramAttr))
        programs.push_back(func);
    for (func::FuncOp program : programs)
      foldEmpty(program.getBody().front());
    for (func::FuncOp program : programs)
      for (auto &group : Grouping(program.getBody().front()).groups)
        outline(*group);
    // Constants live on in the kernels; what is read by a product, which is
    // none, a kernel of its own writes.
    for (func::FuncOp program : programs)
      for (auto constant : llvm::make_early_inc_range(
               program.getBody().front().getOps<het::ConstantOp>())) {
        if (constant->use_empty())
          constant.erase();
        else if (!isEmpty(constant))
          outline(Group{{constant}});
      }
  }

  static bool isEmpty(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getNumElements() == 0;
  }

  /// There is nothing to compute of a tensor without elements, and no memory to
  /// pass: whoever reads it has it as a constant.
  void foldEmpty(Block &block) {
    OpBuilder b(&getContext());
    b.setInsertionPointToStart(&block);
    auto empty = [&](Value value) -> Value {
      return het::ConstantOp::create(
          b, value.getLoc(),
          DenseElementsAttr::get(cast<RankedTensorType>(value.getType()),
                                 ArrayRef<Attribute>()));
    };
    for (BlockArgument argument : block.getArguments())
      if (isEmpty(argument))
        argument.replaceUsesWithIf(empty(argument), [](OpOperand &use) {
          return !isa<func::ReturnOp>(use.getOwner());
        });
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (op.getDialect()->getNamespace() != "het" ||
          isa<het::ConstantOp, het::ParameterOp>(op))
        continue;
      b.setInsertionPoint(&op);
      for (Value result : op.getResults())
        if (isEmpty(result))
          result.replaceAllUsesWith(empty(result));
      if (op.use_empty() && op.getNumResults() > 0)
        op.erase();
    }
  }

  /// `add_gelu`: the ops of the kernel, shortened where they are many.
  static std::string nameOf(const Group &group) {
    std::string name;
    for (auto [i, op] : llvm::enumerate(group.ops)) {
      if (i == 3) {
        name += "_etc";
        break;
      }
      name += (i ? "_" : "") + op->getName().stripDialect().str();
    }
    return name;
  }

  void outline(const Group &group) {
    llvm::SetVector<Operation *> members(group.ops.begin(), group.ops.end());
    llvm::SetVector<Value> inputs;
    SmallVector<Value> outputs;
    for (Operation *op : group.ops) {
      for (Value operand : op->getOperands())
        if (!members.contains(operand.getDefiningOp()) &&
            !operand.getDefiningOp<het::ConstantOp>())
          inputs.insert(operand);
      // All results of a row kernel are written anyway; of an elementwise one
      // only what others read.
      for (Value result : op->getResults())
        if (group.ops.size() == 1 ||
            llvm::any_of(result.getUsers(),
                         [&](Operation *u) { return !members.contains(u); }))
          outputs.push_back(result);
    }

    OpBuilder builder(&getContext());
    Location unknown = builder.getUnknownLoc();
    auto type = builder.getFunctionType(
        llvm::map_to_vector(inputs, [](Value v) { return v.getType(); }),
        llvm::map_to_vector(outputs, [](Value v) { return v.getType(); }));
    auto kernel = func::FuncOp::create(unknown, "kernel", type);
    kernel.setPrivate();
    Block *body = kernel.addEntryBlock();
    builder.setInsertionPointToStart(body);
    IRMapping mapping;
    mapping.map(inputs.getArrayRef(), body->getArguments());
    for (Operation *op : group.ops) {
      for (Value operand : op->getOperands())
        if (auto constant = operand.getDefiningOp<het::ConstantOp>())
          if (!mapping.contains(operand))
            builder.clone(*constant, mapping)->setLoc(unknown);
      Operation *copy = builder.clone(*op, mapping);
      // What a kernel computes does not depend on where it came from.
      copy->setLoc(unknown);
      copy->setDiscardableAttrs(ArrayRef<NamedAttribute>());
    }
    func::ReturnOp::create(builder, unknown,
                           llvm::map_to_vector(outputs, [&](Value v) {
                             return mapping.lookup(v);
                           }));

    func::FuncOp shared = shareEqual(kernel, nameOf(group));
    builder.setInsertionPointAfter(group.last());
    auto call = func::CallOp::create(builder, group.last()->getLoc(), shared,
                                     inputs.getArrayRef());
    for (StringRef name : {het::kUnitAttr, het::kPhaseAttr})
      if (Attribute attribute = group.last()->getAttr(name))
        call->setAttr(name, attribute);
    for (auto [output, result] : llvm::zip_equal(outputs, call.getResults()))
      output.replaceAllUsesWith(result);
    for (Operation *op : llvm::reverse(group.ops))
      op->erase();
  }

  /// The module's function with this body, which may be `kernel` itself.
  func::FuncOp shareEqual(func::FuncOp kernel, StringRef name) {
    std::vector<func::FuncOp> &alike = kernels[hashOf(kernel)];
    for (func::FuncOp known : alike)
      if (known.getFunctionType() == kernel.getFunctionType() &&
          OperationEquivalence::isRegionEquivalentTo(
              &known.getBody(), &kernel.getBody(),
              OperationEquivalence::IgnoreLocations)) {
        kernel.erase();
        return known;
      }
    alike.push_back(kernel);
    unsigned &count = used[name];
    kernel.setName((name + "_" + llvm::Twine(count++)).str());
    getOperation().push_back(kernel);
    return kernel;
  }

  // Of what is a pointer in the IR: constants may be large, and text of them
  // larger.
  static size_t hashOf(func::FuncOp kernel) {
    llvm::hash_code hash = hash_value(Type(kernel.getFunctionType()));
    for (Operation &op : kernel.front())
      hash = llvm::hash_combine(hash,
                                OperationEquivalence::computeHash(
                                    &op, OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::IgnoreLocations));
    return hash;
  }

  llvm::DenseMap<size_t, std::vector<func::FuncOp>> kernels;
  llvm::StringMap<unsigned> used;
};

} // namespace

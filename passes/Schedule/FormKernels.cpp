//===- FormKernels.cpp - groups of ops become kernels -----------------------===//
//
// A kernel is a private function whose body says, in het, what it computes; how
// it is mapped to a machine is the Codegen phase's. Equal bodies are one
// function, so that a model of many equal blocks compiles each kernel once.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Schedule/KernelGroups.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

namespace autohet {
#define GEN_PASS_DEF_FORMKERNELS
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

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
      for (const KernelGroup &group : groupKernels(program.getBody().front()))
        outline(group);
    // Constants live on in the kernels; what is read by a product, which is
    // none, a kernel of its own writes.
    for (func::FuncOp program : programs)
      for (auto constant : llvm::make_early_inc_range(
               program.getBody().front().getOps<het::ConstantOp>())) {
        if (constant->use_empty())
          constant.erase();
        else if (!isEmpty(constant))
          outline(KernelGroup{{constant}});
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
  static std::string nameOf(const KernelGroup &group) {
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

  void outline(const KernelGroup &group) {
    auto [inputs, outputs] = portsOf(group.ops);
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

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
#include "mlir/IR/Threading.h"
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
    // Kernels are of all programs; everything else is each program's own.
    std::vector<std::vector<Outline>> outlines(programs.size());
    parallelFor(&getContext(), 0, programs.size(), [&](size_t i) {
      Block &block = programs[i].getBody().front();
      foldEmpty(block);
      std::vector<KernelGroup> groups = groupKernels(block);
      outlines[i].reserve(groups.size());
      for (KernelGroup &group : groups)
        outlines[i].emplace_back(std::move(group));
    });
    for (std::vector<Outline> &ofProgram : outlines)
      for (Outline &outline : ofProgram)
        outline.kernel = kernelOf(outline);
    parallelForEach(&getContext(), outlines,
                    [](std::vector<Outline> &ofProgram) { call(ofProgram); });
    // Constants live on in the kernels; what is read by a product, which is
    // none, a kernel of its own writes.
    for (func::FuncOp program : programs)
      for (auto constant : llvm::make_early_inc_range(
               program.getBody().front().getOps<het::ConstantOp>())) {
        if (constant->use_empty()) {
          constant.erase();
        } else if (!isEmpty(constant)) {
          Outline outline(KernelGroup{{constant}});
          outline.kernel = kernelOf(outline);
          call(outline);
        }
      }
  }

  /// A group on its way into a kernel.
  struct Outline {
    explicit Outline(KernelGroup ofOps)
        : group(std::move(ofOps)), ports(portsOf(group.ops)),
          hash(hashOf(group)) {}

    KernelGroup group;
    KernelPorts ports;
    size_t hash;
    func::FuncOp kernel;
  };

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

  /// Calls instead of a program's groups, which are in its order. A port that
  /// another group gives is that one's call by then.
  static void call(MutableArrayRef<Outline> outlines) {
    IRMapping replaced;
    for (Outline &outline : outlines) {
      Operation *last = outline.group.last();
      OpBuilder builder(last);
      auto call = func::CallOp::create(
          builder, last->getLoc(), outline.kernel,
          llvm::map_to_vector(outline.ports.inputs, [&](Value input) {
            return replaced.lookupOrDefault(input);
          }));
      for (StringRef name : {het::kUnitAttr, het::kPhaseAttr})
        if (Attribute attribute = last->getAttr(name))
          call->setAttr(name, attribute);
      for (auto [output, result] :
           llvm::zip_equal(outline.ports.outputs, call.getResults())) {
        output.replaceAllUsesWith(result);
        replaced.map(output, result);
      }
      for (Operation *op : llvm::reverse(outline.group.ops))
        op->erase();
    }
  }

  /// The module's function that computes the group, a new one where there is
  /// none.
  func::FuncOp kernelOf(const Outline &outline) {
    const KernelGroup &group = outline.group;
    std::vector<func::FuncOp> &alike = kernels[outline.hash];
    for (func::FuncOp known : alike)
      if (isBodyOf(known.front(), group, outline.ports))
        return known;
    func::FuncOp kernel = build(group, outline.ports);
    alike.push_back(kernel);
    std::string name = nameOf(group);
    kernel.setName((name + "_" + llvm::Twine(used[name]++)).str());
    getOperation().push_back(kernel);
    return kernel;
  }

  func::FuncOp build(const KernelGroup &group, const KernelPorts &ports) {
    OpBuilder builder(&getContext());
    Location unknown = builder.getUnknownLoc();
    auto type = builder.getFunctionType(
        llvm::map_to_vector(ports.inputs, [](Value v) { return v.getType(); }),
        llvm::map_to_vector(ports.outputs,
                            [](Value v) { return v.getType(); }));
    auto kernel = func::FuncOp::create(unknown, "kernel", type);
    kernel.setPrivate();
    Block *body = kernel.addEntryBlock();
    builder.setInsertionPointToStart(body);
    IRMapping mapping;
    mapping.map(ports.inputs.getArrayRef(), body->getArguments());
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
                           llvm::map_to_vector(ports.outputs, [&](Value v) {
                             return mapping.lookup(v);
                           }));
    return kernel;
  }

  static bool isSameOp(Operation *a, Operation *b) {
    return a->getName() == b->getName() &&
           a->getResultTypes() == b->getResultTypes() &&
           a->getName().compareOpProperties(a->getPropertiesStorage(),
                                            b->getPropertiesStorage());
  }

  /// Whether build() would make this body of the group. Most groups have a
  /// kernel already: nothing is made to find that out.
  static bool isBodyOf(Block &body, const KernelGroup &group,
                       const KernelPorts &ports) {
    llvm::SmallDenseMap<Value, Value, 16> mapping;
    if (body.getNumArguments() != ports.inputs.size())
      return false;
    for (auto [value, argument] :
         llvm::zip_equal(ports.inputs, body.getArguments())) {
      if (value.getType() != argument.getType())
        return false;
      mapping[value] = argument;
    }
    auto next = body.begin(), end = std::prev(body.end());
    auto matchNext = [&](Operation *op) {
      if (next == end || !isSameOp(op, &*next))
        return false;
      for (auto [result, known] :
           llvm::zip_equal(op->getResults(), next->getResults()))
        mapping[result] = known;
      ++next;
      return true;
    };
    auto isMapped = [&](auto &&values, OperandRange known) {
      return llvm::equal(
          llvm::map_range(values, [&](Value v) { return mapping.lookup(v); }),
          known);
    };
    for (Operation *op : group.ops) {
      assert(op->getNumRegions() == 0 && "het ops have none");
      for (Value operand : op->getOperands())
        if (auto constant = operand.getDefiningOp<het::ConstantOp>();
            constant && !mapping.contains(operand) && !matchNext(constant))
          return false;
      if (next == end || !isMapped(op->getOperands(), next->getOperands()) ||
          !matchNext(op))
        return false;
    }
    return next == end && isMapped(ports.outputs, end->getOperands());
  }

  static size_t hashOf(const KernelGroup &group) {
    llvm::hash_code hash = llvm::hash_value(group.ops.size());
    for (Operation *op : group.ops)
      hash =
          llvm::hash_combine(hash, op->getName(), op->hashProperties(),
                             llvm::hash_combine_range(op->result_type_begin(),
                                                      op->result_type_end()));
    return hash;
  }

  llvm::DenseMap<size_t, std::vector<func::FuncOp>> kernels;
  llvm::StringMap<unsigned> used;
};

} // namespace

//===- UnitWork.cpp - the work of the model's units -------------------------===//

#include "UnitWork.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

// What is divided does not depend on the number of ranks, as long as each has
// some of it.
static constexpr int64_t twoRanks[] = {1, 1};

UnitWork::UnitWork(func::FuncOp model, double samples,
                   llvm::function_ref<PassWork *(Operation *)> passOf)
    : copy(cast<func::FuncOp>(model->clone(copied))), samples(samples),
      passOf(passOf), layouts(copy->front(), twoRanks) {
  chooseLayouts();
  normalizeMatmuls(*copy);
  IRRewriter rewriter(copy->getContext());
  DominanceInfo dominance(*copy);
  eliminateCommonSubExpressions(rewriter, dominance, *copy);
  Block &block = copy->front();
  for (Operation &op : block)
    if (isa<TransposeOp>(op) && !runs.count(&op))
      runs[&op] = layouts.choose(&op); // of a product
  findScalingValues();
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

//===----------------------------------------------------------------------===//
// What ranks exchange
//===----------------------------------------------------------------------===//

void UnitWork::chooseLayouts() {
  Block &block = copy->front();
  for (auto [number, group] : llvm::enumerate(groupKernels(block)))
    for (Operation *op : group.ops)
      groupOf[op] = number;
  for (Operation &op : block.without_terminator()) {
    if (isa<GradientOp>(op))
      continue;
    ShardLayouts &chosen = runs[&op] = layouts.choose(&op);
    for (auto [value, layout] :
         llvm::zip_equal(op.getOperands(), chosen.operands))
      convert(&op, value, layout);
    // What each has found of the label and of its sum of exponentials.
    if (auto loss = dyn_cast<CrossEntropyOp>(op);
        loss &&
        chosen.operands[0].isSplitAlong(typeOf(loss.getLogits()).getRank() - 1))
      for (int value = 0; value < 2; ++value)
        addExchange(RankExchange::Sum, loss.getLogSumExp(), &op);
  }
  // A sum has no one place, divided results have.
  for (Value value : block.getTerminator()->getOperands())
    if (layouts.of(value).kind == Layout::Sum)
      convert(block.getTerminator(), value, Layout());
}

/// As StageSharder converts, once a value.
void UnitWork::convert(Operation *reader, Value value, const Layout &wanted) {
  Layout have = layouts.of(value);
  if (have == wanted || value.getDefiningOp<ParameterOp>())
    return;
  if (wanted.kind == Layout::Split && have.kind == Layout::Split &&
      have.dim == wanted.dim && have.parts == wanted.parts &&
      !haveOverlap(have.parts))
    return;
  if (have.kind != Layout::Whole && madeWhole.insert(value).second) {
    Operation *maker = value.getDefiningOp();
    bool isGathered =
        have.kind == Layout::Split && !(have.isSum && haveOverlap(have.parts));
    // The kernel of a reader that takes one element after the other.
    auto own = groupOf.find(maker), other = groupOf.find(reader);
    bool isJoined = isa<ElementwiseOpInterface>(reader) &&
                    reader->getResult(0).getType() == value.getType() &&
                    other != groupOf.end() &&
                    (own == groupOf.end() || own->second != other->second);
    addExchange(isGathered ? RankExchange::Gather
                : isJoined ? RankExchange::JoinedSum
                           : RankExchange::Sum,
                value, maker);
  }
  if (wanted.kind == Layout::Split)
    addExchange(RankExchange::Cut, value, reader);
}

void UnitWork::addExchange(RankExchange::Kind kind, Value value,
                           Operation *of) {
  if (PassWork *pass = passOf(of))
    pass->exchanges.push_back({kind, storedBytes(value) / samples});
}

//===----------------------------------------------------------------------===//
// What they compute
//===----------------------------------------------------------------------===//

/// Those that grow with the number of samples: what is made of inputs, but
/// for gradients of parameters.
void UnitWork::findScalingValues() {
  Block &block = copy->front();
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
                   (isa<ReshapeOp, TransposeOp, ElementwiseOpInterface>(user) &&
                    gradients.contains(user->getResult(0)));
          })) {
        gradients.insert(result);
        scaling.erase(result);
      }
}

bool UnitWork::scales(Operation *op) const {
  return llvm::any_of(op->getOperands(),
                      [&](Value v) { return scaling.contains(v); });
}

bool UnitWork::isRunDivided(Operation *op) const {
  auto run = runs.find(op);
  auto isSplit = [](const Layout &l) { return l.kind == Layout::Split; };
  return run != runs.end() && (llvm::any_of(run->second.operands, isSplit) ||
                               llvm::any_of(run->second.results, isSplit));
}

void UnitWork::add(PassWork &pass, double Work::*quantity, double amount,
                   bool scales, bool isDivided) const {
  if (scales)
    amount /= samples;
  (scales ? pass.per_sample : pass.once).*quantity += amount;
  if (!isDivided)
    (scales ? pass.whole_per_sample : pass.whole_once).*quantity += amount;
}

void UnitWork::addKernel(PassWork &pass, ArrayRef<Operation *> ops) {
  pass.once.commands += 1;
  bool grows = llvm::any_of(ops, [&](Operation *op) { return scales(op); });
  for (Operation *op : ops) {
    OpCost cost = cast<CostedOpInterface>(op).getCost();
    bool isDivided = isRunDivided(op);
    add(pass, &Work::attention_flops, cost.matmulFlops, grows, isDivided);
    add(pass, &Work::elementwise_flops, cost.otherFlops, grows, isDivided);
  }

  KernelPorts ports = portsOf(ops);
  double read = 0, written = 0;
  for (Value value : ports.inputs)
    read += storedBytes(value);
  for (Value value : ports.outputs)
    written += storedBytes(value);
  // A single op says what it touches of what it is given.
  OpCost cost = cast<CostedOpInterface>(ops.front()).getCost();
  bool isAlone = ops.size() == 1;
  double reads = isAlone ? cost.bytesRead : read;
  double writes = isAlone ? cost.bytesWritten : written;
  if (written > 0)
    for (Value value : ports.outputs)
      add(pass, &Work::traffic_bytes, writes * storedBytes(value) / written,
          grows && scaling.contains(value),
          layouts.of(value).kind == Layout::Split);
  // Of a table that is only looked up, what is written is read.
  if (reads < read)
    return add(pass, &Work::traffic_bytes, reads, grows,
               llvm::any_of(ports.outputs, [&](Value value) {
                 return layouts.of(value).kind == Layout::Split;
               }));
  auto isReadDivided = [&](Value value) {
    for (Operation *op : ops)
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        if (operand == value)
          return runs.lookup(op).operands[i].kind == Layout::Split;
    return false;
  };
  for (Value value : ports.inputs)
    add(pass, &Work::traffic_bytes, reads * storedBytes(value) / read,
        grows && scaling.contains(value), isReadDivided(value));
}

/// As the simulator prices it: weights and their gradients go through memory.
void UnitWork::addProduct(PassWork &pass, MatmulOp product) {
  pass.once.commands += 1;
  auto isDivided = [&](const SmallVector<Layout> &of, unsigned i) {
    return i < of.size() && of[i].kind == Layout::Split;
  };
  ShardLayouts run = runs.lookup(product);
  add(pass, &Work::flops, product.getCost().matmulFlops, scales(product),
      isRunDivided(product));
  for (auto [i, operand] : llvm::enumerate(product->getOperands()))
    if (rootOf(operand).getDefiningOp<ParameterOp>())
      add(pass, &Work::traffic_bytes, storedBytes(operand), false,
          isDivided(run.operands, i));
  if (isAddedUp(product))
    add(pass, &Work::traffic_bytes, 2 * storedBytes(product), false,
        isDivided(run.results, 0));
}

/// Adding a gradient to those of earlier microbatches.
void UnitWork::addSum(PassWork &pass, GradientOp gradient) {
  Value value = gradient.getValue();
  auto product = value.getDefiningOp<MatmulOp>();
  if (product && isAddedUp(product))
    return;
  bool isDivided = layouts.of(value).kind == Layout::Split;
  pass.once.commands += 1;
  add(pass, &Work::elementwise_flops,
      2 * double(typeOf(value).getNumElements()), false, isDivided);
  add(pass, &Work::traffic_bytes, 3 * storedBytes(value), false, isDivided);
}

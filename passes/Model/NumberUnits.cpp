//===- NumberUnits.cpp - het-number-units
//-----------------------------------===//
//
// Cuts the model into the units that a plan may distribute, by the shape of its
// graph alone: names differ between exporters, the residual stream does not.
//
//   x ──┬────────────────┐          A value through which every path to the
//   loss
//       └ norm, attention ┴ add ──  goes is a *cut*. In a transformer the cuts
//       are
//   the residual stream. Between two cuts lies a *segment*: one op, or the ops
//   of a branch and its addition.
//
// A segment of several ops with a product by a weight is (half) a block: `attn`
// if it also has a product of two activations, `mlp` if not. Single ops between
// blocks (a norm behind the addition, as in BERT) belong to the block before
// them; what is before the first block is `embed`, what is behind the last is
// `head`.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Het/LossTerms.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace autohet {
#define GEN_PASS_DEF_NUMBERUNITS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet::het;

namespace {

/// What an op depends on decides where it may be:
///
///   on weights  on arguments
///   no          any           Inputs: repeated wherever it is read
///   yes         no            Weights: goes where it is used
///   yes         yes           Main: has a place
enum class Role { Inputs, Weights, Main };

/// The ops between two cuts.
struct Segment {
  unsigned opCount = 0;
  bool hasWeightProduct = false; // activation times weight
  bool hasActivationProduct = false;

  bool isBlock() const { return opCount > 1 && hasWeightProduct; }
};

class UnitNumbering {
public:
  UnitNumbering(func::FuncOp function, bool inference)
      : function(function), block(function.front()), inference(inference) {}

  LogicalResult run();

private:
  void findRoles();
  llvm::DenseSet<Operation *> findTerms() const;
  Operation *findSink();
  LogicalResult findSegments();
  void describeSegments();
  void nameSegments();
  void nameBlocks(ArrayRef<unsigned> blocks);
  void nameLayers();
  void placeForward();
  LogicalResult placeBackward();
  void repeatSharedWeights();
  LogicalResult verifyOrder();
  void writeAttributes();
  void takeAsOne();

  bool isMain(Operation *op) const { return roles.lookup(op) == Role::Main; }
  Operation *commonDominator(Operation *a, Operation *b) const;
  void startUnit(unsigned segment, const Twine &name);

  func::FuncOp function;
  Block &block;
  bool inference;
  llvm::DenseMap<Operation *, Role> roles; // of forward ops
  SmallVector<Operation *> mainOps;        // in program order

  // The tree of post-dominators: where all paths from an op to the sink meet.
  llvm::DenseMap<Operation *, Operation *> postDominator;
  llvm::DenseMap<Operation *, unsigned> depth;
  llvm::DenseMap<Operation *, unsigned> segmentOf;
  SmallVector<Segment> segments;

  SmallVector<std::string> names; // of units
  SmallVector<unsigned> unitOfSegment;
  llvm::DenseMap<Operation *, unsigned> unitOf;
};

bool isWeight(Operation *op) {
  auto parameter = dyn_cast<ParameterOp>(op);
  return parameter && (parameter.isTrained() || op->hasAttr(kFrozenAttr));
}

void UnitNumbering::findRoles() {
  llvm::DenseSet<Value> fromArguments, fromWeights;
  for (Value argument : block.getArguments())
    fromArguments.insert(argument);
  for (Operation &op : block.without_terminator()) {
    if (isBackward(&op))
      continue;
    auto reads = [&](const llvm::DenseSet<Value> &values) {
      return llvm::any_of(op.getOperands(),
                          [&](Value v) { return values.contains(v); });
    };
    bool weights = isWeight(&op) || reads(fromWeights),
         arguments = reads(fromArguments);
    for (Value result : op.getResults()) {
      if (weights)
        fromWeights.insert(result);
      if (arguments)
        fromArguments.insert(result);
    }
    roles[&op] = !weights    ? Role::Inputs
                 : arguments ? Role::Main
                             : Role::Weights;
    if (isMain(&op))
      mainOps.push_back(&op);
  }
}

Operation *UnitNumbering::commonDominator(Operation *a, Operation *b) const {
  while (a != b) {
    if (depth.lookup(a) < depth.lookup(b))
      std::swap(a, b);
    a = postDominator.lookup(a);
  }
  return a;
}

/// What depends on a microbatch as a whole: a term of the loss that each layer
/// has a part in, past the residual stream.
llvm::DenseSet<Operation *> UnitNumbering::findTerms() const {
  llvm::DenseSet<Operation *> terms;
  for (Operation *op : mainOps)
    if (op->hasAttr(kOfMicrobatchAttr) ||
        llvm::any_of(op->getOperands(), [&](Value v) {
          return terms.contains(v.getDefiningOp());
        }))
      terms.insert(op);
  return terms;
}

/// What all paths lead to, but for those of the loss's further terms; null
/// where that depends on no weight.
Operation *UnitNumbering::findSink() {
  if (function.getNumResults() == 0)
    return nullptr;
  llvm::DenseSet<Operation *> terms = findTerms();
  Operation *sink = block.getTerminator()->getOperand(0).getDefiningOp();
  // The sum of the labels' loss and the terms: paths lead to the former.
  if (sink && terms.contains(sink))
    for (Value operand : sink->getOperands())
      if (Operation *from = operand.getDefiningOp();
          from && isMain(from) && !terms.contains(from)) {
        sink = from;
        break;
      }
  return sink && isMain(sink) ? sink : nullptr;
}

/// Ops that do not lead to the sink (further outputs) stay without a segment.
LogicalResult UnitNumbering::findSegments() {
  Operation *sink = findSink();
  if (!sink)
    return function.emitError(
        "has no units: its first result depends on no weight");

  // Users come after an op, so that backwards each op's users are done.
  SmallVector<Operation *> reaching;
  for (Operation *op : llvm::reverse(mainOps)) {
    Operation *meet = nullptr;
    bool reaches = op == sink;
    for (Operation *user : op->getUsers())
      if (isMain(user) && depth.contains(user) && op != sink) {
        meet = reaches ? commonDominator(meet, user) : user;
        reaches = true;
      }
    if (!reaches)
      continue;
    postDominator[op] = meet;
    depth[op] = meet ? depth[meet] + 1 : 0;
    reaching.push_back(op);
  }

  // The chain of cuts starts where the paths from all sources have met.
  Operation *first = nullptr;
  for (Operation *op : llvm::reverse(reaching))
    if (llvm::none_of(op->getOperands(), [&](Value v) {
          return v.getDefiningOp() && isMain(v.getDefiningOp());
        }))
      first = first ? commonDominator(first, op) : op;
  for (Operation *cut = first; cut; cut = postDominator.lookup(cut)) {
    segmentOf[cut] = segments.size();
    segments.emplace_back();
  }
  for (Operation *op : reaching) // from the sink on: dominators are done
    if (!segmentOf.contains(op))
      segmentOf[op] = segmentOf.lookup(postDominator.lookup(op));
  return success();
}

void UnitNumbering::describeSegments() {
  for (auto [op, index] : segmentOf) {
    Segment &segment = segments[index];
    ++segment.opCount;
    if (cast<CostedOpInterface>(op).getCost().matmulFlops == 0)
      continue;
    unsigned activations = 0, weights = 0;
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp()) {
        activations += isMain(from);
        weights += roles.lookup(from) == Role::Weights;
      }
    segment.hasActivationProduct |= activations > 1;
    segment.hasWeightProduct |= activations <= 1 && weights > 0;
  }
}

void UnitNumbering::startUnit(unsigned segment, const Twine &name) {
  if (!names.empty())
    unitOfSegment.resize(segment, names.size() - 1);
  names.push_back(name.str());
}

/// The attention and mlp halves of blocks, numbered: an mlp belongs to the
/// attention before it. A block of one segment needs no second name.
void UnitNumbering::nameBlocks(ArrayRef<unsigned> blocks) {
  unsigned number = 0;
  for (size_t i = 0; i < blocks.size(); ++number) {
    bool both = i + 1 < blocks.size() &&
                segments[blocks[i]].hasActivationProduct &&
                !segments[blocks[i + 1]].hasActivationProduct;
    std::string name = ("block" + Twine(number)).str();
    startUnit(blocks[i], both ? name + ".attn" : name);
    if (both)
      startUnit(blocks[i + 1], name + ".mlp");
    i += both ? 2 : 1;
  }
  // Behind the last block as many single ops are its own as behind the one
  // before it; the rest is the head.
  unsigned last = blocks.back();
  unsigned tail = blocks.size() < 2 ? 0 : last - blocks[blocks.size() - 2] - 1;
  if (last + 1 + tail < segments.size())
    startUnit(last + 1 + tail, "head");
}

/// A model without blocks: each product by a weight starts a unit.
void UnitNumbering::nameLayers() {
  unsigned number = 0;
  for (auto [i, segment] : llvm::enumerate(segments))
    if (segment.hasWeightProduct)
      startUnit(number == 0 ? 0 : i, "layer" + Twine(number)), ++number;
  if (number == 0)
    startUnit(0, "layer0");
}

void UnitNumbering::nameSegments() {
  SmallVector<unsigned> blocks; // the first segment reads the inputs: no block
  for (unsigned i = 1; i < segments.size(); ++i)
    if (segments[i].isBlock())
      blocks.push_back(i);
  if (blocks.empty()) {
    nameLayers();
  } else {
    startUnit(0, "embed");
    nameBlocks(blocks);
  }
  unitOfSegment.resize(segments.size(), names.size() - 1);
}

/// Main ops by their segment, further outputs behind what they read, weights
/// with their first reader.
void UnitNumbering::placeForward() {
  for (Operation *op : mainOps) {
    if (auto segment = segmentOf.find(op); segment != segmentOf.end()) {
      unitOf[op] = unitOfSegment[segment->second];
      continue;
    }
    unsigned unit = 0;
    for (Value operand : op->getOperands())
      if (auto from = unitOf.find(operand.getDefiningOp());
          from != unitOf.end())
        unit = std::max(unit, from->second);
    unitOf[op] = unit;
  }
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (isBackward(&op) || roles.lookup(&op) != Role::Weights)
      continue;
    for (Operation *user : op.getUsers())
      if (auto found = unitOf.find(user); found != unitOf.end()) {
        unsigned unit = found->second; // emplacing moves what `found` points to
        auto [mine, isNew] = unitOf.try_emplace(&op, unit);
        mine->second = std::min(mine->second, unit);
      }
  }
}

/// By the op that they serve; where that is forgotten, for the pass has run
/// before, by the unit that they have.
LogicalResult UnitNumbering::placeBackward() {
  llvm::DenseMap<Attribute, unsigned> unitOfId;
  for (auto [op, unit] : unitOf)
    if (Attribute id = op->getAttr(kIdAttr))
      unitOfId[id] = unit;
  for (Operation &op : block) {
    if (!isBackward(&op))
      continue;
    if (auto unit = unitOfId.find(op.getAttr(kAdjointOfAttr));
        unit != unitOfId.end()) {
      unitOf[&op] = unit->second;
      continue;
    }
    auto known = op.getAttrOfType<StringAttr>(kUnitAttr);
    auto *name = known ? llvm::find(names, known.getValue()) : names.end();
    if (name == names.end())
      return op.emitOpError(
          "is a backward op of no known unit: it has neither the "
          "het.adjoint_of of an op in a unit nor a het.unit");
    unitOf[&op] = name - names.begin();
  }
  return success();
}

/// A weight that several units read becomes one op in each: holding it twice is
/// a matter for the plan, sending it every step is not meant.
void UnitNumbering::repeatSharedWeights() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    auto mine = unitOf.find(&op);
    if (isBackward(&op) || roles.lookup(&op) != Role::Weights ||
        mine == unitOf.end())
      continue;
    unsigned home = mine->second;
    llvm::MapVector<unsigned, SmallVector<OpOperand *>> foreign;
    for (OpOperand &use : op.getUses())
      if (auto unit = unitOf.find(use.getOwner());
          unit != unitOf.end() && unit->second != home)
        foreign[unit->second].push_back(&use);
    for (auto &[unit, uses] : foreign) {
      Operation *copy = OpBuilder(op.getContext()).clone(op);
      block.getOperations().insertAfter(op.getIterator(), copy);
      roles[copy] = Role::Weights;
      unitOf[copy] = unit;
      for (OpOperand *use : uses)
        use->set(copy->getResult(cast<OpResult>(use->get()).getResultNumber()));
    }
  }
}

/// Values flow forwards along the chain of units, gradients backwards.
LogicalResult UnitNumbering::verifyOrder() {
  for (Operation &op : block) {
    auto mine = unitOf.find(&op);
    if (mine == unitOf.end())
      continue;
    for (Value operand : op.getOperands()) {
      Operation *from = operand.getDefiningOp();
      auto source = unitOf.find(from);
      if (source == unitOf.end() || source->second == mine->second)
        continue;
      bool backwards = isBackward(from);
      if (backwards ? source->second > mine->second
                    : source->second < mine->second)
        continue;
      return op.emitOpError("in unit ")
             << names[mine->second] << " reads a "
             << (backwards ? "gradient" : "value") << " of unit "
             << names[source->second] << ", against the order of units";
    }
  }
  return success();
}

void UnitNumbering::writeAttributes() {
  OpBuilder b(function.getContext());
  SmallVector<bool> used(names.size(), false);
  for (Operation &op : block.without_terminator()) {
    if (auto unit = unitOf.find(&op); unit != unitOf.end())
      op.setAttr(kUnitAttr, b.getStringAttr(names[unit->second]));
    else if (roles.lookup(&op) == Role::Inputs)
      op.setAttr(kUnitAttr, b.getStringAttr(kInputsUnit));
    op.removeAttr(kIdAttr);
    op.removeAttr(kAdjointOfAttr);
  }
  function->setAttr(kUnitsAttr,
                    b.getStrArrayAttr(llvm::to_vector_of<StringRef>(names)));
}

/// Without weights there is nothing to divide the model by.
void UnitNumbering::takeAsOne() {
  names.push_back("model");
  for (Operation &op : block.without_terminator())
    unitOf[&op] = 0;
  writeAttributes();
}

LogicalResult UnitNumbering::run() {
  findRoles();
  if (inference && !findSink()) {
    takeAsOne();
    return success();
  }
  if (failed(findSegments()))
    return failure();
  describeSegments();
  nameSegments();
  placeForward();
  if (failed(placeBackward()))
    return failure();
  repeatSharedWeights();
  if (failed(verifyOrder()))
    return failure();
  writeAttributes();
  return success();
}

struct NumberUnits : autohet::impl::NumberUnitsBase<NumberUnits> {
  using NumberUnitsBase::NumberUnitsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(verifyStraightLine(function)) ||
        failed(UnitNumbering(function, inference).run()))
      signalPassFailure();
  }
};

} // namespace

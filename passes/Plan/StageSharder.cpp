//===- StageSharder.cpp - one stage expanded over its ranks -----------------===//
//
// What an op becomes for its layouts is its answer to ShardableOpInterface, and
// a new op changes nothing here. Decided here is only what crosses the stage's
// border: parameters, gradients, transfers, results.
//
//===----------------------------------------------------------------------===//

#include "StageSharder.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace autohet;

void StageSharder::Stamp::notifyOperationInserted(Operation *op,
                                                  OpBuilder::InsertPoint) {
  for (StringRef name : {het::kUnitAttr, het::kPhaseAttr})
    if (Attribute attribute = source->getAttr(name))
      op->setAttr(name, attribute);
}

dist::ProgramAttr autohet::programOf(dist::StageAttr stage, unsigned number) {
  return dist::ProgramAttr::get(
      stage.getContext(), cast<StringAttr>(stage.getDevices()[number]),
      stage.getRanks()[number], stage.getWorld(), stage.getReplica(),
      stage.getStage(), stage.getStages(), stage.getMicrobatches(),
      stage.getMicrobatchSize(), stage.getFirstSample(),
      stage.getGlobalBatch());
}

StageSharder::StageSharder(func::FuncOp stage, const StageRanks &allRanks,
                           int64_t &nextChannel)
    : stage(stage),
      info(stage->getAttrOfType<dist::StageAttr>(dist::kStageAttr)),
      allRanks(allRanks), nextChannel(nextChannel),
      ranks(info.getRanks().asArrayRef()),
      layouts(stage.getBody().front(), info.getWeights().asArrayRef()) {}

void StageSharder::run() {
  Block &source = stage.getBody().front();
  for (unsigned rank = 0; rank < getNumRanks(); ++rank) {
    OpBuilder builder(stage->getContext());
    builder.setInsertionPointAfter(rank ? funcs.back().getOperation()
                                        : stage.getOperation());
    dist::ProgramAttr program = programOf(info, rank);
    auto func = func::FuncOp::create(builder, stage.getLoc(),
                                     program.getDevice().getValue(),
                                     stage.getFunctionType());
    if (ArrayAttr attributes =
            stage.getAllArgAttrs()) // null where there are none
      func.setAllArgAttrs(attributes);
    func->setAttr(dist::kProgramAttr, program);
    Block *body = func.addEntryBlock();
    for (auto [from, to] :
         llvm::zip_equal(source.getArguments(), body->getArguments()))
      locals[from].push_back(to);
    funcs.push_back(func);
    builders.push_back(OpBuilder::atBlockEnd(body, &stamp));
  }
  for (Operation &op : source) {
    stamp.source = &op;
    expand(&op);
  }
  // A parameter that is divided is held in parts only.
  for (func::FuncOp func : funcs)
    for (auto parameter :
         llvm::make_early_inc_range(func.getOps<het::ParameterOp>()))
      if (parameter->use_empty())
        parameter.erase();
  // Ops that read one value ask for it in the same layout, each for itself.
  IRRewriter rewriter(stage->getContext());
  for (func::FuncOp func : funcs) {
    DominanceInfo dominance(func);
    eliminateCommonSubExpressions(rewriter, dominance, func);
  }
}

void StageSharder::expand(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](het::ParameterOp parameter) { expandParameter(parameter); })
      .Case([&](het::GradientOp gradient) { expandGradient(gradient); })
      .Case([&](dist::SendOp send) { expandSend(send); })
      .Case([&](dist::RecvOp recv) { expandRecv(recv); })
      .Case([&](func::ReturnOp returned) { expandReturn(returned); })
      .Default([&](Operation *compute) { build(compute); });
}

//===----------------------------------------------------------------------===//
// What computes
//===----------------------------------------------------------------------===//

void StageSharder::build(Operation *op) {
  het::ShardLayouts chosen = layouts.choose(op);
  SmallVector<Locals> operands;
  for (auto [value, layout] :
       llvm::zip_equal(op->getOperands(), chosen.operands))
    operands.push_back(convert(value, layout));
  auto shardable = dyn_cast<het::ShardableOpInterface>(op);
  SmallVector<Locals> results =
      shardable ? shardable.buildShards(*this, operands, chosen)
                : het::cloneShards(op, *this, operands, chosen);
  for (auto [value, values] : llvm::zip_equal(op->getResults(), results))
    locals[value] = values;
}

//===----------------------------------------------------------------------===//
// What crosses the stage's border
//===----------------------------------------------------------------------===//

/// The whole is built on every rank, and dropped where all readers have parts.
void StageSharder::expandParameter(het::ParameterOp op) {
  layouts.choose(op);
  for (unsigned rank = 0; rank < getNumRanks(); ++rank)
    locals[op].push_back(on(rank).clone(*op)->getResult(0));
  (void)localsOf(op);
}

/// A whole gradient is on every rank and counts once, at the first; parts of a
/// sum count on every rank, boxes where they are.
void StageSharder::expandGradient(het::GradientOp op) {
  Layout layout = layouts.of(op.getValue());
  auto whole = typeOf(op.getValue());
  unsigned counting = layout.kind == Layout::Whole ? 1 : getNumRanks();
  for (unsigned rank = 0; rank < counting; ++rank) {
    auto copy = cast<het::GradientOp>(on(rank).clone(*op));
    copy.getValueMutable().assign(locals[op.getValue()][rank]);
    if (layout.kind != Layout::Split)
      continue;
    SmallVector<int64_t> offsets(whole.getRank(), 0);
    if (op.getOffsets())
      offsets.assign(op.getOffsets()->begin(), op.getOffsets()->end());
    offsets[layout.dim] += layout.parts[rank].begin;
    copy.setOffsets(offsets);
    copy.setGlobalShape(op.getWholeShape());
  }
}

void StageSharder::expandSend(dist::SendOp op) {
  Locals values = convert(op.getValue(), Layout());
  const SmallVector<int64_t> &readers =
      allRanks.find({info.getReplica(), op.getPeer()})->second;
  for (auto [j, reader] : llvm::enumerate(readers)) {
    unsigned from = j % getNumRanks();
    dist::SendOp::create(on(from), op.getLoc(), values[from], reader,
                         op.getChannel(), false);
  }
}

void StageSharder::expandRecv(dist::RecvOp op) {
  const SmallVector<int64_t> &senders =
      allRanks.find({info.getReplica(), op.getPeer()})->second;
  Locals values;
  for (unsigned rank = 0; rank < getNumRanks(); ++rank)
    values.push_back(dist::RecvOp::create(on(rank), op.getLoc(), op.getType(),
                                          senders[rank % senders.size()],
                                          op.getChannel(), false)
                         .getResult());
  locals[op.getResult()] = values;
}

/// The loss and whole outputs come from the first rank, divided outputs from
/// all.
void StageSharder::expandReturn(func::ReturnOp op) {
  Builder attributes(stage->getContext());
  SmallVector<Layout> result;
  for (Value value : op.getOperands()) {
    // Sums and parts of sums have no one place.
    Layout layout = layouts.of(value);
    bool divided =
        layout.kind == Layout::Split && !het::haveOverlap(layout.parts);
    result.push_back(divided ? layout : Layout());
    if (!divided)
      (void)convert(value, Layout());
  }
  for (unsigned rank = 0; rank < getNumRanks(); ++rank) {
    SmallVector<Value> values;
    SmallVector<DictionaryAttr> names;
    for (auto [i, value] : llvm::enumerate(op.getOperands())) {
      const Layout &layout = result[i];
      if (layout.kind == Layout::Whole && rank > 0)
        continue;
      values.push_back(convert(value, layout)[rank]);
      NamedAttrList about(stage.getResultAttrDict(i));
      if (layout.kind == Layout::Split) {
        SmallVector<int64_t> offsets(typeOf(value).getRank(), 0);
        offsets[layout.dim] = layout.parts[rank].begin;
        about.set(dist::kOffsetsAttr, attributes.getDenseI64ArrayAttr(offsets));
        about.set(dist::kGlobalShapeAttr,
                  attributes.getDenseI64ArrayAttr(typeOf(value).getShape()));
      }
      names.push_back(about.getDictionary(stage->getContext()));
    }
    func::ReturnOp::create(on(rank), op.getLoc(), values);
    func::FuncOp func = funcs[rank];
    func.setFunctionType(attributes.getFunctionType(
        func.getFunctionType().getInputs(),
        llvm::map_to_vector(values, [](Value v) { return v.getType(); })));
    func.setAllResultAttrs(names);
    llvm::BitVector unread(func.getNumArguments());
    for (BlockArgument argument : func.getArguments())
      if (argument.use_empty())
        unread.set(argument.getArgNumber());
    (void)func.eraseArguments(unread);
  }
}

//===- StageSharder.cpp - one stage expanded over its ranks -----------------===//
//
// Ops follow their operands. Where an operand is divided along one of the op's
// factors, every rank does its part of that factor; operands without the factor
// are needed whole, results without it are partial sums. Where nothing is
// divided, every rank does all. What is more than that rule (heads that share
// keys, the softmax over divided classes, transfers) is spelled out below.
//
//===----------------------------------------------------------------------===//

#include "StageSharder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace autohet;

static RankedTensorType typeOf(Value v) {
  return cast<RankedTensorType>(v.getType());
}

StageSharder::StageSharder(func::FuncOp stage, const StageRanks &allRanks,
                           int64_t &nextChannel)
    : stage(stage),
      info(stage->getAttrOfType<dist::StageAttr>(dist::kStageAttr)),
      allRanks(allRanks), nextChannel(nextChannel),
      ranks(info.getRanks().asArrayRef()),
      seeds(stage.getBody().front(), info.getWeights().asArrayRef()) {}

LogicalResult StageSharder::run() {
  Block &source = stage.getBody().front();
  for (unsigned rank = 0; rank < size(); ++rank) {
    OpBuilder builder(stage->getContext());
    builder.setInsertionPointAfter(rank ? funcs.back().getOperation()
                                        : stage.getOperation());
    auto device = cast<StringAttr>(info.getDevices()[rank]);
    auto func = func::FuncOp::create(builder, stage.getLoc(), device.getValue(),
                                     stage.getFunctionType());
    if (ArrayAttr attributes =
            stage.getAllArgAttrs()) // null where there are none
      func.setAllArgAttrs(attributes);
    func->setAttr(dist::kProgramAttr,
                  dist::ProgramAttr::get(
                      stage->getContext(), device, ranks[rank], info.getWorld(),
                      info.getReplica(), info.getStage(), info.getStages(),
                      info.getMicrobatches(), info.getMicrobatchSize(),
                      info.getFirstSample(), info.getGlobalBatch()));
    Block *body = func.addEntryBlock();
    for (auto [from, to] :
         llvm::zip_equal(source.getArguments(), body->getArguments()))
      locals[from].push_back(to);
    funcs.push_back(func);
    builders.push_back(OpBuilder::atBlockEnd(body));
  }
  for (Operation &op : source)
    if (failed(expand(&op)))
      return failure();
  // A parameter that is divided is held in parts only.
  for (func::FuncOp func : funcs)
    for (auto parameter :
         llvm::make_early_inc_range(func.getOps<het::ParameterOp>()))
      if (size() > 1 && parameter->use_empty())
        parameter.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Cloning
//===----------------------------------------------------------------------===//

/// `type` with a rank's part of the divided dim.
static RankedTensorType localType(RankedTensorType type, const Layout &layout,
                                  unsigned rank) {
  if (layout.kind != Layout::Split)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[layout.dim] = layout.parts[rank].size;
  return RankedTensorType::get(shape, type.getElementType());
}

Operation *StageSharder::cloneLocal(Operation *op, unsigned rank,
                                    ValueRange operands,
                                    ArrayRef<Layout> results) {
  OpBuilder &builder = builders[rank];
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  for (auto [result, layout] : llvm::zip_equal(copy->getResults(), results))
    result.setType(localType(typeOf(result), layout, rank));
  if (results.empty() || results.front().kind != Layout::Split)
    return copy;
  // Attributes that spell out the result's shape or place.
  const Layout &layout = results.front();
  const Part &part = layout.parts[rank];
  ArrayRef<int64_t> shape = typeOf(copy->getResult(0)).getShape();
  auto whole = typeOf(op->getResult(0));
  llvm::TypeSwitch<Operation *>(copy)
      .Case<het::ReshapeOp, het::BroadcastOp, het::SliceBackwardOp>(
          [&](auto local) { local.setShape(shape); })
      .Case([&](het::SliceOp local) { local.setSizes(shape); })
      .Case([&](het::CrossEntropyBackwardOp local) {
        local.setFirstClass(part.begin);
      })
      .Case([&](het::DropoutOp local) {
        SmallVector<int64_t> offsets(whole.getRank(), 0);
        offsets[layout.dim] = part.begin;
        local.setOffsets(offsets);
        local.setGlobalShape(whole.getShape());
      });
  return copy;
}

void StageSharder::setResults(Operation *op, ArrayRef<Operation *> clones,
                              ArrayRef<Layout> results) {
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Locals values;
    for (Operation *clone : clones)
      values.push_back(clone->getResult(i));
    locals[result] = values;
    layouts[result] = results[i];
  }
}

void StageSharder::expandWhole(Operation *op) {
  SmallVector<Locals> operands;
  for (Value operand : op->getOperands())
    operands.push_back(convert(operand, Layout(), op));
  SmallVector<Operation *> clones;
  SmallVector<Layout> results(op->getNumResults());
  for (unsigned rank = 0; rank < size(); ++rank)
    clones.push_back(cloneLocal(
        op, rank,
        llvm::map_to_vector(operands, [&](Locals &l) { return l[rank]; }),
        results));
  setResults(op, clones, results);
}

//===----------------------------------------------------------------------===//
// By rule
//===----------------------------------------------------------------------===//

/// Whether the op maps a sum of inputs to the sum of its results.
static bool isLinear(Operation *op) {
  if (auto reduce = dyn_cast<het::ReduceOp>(op))
    return reduce.getKind() == het::ReduceKind::sum ||
           reduce.getKind() == het::ReduceKind::mean;
  return isa<het::AddOp, het::SubOp, het::NegOp, het::ReshapeOp,
             het::TransposeOp, het::SliceOp, het::SliceBackwardOp,
             het::ConcatOp, het::BroadcastOp, het::RotaryOp>(op);
}

/// Whether factor `f` is the first, and so the divided, one of a dim; its unit
/// is the number of elements that one index of it stands for.
static std::optional<int64_t> unitOf(const het::ShardingRule &rule,
                                     const het::DimFactors &dim, unsigned f) {
  if (dim.empty() || dim.front() != f)
    return std::nullopt;
  int64_t unit = 1;
  for (unsigned minor : ArrayRef<unsigned>(dim).drop_front())
    unit *= rule.factors[minor].size;
  return unit;
}

/// Factors of extent 1 divide nothing and stand in the way of those behind
/// them.
static void dropUnitFactors(het::ShardingRule &rule) {
  auto drop = [&](SmallVectorImpl<het::TensorFactors> &tensors) {
    for (het::TensorFactors &tensor : tensors)
      for (het::DimFactors &dim : tensor)
        llvm::erase_if(dim,
                       [&](unsigned f) { return rule.factors[f].size == 1; });
  };
  drop(rule.operands);
  drop(rule.results);
}

LogicalResult StageSharder::expandByRule(Operation *op) {
  bool allSums = op->getNumOperands() > 0, anySplit = false;
  for (Value operand : op->getOperands()) {
    allSums &= layoutOf(operand).kind == Layout::Sum;
    anySplit |= layoutOf(operand).kind == Layout::Split;
  }
  // Rotary turns with whole cos and sin: only its first operand is summed.
  if (isa<het::RotaryOp>(op))
    allSums = layoutOf(op->getOperand(0)).kind == Layout::Sum;
  if (allSums && isLinear(op)) {
    SmallVector<Operation *> clones;
    SmallVector<Layout> results(op->getNumResults(), Layout::sum());
    for (unsigned rank = 0; rank < size(); ++rank)
      clones.push_back(cloneLocal(
          op, rank,
          llvm::map_to_vector(op->getOperands(),
                              [&](Value v) { return locals[v][rank]; }),
          results));
    setResults(op, clones, results);
    return success();
  }
  auto shardable = dyn_cast<het::ShardableOpInterface>(op);
  if (!anySplit || !shardable) {
    expandWhole(op);
    return success();
  }

  het::ShardingRule rule = shardable.getShardingRule();
  dropUnitFactors(rule);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Layout layout = layoutOf(operand);
    if (layout.kind != Layout::Split || i >= rule.operands.size() ||
        layout.dim >= rule.operands[i].size() ||
        rule.operands[i][layout.dim].empty())
      continue;
    unsigned factor = rule.operands[i][layout.dim].front();
    int64_t unit = *unitOf(rule, rule.operands[i][layout.dim], factor);
    if (rule.factors[factor].kind == het::FactorKind::Blocked ||
        llvm::any_of(layout.parts, [&](const Part &p) {
          return p.begin % unit || p.size % unit;
        }))
      continue;
    // The parts in units of the factor.
    SmallVector<Part> parts =
        llvm::map_to_vector(layout.parts, [&](const Part &p) {
          return Part{p.begin / unit, p.size / unit};
        });
    auto layoutFor =
        [&](const het::TensorFactors &tensor) -> std::optional<Layout> {
      for (auto [dim, factors] : llvm::enumerate(tensor)) {
        if (std::optional<int64_t> scale = unitOf(rule, factors, factor))
          return Layout::split(dim, scaleParts(parts, *scale), layout.isSum);
        if (llvm::is_contained(factors, factor))
          return std::nullopt; // not the first factor: its parts are no ranges
      }
      return Layout();
    };
    SmallVector<Layout> wanted, results;
    bool possible = true;
    for (const het::TensorFactors &tensor : rule.operands) {
      std::optional<Layout> each = layoutFor(tensor);
      possible &= each.has_value();
      wanted.push_back(each.value_or(Layout()));
    }
    for (const het::TensorFactors &tensor : rule.results) {
      std::optional<Layout> each = layoutFor(tensor);
      possible &= each.has_value();
      Layout result = each.value_or(Layout());
      results.push_back(result.kind == Layout::Whole ? Layout::sum() : result);
    }
    if (!possible)
      continue;
    // Copies in an overlap may not be summed over twice.
    bool sums = llvm::any_of(
        results, [](const Layout &l) { return l.kind == Layout::Sum; });
    if (sums && !layout.isSum && haveOverlap(parts))
      continue;

    SmallVector<Locals> operands;
    for (auto [value, each] : llvm::zip_equal(op->getOperands(), wanted)) {
      // An overlap's copies serve where its sums are asked for: one of the
      // factors of a product is a sum, the other whole.
      Layout asked = each;
      if (each.kind == Layout::Split && layoutOf(value).kind == Layout::Split &&
          layoutOf(value).dim == each.dim &&
          layoutOf(value).parts == each.parts)
        asked = layoutOf(value);
      else if (each.kind == Layout::Split && value != operand)
        asked.isSum = false;
      operands.push_back(convert(value, asked, op));
    }
    SmallVector<Operation *> clones;
    for (unsigned rank = 0; rank < size(); ++rank)
      clones.push_back(cloneLocal(
          op, rank,
          llvm::map_to_vector(operands, [&](Locals &l) { return l[rank]; }),
          results));
    setResults(op, clones, results);
    return success();
  }
  expandWhole(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

/// Heads of a stage's ranks: queries, and the keys that they read.
struct HeadParts {
  SmallVector<Part> query, keyValue;
};

/// The local map from query heads to key/value heads, and where dropout's
/// elements lie in all heads'.
template <typename OpT>
void setLocalHeads(OpT op, const HeadParts &heads, unsigned rank,
                   RankedTensorType query, RankedTensorType key) {
  const Part &part = heads.query[rank];
  SmallVector<int64_t> map(op.getKvHeads().slice(part.begin, part.size));
  for (int64_t &head : map)
    head -= heads.keyValue[rank].begin;
  op.setKvHeads(map);
  if (op.getDropoutP()) {
    op.setOffsets(SmallVector<int64_t>{0, part.begin, 0, 0});
    op.setGlobalShape(
        SmallVector<int64_t>{query.getDimSize(0), query.getDimSize(1),
                             query.getDimSize(2), key.getDimSize(2)});
  }
}

/// A mask with a dim of heads is divided like them.
Layout maskLayout(Value mask, int64_t heads, const HeadParts &parts) {
  auto type = typeOf(mask);
  if (type.getRank() < 3 || type.getDimSize(type.getRank() - 3) != heads ||
      heads == 1)
    return Layout();
  return Layout::split(type.getRank() - 3, parts.query);
}

} // namespace

LogicalResult StageSharder::expandAttention(het::AttentionOp op) {
  const Layout &query = layoutOf(op.getQuery());
  if (query.kind != Layout::Split || query.dim != 1) {
    expandWhole(op);
    return success();
  }
  HeadParts heads{query.parts, keyValueParts(query.parts, op.getKvHeads())};
  Layout byQuery = Layout::split(1, heads.query),
         byKey = Layout::split(1, heads.keyValue);
  SmallVector<Locals> operands = {convert(op.getQuery(), byQuery, op),
                                  convert(op.getKey(), byKey, op),
                                  convert(op.getValue(), byKey, op)};
  if (op.getMask())
    operands.push_back(convert(
        op.getMask(),
        maskLayout(op.getMask(), typeOf(op.getQuery()).getDimSize(1), heads),
        op));
  SmallVector<Layout> results = {byQuery, byQuery};
  SmallVector<Operation *> clones;
  for (unsigned rank = 0; rank < size(); ++rank) {
    clones.push_back(cloneLocal(
        op, rank,
        llvm::map_to_vector(operands, [&](Locals &l) { return l[rank]; }),
        results));
    setLocalHeads(cast<het::AttentionOp>(clones.back()), heads, rank,
                  typeOf(op.getQuery()), typeOf(op.getKey()));
  }
  setResults(op, clones, results);
  return success();
}

LogicalResult
StageSharder::expandAttentionBackward(het::AttentionBackwardOp op) {
  const Layout &query = layoutOf(op.getQuery());
  if (query.kind != Layout::Split || query.dim != 1) {
    expandWhole(op);
    return success();
  }
  HeadParts heads{query.parts, keyValueParts(query.parts, op.getKvHeads())};
  Layout byQuery = Layout::split(1, heads.query),
         byKey = Layout::split(1, heads.keyValue);
  SmallVector<Locals> operands;
  for (auto [value, layout] :
       {std::pair<Value, Layout &>{op.getQuery(), byQuery},
        {op.getKey(), byKey},
        {op.getValue(), byKey},
        {op.getResult(), byQuery},
        {op.getLogSumExp(), byQuery},
        {op.getGradient(), byQuery}})
    operands.push_back(convert(value, layout, op));
  if (op.getMask())
    operands.push_back(convert(
        op.getMask(),
        maskLayout(op.getMask(), typeOf(op.getQuery()).getDimSize(1), heads),
        op));
  // Ranks that read one key head each have a part of its gradient.
  Layout keyGradient =
      Layout::split(1, heads.keyValue, haveOverlap(heads.keyValue));
  SmallVector<Layout> results = {byQuery, keyGradient, keyGradient};
  SmallVector<Operation *> clones;
  for (unsigned rank = 0; rank < size(); ++rank) {
    clones.push_back(cloneLocal(
        op, rank,
        llvm::map_to_vector(operands, [&](Locals &l) { return l[rank]; }),
        results));
    setLocalHeads(cast<het::AttentionBackwardOp>(clones.back()), heads, rank,
                  typeOf(op.getQuery()), typeOf(op.getKey()));
  }
  setResults(op, clones, results);
  return success();
}

//===----------------------------------------------------------------------===//
// Vocabulary
//===----------------------------------------------------------------------===//

/// Each rank has some classes. It finds the log of its sum of exponentials and
/// the label's logit (0 where another rank has it); both are exchanged, one
/// number a label, and every rank ends with the same loss.
void StageSharder::expandCrossEntropy(het::CrossEntropyOp op,
                                      const Layout &logits) {
  Locals localLogits = locals[op.getLogits()];
  Locals labels = convert(op.getLabels(), Layout(), op);
  int64_t last = typeOf(op.getLogits()).getRank() - 1;
  Location loc = op.getLoc();
  Locals logSums, picked;
  auto scalar = [&](OpBuilder &b, Type element, double value) {
    return mark(het::createSplat(b, loc, RankedTensorType::get({}, element),
                                 value)
                    .getDefiningOp<het::ConstantOp>(),
                op)
        .getResult();
  };
  for (unsigned rank = 0; rank < size(); ++rank) {
    OpBuilder &b = builders[rank];
    Value x = localLogits[rank];
    Type index = typeOf(labels[rank]).getElementType();
    // max + log sum exp(x - max), row by row
    Value top = mark(het::ReduceOp::create(b, loc, het::ReduceKind::max, x,
                                           ArrayRef<int64_t>{last}, true),
                     op);
    Value shifted = mark(het::SubOp::create(b, loc, x, top), op);
    Value e = mark(het::ExpOp::create(b, loc, shifted), op);
    Value sum = mark(het::ReduceOp::create(b, loc, het::ReduceKind::sum, e,
                                           ArrayRef<int64_t>{last}, true),
                     op);
    Value logSum = mark(het::LogOp::create(b, loc, sum), op);
    logSums.push_back(mark(het::AddOp::create(b, loc, logSum, top), op));
    // the label's logit, if its class is here
    const Part &part = logits.parts[rank];
    Value classes =
        mark(het::IotaOp::create(b, loc, part.begin, 1, part.size, index), op);
    SmallVector<int64_t> column(typeOf(labels[rank]).getShape());
    column.push_back(1);
    Value label =
        mark(het::ReshapeOp::create(b, loc, labels[rank], column), op);
    Value is = mark(het::CompareOp::create(b, loc, het::ComparePredicate::eq,
                                           label, classes),
                    op);
    Value only =
        mark(het::SelectOp::create(b, loc, is, x,
                                   scalar(b, typeOf(x).getElementType(), 0)),
             op);
    picked.push_back(
        mark(het::ReduceOp::create(b, loc, het::ReduceKind::sum, only,
                                   ArrayRef<int64_t>{last}, true),
             op));
  }
  SmallVector<Locals> allSums = exchange(logSums, op),
                      allPicked = exchange(picked, op);
  Locals losses, rows;
  for (unsigned rank = 0; rank < size(); ++rank) {
    OpBuilder &b = builders[rank];
    Value top = allSums[rank].front(), label = allPicked[rank].front();
    for (unsigned from = 1; from < size(); ++from) {
      top = mark(het::MaxOp::create(b, loc, top, allSums[rank][from]), op);
      label =
          mark(het::AddOp::create(b, loc, label, allPicked[rank][from]), op);
    }
    Value sum;
    for (Value part : allSums[rank]) {
      Value e =
          mark(het::ExpOp::create(
                   b, loc, mark(het::SubOp::create(b, loc, part, top), op)),
               op);
      sum = sum ? mark(het::AddOp::create(b, loc, sum, e), op).getResult() : e;
    }
    Value logSum =
        mark(het::AddOp::create(b, loc,
                                mark(het::LogOp::create(b, loc, sum), op), top),
             op);
    Value row = mark(het::SubOp::create(b, loc, logSum, label), op);
    ArrayRef<int64_t> shape = typeOf(op.getLogSumExp()).getShape();
    logSum = mark(het::ReshapeOp::create(b, loc, logSum, shape), op);
    row = mark(het::ReshapeOp::create(b, loc, row, shape), op);
    Type index = typeOf(labels[rank]).getElementType();
    Value counts =
        mark(het::CompareOp::create(
                 b, loc, het::ComparePredicate::ne, labels[rank],
                 scalar(b, index, double(int64_t(op.getIgnoreIndex())))),
             op);
    Value counted =
        mark(het::SelectOp::create(b, loc, counts, row,
                                   scalar(b, typeOf(row).getElementType(), 0)),
             op);
    SmallVector<int64_t> dims =
        llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
    losses.push_back(mark(het::ReduceOp::create(b, loc, het::ReduceKind::sum,
                                                counted, dims, false),
                          op));
    rows.push_back(logSum);
  }
  locals[op.getLossSum()] = losses;
  locals[op.getLogSumExp()] = rows;
}

/// The rows that each rank holds get their gradient there.
void StageSharder::expandEmbeddingBackward(het::EmbeddingBackwardOp op,
                                           const Layout &rows) {
  Locals ids = convert(op.getIds(), Layout(), op),
         gradient = convert(op.getGradient(), Layout(), op);
  SmallVector<Operation *> clones;
  for (unsigned rank = 0; rank < size(); ++rank) {
    auto local = cast<het::EmbeddingBackwardOp>(
        cloneLocal(op, rank, {ids[rank], gradient[rank]}, {rows}));
    local.setRows(rows.parts[rank].size);
    local.setFirstRow(rows.parts[rank].begin);
    clones.push_back(local);
  }
  setResults(op, clones, {rows});
}

//===----------------------------------------------------------------------===//
// What crosses the stage's border
//===----------------------------------------------------------------------===//

/// A whole gradient is on every rank and counts once, at the first; parts of a
/// sum count on every rank, boxes where they are.
void StageSharder::expandGradient(het::GradientOp op) {
  const Layout &layout = layoutOf(op.getValue());
  auto whole = typeOf(op.getValue());
  for (unsigned rank = 0; rank < (layout.kind == Layout::Whole ? 1 : size());
       ++rank) {
    auto copy = cast<het::GradientOp>(builders[rank].clone(*op));
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
  Locals values = convert(op.getValue(), Layout(), op);
  const SmallVector<int64_t> &readers =
      allRanks.find({info.getReplica(), op.getPeer()})->second;
  for (auto [j, reader] : llvm::enumerate(readers)) {
    unsigned from = j % size();
    mark(dist::SendOp::create(builders[from], op.getLoc(), values[from], reader,
                              op.getChannel(), false),
         op);
  }
}

void StageSharder::expandRecv(dist::RecvOp op) {
  const SmallVector<int64_t> &senders =
      allRanks.find({info.getReplica(), op.getPeer()})->second;
  Locals values;
  for (unsigned rank = 0; rank < size(); ++rank)
    values.push_back(
        mark(dist::RecvOp::create(builders[rank], op.getLoc(), op.getType(),
                                  senders[rank % senders.size()],
                                  op.getChannel(), false),
             op));
  locals[op.getResult()] = values;
}

/// The loss and whole outputs come from the first rank, divided outputs from
/// all.
void StageSharder::expandReturn(func::ReturnOp op) {
  Builder attributes(stage->getContext());
  SmallVector<Layout> result;
  for (Value value : op.getOperands()) {
    // Sums and parts of sums have no one place.
    bool divided = layoutOf(value).kind == Layout::Split &&
                   !haveOverlap(layoutOf(value).parts);
    result.push_back(divided ? layoutOf(value) : Layout());
    if (!divided)
      (void)convert(value, Layout(), op);
  }
  for (unsigned rank = 0; rank < size(); ++rank) {
    SmallVector<Value> values;
    SmallVector<DictionaryAttr> names;
    for (auto [i, value] : llvm::enumerate(op.getOperands())) {
      const Layout &layout = result[i];
      if (layout.kind == Layout::Whole && rank > 0)
        continue;
      values.push_back(convert(value, layout, op)[rank]);
      NamedAttrList about(stage.getResultAttrDict(i));
      if (layout.kind == Layout::Split) {
        SmallVector<int64_t> offsets(typeOf(value).getRank(), 0);
        offsets[layout.dim] = layout.parts[rank].begin;
        about.set("dist.offsets", attributes.getDenseI64ArrayAttr(offsets));
        about.set("dist.global_shape",
                  attributes.getDenseI64ArrayAttr(typeOf(value).getShape()));
      }
      names.push_back(about.getDictionary(stage->getContext()));
    }
    func::ReturnOp::create(builders[rank], op.getLoc(), values);
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

LogicalResult StageSharder::expand(Operation *op) {
  if (size() > 1) {
    if (auto parameter = dyn_cast<het::ParameterOp>(op)) {
      expandWhole(op);
      Layout seeded = seeds.lookup(parameter.getName(), parameter.getOffsets());
      if (seeded.kind == Layout::Split) {
        Locals parts = convert(parameter, seeded, op);
        locals[parameter] = parts;
        layouts[parameter] = seeded;
      }
      return success();
    }
    if (auto attention = dyn_cast<het::AttentionOp>(op))
      return expandAttention(attention);
    if (auto attention = dyn_cast<het::AttentionBackwardOp>(op))
      return expandAttentionBackward(attention);
    if (auto loss = dyn_cast<het::CrossEntropyOp>(op)) {
      Layout logits = layoutOf(loss.getLogits());
      if (logits.kind == Layout::Split &&
          logits.dim + 1 == unsigned(typeOf(loss.getLogits()).getRank())) {
        expandCrossEntropy(loss, logits);
        return success();
      }
    }
    if (auto backward = dyn_cast<het::EmbeddingBackwardOp>(op);
        backward && backward->hasOneUse())
      if (auto gradient = dyn_cast<het::GradientOp>(*backward->user_begin())) {
        Layout rows = seeds.lookup(gradient.getName(), gradient.getOffsets());
        if (rows.kind == Layout::Split && rows.dim == 0) {
          expandEmbeddingBackward(backward, rows);
          return success();
        }
      }
    if (auto embedding = dyn_cast<het::EmbeddingOp>(op)) {
      Layout table = layoutOf(embedding.getTable());
      if (table.kind == Layout::Split && table.dim == 0) {
        Locals ids = convert(embedding.getIds(), Layout(), op);
        SmallVector<Operation *> clones;
        for (unsigned rank = 0; rank < size(); ++rank) {
          clones.push_back(cloneLocal(
              op, rank, {locals[embedding.getTable()][rank], ids[rank]},
              {Layout::sum()}));
          cast<het::EmbeddingOp>(clones.back())
              .setFirstRow(table.parts[rank].begin);
        }
        setResults(op, clones, {Layout::sum()});
        return success();
      }
    }
  }
  if (auto gradient = dyn_cast<het::GradientOp>(op)) {
    expandGradient(gradient);
    return success();
  }
  if (auto send = dyn_cast<dist::SendOp>(op)) {
    expandSend(send);
    return success();
  }
  if (auto recv = dyn_cast<dist::RecvOp>(op)) {
    expandRecv(recv);
    return success();
  }
  if (auto returned = dyn_cast<func::ReturnOp>(op)) {
    expandReturn(returned);
    return success();
  }
  return expandByRule(op);
}

//===- HetShards.cpp - het ops on a group of ranks --------------------------===//
//
// Ops follow their operands. What follows from a sharding rule comes first;
// then what ops do beyond it: attributes that spell out a shape or a place,
// heads that share keys, the softmax over divided classes.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

SmallVector<Part> autohet::het::consecutiveParts(ArrayRef<int64_t> sizes) {
  SmallVector<Part> parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    parts.push_back({begin, size});
    begin += size;
  }
  return parts;
}

SmallVector<Part> autohet::het::scaleParts(ArrayRef<Part> parts, int64_t unit) {
  return llvm::map_to_vector(parts, [&](const Part &part) {
    return Part{part.begin * unit, part.size * unit};
  });
}

SmallVector<Part> autohet::het::keyValueParts(ArrayRef<Part> queryHeads,
                                              ArrayRef<int64_t> kvHeads) {
  return llvm::map_to_vector(queryHeads, [&](const Part &part) {
    ArrayRef<int64_t> read = kvHeads.slice(part.begin, part.size);
    int64_t first = *llvm::min_element(read), last = *llvm::max_element(read);
    return Part{first, last + 1 - first};
  });
}

bool autohet::het::haveOverlap(ArrayRef<Part> parts) {
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = i + 1; j < parts.size(); ++j)
      if (parts[i].begin < parts[j].begin + parts[j].size &&
          parts[j].begin < parts[i].begin + parts[i].size)
        return true;
  return false;
}

//===----------------------------------------------------------------------===//
// By rule
//===----------------------------------------------------------------------===//

/// Whether factor `f` is the first, and so the divided, one of a dim; its unit
/// is the number of elements that one index of it stands for.
static std::optional<int64_t> unitOf(const ShardingRule &rule,
                                     const DimFactors &dim, unsigned f) {
  if (dim.empty() || dim.front() != f)
    return std::nullopt;
  int64_t unit = 1;
  for (unsigned minor : ArrayRef<unsigned>(dim).drop_front())
    unit *= rule.factors[minor].size;
  return unit;
}

/// Factors of extent 1 divide nothing and stand in the way of those behind
/// them.
static void dropUnitFactors(ShardingRule &rule) {
  auto drop = [&](SmallVectorImpl<TensorFactors> &tensors) {
    for (TensorFactors &tensor : tensors)
      for (DimFactors &dim : tensor)
        llvm::erase_if(dim,
                       [&](unsigned f) { return rule.factors[f].size == 1; });
  };
  drop(rule.operands);
  drop(rule.results);
}

namespace {

/// A factor, divided, and the ranks' parts of it in its own units.
struct DividedFactor {
  unsigned factor;
  SmallVector<Part> parts;
};

} // namespace

/// The factor that a layout of a tensor divides, where an op may be divided
/// along it.
static std::optional<DividedFactor> dividedFactor(const ShardingRule &rule,
                                                  const TensorFactors &tensor,
                                                  const Layout &layout) {
  if (layout.kind != Layout::Split || layout.dim >= tensor.size() ||
      tensor[layout.dim].empty())
    return std::nullopt;
  unsigned factor = tensor[layout.dim].front();
  int64_t unit = *unitOf(rule, tensor[layout.dim], factor);
  bool cutsUnits = llvm::any_of(layout.parts, [&](const Part &p) {
    return p.begin % unit || p.size % unit;
  });
  if (rule.factors[factor].kind == FactorKind::Blocked || cutsUnits)
    return std::nullopt;
  return DividedFactor{factor,
                       llvm::map_to_vector(layout.parts, [&](const Part &p) {
                         return Part{p.begin / unit, p.size / unit};
                       })};
}

/// How a tensor lies where a factor is divided: along the dim that the factor
/// leads, else whole. Nothing where it lies within a dim, whose parts then are
/// no ranges.
static std::optional<Layout> layoutAlong(const ShardingRule &rule,
                                         const TensorFactors &tensor,
                                         const DividedFactor &divided,
                                         bool isSum) {
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    if (std::optional<int64_t> unit = unitOf(rule, factors, divided.factor))
      return Layout::split(dim, scaleParts(divided.parts, *unit), isSum);
    if (llvm::is_contained(factors, divided.factor))
      return std::nullopt;
  }
  return Layout();
}

static std::optional<ShardLayouts> chooseAlong(const ShardingRule &rule,
                                               const DividedFactor &divided,
                                               bool isSum) {
  ShardLayouts chosen;
  for (const TensorFactors &tensor : rule.operands) {
    std::optional<Layout> layout = layoutAlong(rule, tensor, divided, isSum);
    if (!layout)
      return std::nullopt;
    chosen.operands.push_back(*layout);
  }
  bool sums = false;
  for (const TensorFactors &tensor : rule.results) {
    std::optional<Layout> layout = layoutAlong(rule, tensor, divided, isSum);
    if (!layout)
      return std::nullopt;
    sums |= layout->kind == Layout::Whole;
    chosen.results.push_back(layout->kind == Layout::Whole ? Layout::sum()
                                                           : *layout);
  }
  // Copies in an overlap may not be summed over twice.
  if (sums && !isSum && haveOverlap(divided.parts))
    return std::nullopt;
  return chosen;
}

/// Sums in all operands that the op is linear in.
static std::optional<ShardLayouts>
chooseSums(Operation *op, const ShardingRule &rule, ArrayRef<Layout> operands) {
  if (rule.linear.empty() || llvm::any_of(rule.linear, [&](unsigned i) {
        return operands[i].kind != Layout::Sum;
      }))
    return std::nullopt;
  ShardLayouts chosen;
  chosen.operands.resize(op->getNumOperands());
  for (unsigned i : rule.linear)
    chosen.operands[i] = Layout::sum();
  chosen.results.assign(op->getNumResults(), Layout::sum());
  return chosen;
}

std::optional<ShardLayouts>
autohet::het::chooseShardsByRule(Operation *op, ArrayRef<Layout> operands,
                                 ArrayRef<Layout> wanted) {
  ShardingRule rule = cast<ShardableOpInterface>(op).getShardingRule();
  dropUnitFactors(rule);

  // What is asked of a result, where no operand has a say.
  for (auto [tensor, layout] : llvm::zip_equal(rule.results, wanted)) {
    std::optional<DividedFactor> divided = dividedFactor(rule, tensor, layout);
    if (!divided)
      continue;
    std::optional<ShardLayouts> chosen = chooseAlong(rule, *divided, false);
    if (chosen && llvm::all_of(chosen->operands, [](const Layout &l) {
          return l.kind == Layout::Whole;
        }))
      return chosen;
  }
  if (std::optional<ShardLayouts> sums = chooseSums(op, rule, operands))
    return sums;
  for (unsigned i = 0; i < operands.size(); ++i) {
    std::optional<DividedFactor> divided =
        dividedFactor(rule, rule.operands[i], operands[i]);
    if (!divided)
      continue;
    std::optional<ShardLayouts> chosen =
        chooseAlong(rule, *divided, operands[i].isSum);
    if (!chosen)
      continue;
    // An overlap's copies serve where its sums are asked for: one of the
    // factors of a product is a sum, the other whole.
    for (auto [j, layout] : llvm::enumerate(chosen->operands)) {
      if (layout.kind != Layout::Split)
        continue;
      if (operands[j].isSplitAlong(layout.dim) &&
          operands[j].parts == layout.parts)
        layout = operands[j];
      else if (op->getOperand(j) != op->getOperand(i))
        layout.isSum = false;
    }
    return chosen;
  }
  return std::nullopt;
}

SmallVector<RankValues> autohet::het::cloneShards(Operation *op,
                                                  ShardBuilder &builder,
                                                  ArrayRef<RankValues> operands,
                                                  const ShardLayouts &layouts) {
  SmallVector<RankValues> results(op->getNumResults());
  for (unsigned rank = 0; rank < builder.getNumRanks(); ++rank) {
    Operation *copy = builder.on(rank).clone(*op);
    copy->setOperands(llvm::map_to_vector(
        operands, [&](const RankValues &values) { return values[rank]; }));
    for (auto [result, layout] :
         llvm::zip_equal(copy->getResults(), layouts.results))
      if (layout.kind == Layout::Split) {
        auto type = typeOf(result);
        SmallVector<int64_t> shape(type.getShape());
        shape[layout.dim] = layout.parts[rank].size;
        result.setType(RankedTensorType::get(shape, type.getElementType()));
      }
    if (auto shardable = dyn_cast<ShardableOpInterface>(copy))
      shardable.becomeShard(op, layouts, rank);
    for (auto [values, result] : llvm::zip_equal(results, copy->getResults()))
      values.push_back(result);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Attributes that spell out a shape or a place
//===----------------------------------------------------------------------===//

void ReshapeOp::becomeShard(Operation *, const ShardLayouts &, unsigned) {
  setShape(typeOf(getResult()).getShape());
}
void BroadcastOp::becomeShard(Operation *, const ShardLayouts &, unsigned) {
  setShape(typeOf(getResult()).getShape());
}
void SliceOp::becomeShard(Operation *, const ShardLayouts &, unsigned) {
  setSizes(typeOf(getResult()).getShape());
}
void SliceBackwardOp::becomeShard(Operation *, const ShardLayouts &, unsigned) {
  setShape(typeOf(getResult()).getShape());
}

/// Its mask goes by global index.
void DropoutOp::becomeShard(Operation *whole, const ShardLayouts &layouts,
                            unsigned rank) {
  const Layout &layout = layouts.results.front();
  if (layout.kind != Layout::Split)
    return;
  auto type = typeOf(whole->getResult(0));
  SmallVector<int64_t> offsets(type.getRank(), 0);
  offsets[layout.dim] = layout.parts[rank].begin;
  setOffsets(offsets);
  setGlobalShape(type.getShape());
}

void EmbeddingOp::becomeShard(Operation *whole, const ShardLayouts &layouts,
                              unsigned rank) {
  const Layout &table = layouts.operands.front();
  if (!table.isSplitAlong(0))
    return;
  setFirstRow(table.parts[rank].begin);
  setAllRows(typeOf(cast<EmbeddingOp>(whole).getTable()).getDimSize(0));
}
void EmbeddingBackwardOp::becomeShard(Operation *, const ShardLayouts &layouts,
                                      unsigned rank) {
  if (const Layout &table = layouts.results.front(); table.isSplitAlong(0)) {
    setRows(table.parts[rank].size);
    setFirstRow(table.parts[rank].begin);
  }
}

void CrossEntropyBackwardOp::becomeShard(Operation *,
                                         const ShardLayouts &layouts,
                                         unsigned rank) {
  const Layout &logits = layouts.operands.front();
  if (logits.isSplitAlong(typeOf(getLogits()).getRank() - 1))
    setFirstClass(logits.parts[rank].begin);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

/// How attention and its adjoint lie where query heads are divided: by query
/// heads, or by the key/value heads that those read.
struct HeadLayouts {
  Layout query, keyValue, mask;
};

} // namespace

/// Nothing where the query is not divided by heads.
template <typename OpT>
static std::optional<HeadLayouts> layoutHeads(OpT op, const Layout &query) {
  if (!query.isSplitAlong(1))
    return std::nullopt;
  HeadLayouts layouts{
      Layout::split(1, query.parts),
      Layout::split(1, keyValueParts(query.parts, op.getKvHeads())), Layout()};
  if (!op.getMask())
    return layouts;
  // A mask with a dim of heads is divided like them.
  auto mask = typeOf(op.getMask());
  int64_t heads = typeOf(op.getQuery()).getDimSize(1), dim = mask.getRank() - 3;
  if (dim >= 0 && heads != 1 && mask.getDimSize(dim) == heads)
    layouts.mask = Layout::split(dim, query.parts);
  return layouts;
}

/// The local map from query heads to key/value heads, and where dropout's
/// elements lie in all heads'.
template <typename OpT>
static void setLocalHeads(OpT op, OpT whole, const ShardLayouts &layouts,
                          unsigned rank) {
  const Layout &query = layouts.operands[0], &key = layouts.operands[1];
  if (!query.isSplitAlong(1))
    return;
  const Part &heads = query.parts[rank];
  SmallVector<int64_t> map(whole.getKvHeads().slice(heads.begin, heads.size));
  for (int64_t &head : map)
    head -= key.parts[rank].begin;
  op.setKvHeads(map);
  if (!op.getDropoutP())
    return;
  ArrayRef<int64_t> shape = typeOf(whole.getQuery()).getShape();
  op.setOffsets(SmallVector<int64_t>{0, heads.begin, 0, 0});
  op.setGlobalShape(SmallVector<int64_t>{shape[0], shape[1], shape[2],
                                         typeOf(whole.getKey()).getDimSize(2)});
}

std::optional<ShardLayouts> AttentionOp::chooseShards(ArrayRef<Layout> operands,
                                                      ArrayRef<Layout>) {
  std::optional<HeadLayouts> heads = layoutHeads(*this, operands.front());
  if (!heads)
    return std::nullopt;
  ShardLayouts chosen{{heads->query, heads->keyValue, heads->keyValue},
                      {heads->query, heads->query}};
  if (getMask())
    chosen.operands.push_back(heads->mask);
  return chosen;
}
void AttentionOp::becomeShard(Operation *whole, const ShardLayouts &layouts,
                              unsigned rank) {
  setLocalHeads(*this, cast<AttentionOp>(whole), layouts, rank);
}

std::optional<ShardLayouts>
AttentionBackwardOp::chooseShards(ArrayRef<Layout> operands, ArrayRef<Layout>) {
  std::optional<HeadLayouts> heads = layoutHeads(*this, operands.front());
  if (!heads)
    return std::nullopt;
  // Ranks that read one key head each have a part of its gradient.
  Layout keyGradient = heads->keyValue;
  keyGradient.isSum = haveOverlap(keyGradient.parts);
  ShardLayouts chosen{{heads->query, heads->keyValue, heads->keyValue,
                       heads->query, heads->query, heads->query},
                      {heads->query, keyGradient, keyGradient}};
  if (getMask())
    chosen.operands.push_back(heads->mask);
  return chosen;
}
void AttentionBackwardOp::becomeShard(Operation *whole,
                                      const ShardLayouts &layouts,
                                      unsigned rank) {
  setLocalHeads(*this, cast<AttentionBackwardOp>(whole), layouts, rank);
}

//===----------------------------------------------------------------------===//
// The loss over divided classes
//===----------------------------------------------------------------------===//

static Value createScalar(OpBuilder &b, Location loc, Type element,
                          double value) {
  return createSplat(b, loc, RankedTensorType::get({}, element), value);
}

std::optional<ShardLayouts>
CrossEntropyOp::chooseShards(ArrayRef<Layout> operands,
                             ArrayRef<Layout> wanted) {
  if (operands[0].isSplitAlong(typeOf(getLogits()).getRank() - 1))
    return ShardLayouts{{operands[0], Layout()}, {Layout(), Layout()}};
  return chooseShardsByRule(*this, operands, wanted);
}

/// Each rank has some classes. It finds the log of its sum of exponentials and
/// the label's logit (0 where another rank has it); both are exchanged, one
/// number a label, and every rank ends with the same loss.
SmallVector<RankValues>
CrossEntropyOp::buildShards(ShardBuilder &builder,
                            ArrayRef<RankValues> operands,
                            const ShardLayouts &layouts) {
  const Layout &classes = layouts.operands[0];
  int64_t last = typeOf(getLogits()).getRank() - 1;
  if (!classes.isSplitAlong(last))
    return cloneShards(*this, builder, operands, layouts);
  const RankValues &logits = operands[0], &labels = operands[1];
  Location loc = getLoc();
  Type index = typeOf(getLabels()).getElementType(),
       element = typeOf(getLogits()).getElementType();
  unsigned ranks = builder.getNumRanks();

  RankValues logSums, picked;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    auto part = CrossEntropyPartOp::create(
        builder.on(rank), loc, logits[rank], labels[rank],
        classes.parts[rank].begin, typeOf(getLogits()).getDimSize(last),
        getIgnoreIndex());
    logSums.push_back(part.getLogSumExp());
    picked.push_back(part.getLabelLogit());
  }
  SmallVector<RankValues> allSums = builder.exchange(logSums),
                          allPicked = builder.exchange(picked);

  RankValues losses, logSumExps;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    OpBuilder &b = builder.on(rank);
    Value top = allSums[rank].front(), label = allPicked[rank].front();
    for (unsigned from = 1; from < ranks; ++from) {
      top = MaxOp::create(b, loc, top, allSums[rank][from]);
      label = AddOp::create(b, loc, label, allPicked[rank][from]);
    }
    Value sum;
    for (Value part : allSums[rank]) {
      Value e = ExpOp::create(b, loc, SubOp::create(b, loc, part, top));
      sum = sum ? AddOp::create(b, loc, sum, e) : e;
    }
    Value logSum = AddOp::create(b, loc, LogOp::create(b, loc, sum), top);
    Value row = SubOp::create(b, loc, logSum, label);
    Value counts = CompareOp::create(
        b, loc, ComparePredicate::ne, labels[rank],
        createScalar(b, loc, index, double(int64_t(getIgnoreIndex()))));
    Value counted =
        SelectOp::create(b, loc, counts, row, createScalar(b, loc, element, 0));
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, last));
    losses.push_back(ReduceOp::create(b, loc, ReduceKind::sum, counted,
                                      ArrayRef<int64_t>(dims), false));
    logSumExps.push_back(logSum);
  }
  return {losses, logSumExps};
}

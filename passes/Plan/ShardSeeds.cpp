//===- ShardSeeds.cpp - which parameters a stage divides --------------------===//
//
// Tensor parallelism needs few decisions: heads, hidden elements, vocabulary.
// They are made here, at parameters; ShardStages carries them through the
// stage by the ops' sharding rules, so that a product by columns is followed by
// one by rows and each pair costs one sum.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Plan/ShardSeeds.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Support/SplitExtent.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace autohet;
using het::Layout;
using het::Part;

/// The dims of a product's parameter that are not summed over.
static SmallVector<int64_t> outputDims(het::MatmulOp op) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < typeOf(op.getRhs()).getRank(); ++dim)
    if (!llvm::is_contained(op.getRhsContract(), dim) &&
        !llvm::is_contained(op.getRhsBatch(), dim))
      dims.push_back(dim);
  return dims;
}

ShardSeeds::ShardSeeds(Block &stage, ArrayRef<int64_t> weights)
    : weights(weights) {
  for (Operation &op : stage) {
    if (het::isBackward(&op))
      continue;
    if (auto attention = dyn_cast<het::AttentionOp>(op))
      seedAttention(attention);
    else if (auto product = dyn_cast<het::MatmulOp>(op))
      seedProductOfHeads(product);
    else if (isa<het::GeluOp, het::SiluOp, het::ReluOp>(op))
      seedActivation(&op);
    else if (auto embedding = dyn_cast<het::EmbeddingOp>(op))
      seedEmbedding(embedding);
    else if (auto loss = dyn_cast<het::CrossEntropyOp>(op))
      seedHead(loss);
  }
}

std::string ShardSeeds::key(StringRef name,
                            std::optional<ArrayRef<int64_t>> offsets) {
  std::string text = name.str();
  if (offsets)
    for (int64_t offset : *offsets)
      text += "@" + std::to_string(offset);
  return text;
}

Layout ShardSeeds::lookup(StringRef name,
                          std::optional<ArrayRef<int64_t>> offsets) const {
  return seeds.lookup(key(name, offsets)).layout;
}

int64_t ShardSeeds::extentOf(StringRef name,
                             std::optional<ArrayRef<int64_t>> offsets) const {
  return seeds.lookup(key(name, offsets)).extent;
}

het::MatmulOp ShardSeeds::findProjection(Value value, unsigned outputs,
                                         bool isOfHeads) {
  auto isSide = [](Value v) {
    return isa_and_nonnull<het::ParameterOp, het::ConstantOp>(
        v.getDefiningOp());
  };
  while (Operation *op = value.getDefiningOp()) {
    if (auto product = dyn_cast<het::MatmulOp>(op))
      return product.getRhs().getDefiningOp<het::ParameterOp>() &&
                     outputDims(product).size() <= outputs
                 ? product
                 : nullptr;
    if (isa<het::ReshapeOp, het::TransposeOp, het::RotaryOp>(op) ||
        (isOfHeads &&
         isa<het::SliceOp, het::ConcatOp, het::RmsNormOp, het::LayerNormOp>(
             op))) {
      value = op->getOperand(0);
      continue;
    }
    // A bias or a scale: the side that is not a parameter or a constant.
    if (isa<het::AddOp, het::MulOp>(op)) {
      if (isSide(op->getOperand(1)))
        value = op->getOperand(0);
      else if (isSide(op->getOperand(0)))
        value = op->getOperand(1);
      else
        return nullptr;
      continue;
    }
    // An expert's, of the tokens that chose it: all else is a constant.
    if (auto select = dyn_cast<het::SelectOp>(op);
        select && isSide(select.getRhs())) {
      value = select.getLhs();
      continue;
    }
    return nullptr;
  }
  return nullptr;
}

void ShardSeeds::seedOutput(het::MatmulOp projection, ArrayRef<Part> parts,
                            int64_t extent) {
  auto parameter = projection.getRhs().getDefiningOp<het::ParameterOp>();
  seeds.try_emplace(
      key(parameter.getName(), parameter.getOffsets()),
      Seed{Layout::split(outputDims(projection).front(), parts), extent});
}

/// No rank may stay without a head, a class, ...: such a stage computes whole.
static bool allHaveSome(ArrayRef<int64_t> sizes) {
  return llvm::all_of(sizes, [](int64_t size) { return size > 0; });
}

/// Of a value's projection, if it has one, the rows of each head: one weight
/// may have query, key and value, head by head.
void ShardSeeds::seedHeads(Value value, int64_t count, ArrayRef<Part> heads,
                           int64_t extent) {
  het::MatmulOp projection =
      findProjection(value, /*outputs=*/1, /*isOfHeads=*/true);
  if (!projection)
    return;
  int64_t rows =
      typeOf(projection.getRhs()).getDimSize(outputDims(projection).front());
  if (rows % count == 0)
    seedOutput(projection, het::scaleParts(heads, rows / count), extent);
}

void ShardSeeds::seedAttention(het::AttentionOp op) {
  auto headsOf = [](Value value) { return typeOf(value).getDimSize(1); };
  int64_t extent = headsOf(op.getQuery());
  SmallVector<int64_t> heads = splitExtent(extent, weights);
  if (!allHaveSome(heads))
    return;
  SmallVector<Part> queryHeads = het::consecutiveParts(heads);
  SmallVector<Part> kvHeads = het::keyValueParts(queryHeads, op.getKvHeads());
  for (auto [value, parts] : {std::pair(op.getQuery(), ArrayRef(queryHeads)),
                              std::pair(op.getKey(), ArrayRef(kvHeads)),
                              std::pair(op.getValue(), ArrayRef(kvHeads))})
    seedHeads(value, headsOf(value), parts, extent);
}

// Attention in other words, with a bias that is trained or a cap of its scores:
// products of what is computed, one for each sample and head.
void ShardSeeds::seedProductOfHeads(het::MatmulOp op) {
  if (op.getLhsBatch().size() != 2)
    return;
  for (auto [value, batch] : {std::pair(op.getLhs(), op.getLhsBatch()),
                              std::pair(op.getRhs(), op.getRhsBatch())}) {
    int64_t extent = typeOf(value).getDimSize(batch[1]);
    SmallVector<int64_t> heads = splitExtent(extent, weights);
    if (allHaveSome(heads))
      seedHeads(value, extent, het::consecutiveParts(heads), extent);
  }
}

/// Whether every reader of `value` leads, elementwise, to a product or out of
/// the stage: to gather what leaves costs less than to compute it everywhere.
static bool feedsProducts(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (het::isBackward(user))
      return true;
    if (isa<het::MatmulOp, dist::SendOp, func::ReturnOp>(user))
      return true;
    return isa<het::MulOp, het::DropoutOp>(user) &&
           feedsProducts(user->getResult(0));
  });
}

void ShardSeeds::seedActivation(Operation *op) {
  if (!feedsProducts(op->getResult(0)))
    return;
  // Experts have one weight for all, [experts, outputs, inputs]: whole experts
  // are divided, and their sum costs no more than that of a plain MLP.
  constexpr unsigned kExpertOutputs = 2;
  het::MatmulOp projection = findProjection(op->getOperand(0), kExpertOutputs);
  if (!projection)
    return;
  auto parameter = typeOf(projection.getRhs());
  int64_t extent = parameter.getDimSize(outputDims(projection).front());
  SmallVector<int64_t> sizes = splitExtent(extent, weights);
  if (!allHaveSome(sizes))
    return;
  seedOutput(projection, het::consecutiveParts(sizes), extent);
  // A gated MLP: the other factor is divided alike.
  for (Operation *user : op->getResult(0).getUsers())
    if (auto gate = dyn_cast<het::MulOp>(user);
        gate && !het::isBackward(user)) {
      Value other =
          gate.getLhs() == op->getResult(0) ? gate.getRhs() : gate.getLhs();
      if (het::MatmulOp up = findProjection(other, kExpertOutputs);
          up &&
          typeOf(up.getRhs()).getDimSize(outputDims(up).front()) == extent)
        seedOutput(up, het::consecutiveParts(sizes), extent);
    }
}

void ShardSeeds::seedEmbedding(het::EmbeddingOp op) {
  auto parameter = op.getTable().getDefiningOp<het::ParameterOp>();
  // Small tables (positions, kinds of token) cost less to hold than to sum.
  constexpr int64_t kRowsWorthDividing = 64;
  int64_t rows = typeOf(op.getTable()).getDimSize(0);
  SmallVector<int64_t> sizes = splitExtent(rows, weights);
  if (!parameter || !allHaveSome(sizes) || rows < kRowsWorthDividing)
    return;
  seeds.try_emplace(key(parameter.getName(), parameter.getOffsets()),
                    Seed{Layout::split(0, het::consecutiveParts(sizes)), rows});
}

void ShardSeeds::seedHead(het::CrossEntropyOp op) {
  het::MatmulOp projection = findProjection(op.getLogits());
  int64_t classes = typeOf(op.getLogits()).getShape().back();
  SmallVector<int64_t> sizes = splitExtent(classes, weights);
  if (projection && allHaveSome(sizes))
    seedOutput(projection, het::consecutiveParts(sizes), classes);
}

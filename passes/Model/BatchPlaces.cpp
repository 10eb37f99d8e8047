//===- BatchPlaces.cpp - where the batch lies in a value -------------------===//

#include "BatchPlaces.h"
#include "Match.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

SmallVector<int64_t> autohet::factorsOf(ReshapeOp reshape, int64_t dim) {
  ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
  int64_t begin = product(reshape.getShape().take_front(dim));
  int64_t end = begin * reshape.getShape()[dim];
  SmallVector<int64_t> factors;
  int64_t outer = 1; // extents before the dim of the operand at hand
  for (int64_t extent : from) {
    int64_t low = std::max(begin, outer);
    int64_t high = std::min(end, outer * extent);
    // A dim of 1 belongs to what follows it.
    bool within = extent == 1 ? low == outer && outer < end : low < high;
    outer *= extent;
    if (!within)
      continue;
    if (high % low != 0)
      return {};
    factors.push_back(high / low);
  }
  return product(factors) == reshape.getShape()[dim] ? factors
                                                     : SmallVector<int64_t>();
}

std::optional<int64_t> autohet::resultDim(Operation *op, unsigned operand,
                                          int64_t dim) {
  Value value = op->getOperand(operand);
  int64_t rank = typeOf(value).getRank();
  int64_t shift = typeOf(op->getResult(0)).getRank() - rank;
  using Result = std::optional<int64_t>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<SoftmaxOp, LayerNormOp, RmsNormOp, RotaryOp, AttentionOp, TopKOp>(
          [&](auto) { return operand == 0 ? Result(dim) : std::nullopt; })
      .Case([&](TransposeOp op) {
        const auto *at = llvm::find(op.getPermutation(), dim);
        return Result(at - op.getPermutation().begin());
      })
      .Case([&](ReduceOp op) -> Result {
        if (llvm::is_contained(op.getDims(), dim))
          return std::nullopt;
        return op.getKeep()
                   ? dim
                   : dim - llvm::count_if(op.getDims(),
                                          [&](int64_t d) { return d < dim; });
      })
      .Case([&](BroadcastOp) { return Result(dim + shift); })
      .Case<SliceOp, ConcatOp>([&](auto) { return Result(dim); })
      .Case([&](EmbeddingOp) { return operand == 1 ? Result(dim) : Result(); })
      .Case([&](GatherOp op) -> Result {
        int64_t along = op.getDim();
        if (operand == 1)
          return along + dim;
        if (dim == along)
          return std::nullopt;
        return dim < along ? dim : dim - 1 + typeOf(op.getIndices()).getRank();
      })
      .Case([&](GatherNdOp op) {
        return dim < int64_t(op.getBatchDims()) ? Result(dim) : Result();
      })
      .Case([&](MatmulOp op) -> Result {
        bool left = operand == 0;
        auto batch = left ? op.getLhsBatch() : op.getRhsBatch();
        auto contract = left ? op.getLhsContract() : op.getRhsContract();
        if (const auto *at = llvm::find(batch, dim); at != batch.end())
          return at - batch.begin();
        if (llvm::is_contained(contract, dim))
          return std::nullopt;
        // Batch dims, then what lhs keeps, then what rhs keeps.
        int64_t result = batch.size();
        if (!left)
          result = typeOf(op.getLhs()).getRank() - contract.size();
        for (int64_t d = 0; d < dim; ++d)
          result +=
              !llvm::is_contained(batch, d) && !llvm::is_contained(contract, d);
        return result;
      })
      .Default([&](Operation *op) {
        return isa<ElementwiseOpInterface, DropoutOp>(op) ? Result(dim + shift)
                                                          : Result();
      });
}

BatchPlaces::BatchPlaces(func::FuncOp function) {
  auto size = function->getAttrOfType<IntegerAttr>(kBatchSizeAttr);
  if (!size)
    return;
  batch = size.getInt();
  for (BlockArgument argument : function.getArguments()) {
    auto dim = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                      kBatchDimAttr);
    if (dim && dim.getInt() >= 0) // -1: the input has no samples
      add(argument, {dim.getInt(), 1, 1});
  }
  for (Operation &op : function.front().without_terminator())
    follow(&op);
}

void BatchPlaces::add(Value value, BatchPlace place) {
  if (auto &known = places[value]; !llvm::is_contained(known, place))
    known.push_back(place);
}

void BatchPlaces::follow(Operation *op) {
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return followReshape(reshape);
  for (OpOperand &operand : op->getOpOperands()) {
    auto known = places.find(operand.get());
    if (known == places.end())
      continue;
    // Adding to the map moves what it holds.
    for (BatchPlace place : SmallVector<BatchPlace, 1>(known->second)) {
      auto dim = resultDim(op, operand.getOperandNumber(), place.dim);
      if (!dim)
        continue;
      for (Value result : op->getResults())
        if (*dim < typeOf(result).getRank() &&
            typeOf(result).getDimSize(*dim) ==
                typeOf(operand.get()).getDimSize(place.dim))
          add(result, {*dim, place.outer, place.inner});
    }
  }
}

void BatchPlaces::followReshape(ReshapeOp op) {
  auto known = places.find(op.getOperand());
  if (known == places.end())
    return;
  ArrayRef<int64_t> from = typeOf(op.getOperand()).getShape();
  if (product(from) == 0) // nothing lies anywhere
    return;
  for (BatchPlace place : SmallVector<BatchPlace, 1>(known->second)) {
    int64_t before = product(from.take_front(place.dim)) * place.outer;
    int64_t outer = 1; // extents before the dim at hand
    for (auto [dim, extent] : llvm::enumerate(op.getShape())) {
      if (before % outer == 0 && extent % (before / outer * batch) == 0)
        add(op.getResult(),
            {int64_t(dim), before / outer, extent / (before / outer * batch)});
      outer *= extent;
    }
  }
}

std::optional<MergedBatch> BatchPlaces::getMerged(ReshapeOp reshape) const {
  auto known = places.find(reshape.getResult());
  if (known == places.end())
    return std::nullopt;
  // Of several places, one of its own is right; else the first of a group.
  const BatchPlace *chosen = nullptr;
  for (const BatchPlace &place : known->second) {
    if (place.outer == 1 && place.inner == 1)
      return std::nullopt;
    if (!chosen || (place.outer == 1 && chosen->outer != 1))
      chosen = &place;
  }
  MergedBatch merged{chosen->dim, factorsOf(reshape, chosen->dim)};
  if (merged.factors.size() < 2)
    return std::nullopt;
  return merged;
}

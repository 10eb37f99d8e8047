//===- StageConversions.cpp - values from one layout to another -----------------===//
//
// What a reader needs and what lies there may differ: a whole value is cut for
// nothing, a partial sum is summed in rank order, a divided one is gathered.
// Sums are computed alike on every rank, so copies stay bit-equal.
//
//===----------------------------------------------------------------------===//

#include "StageSharder.h"

#include "autohet/Plan/Exchanges.h"
#include "autohet/Support/SplitExtent.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace autohet;

StageSharder::Locals StageSharder::convert(Value value, const Layout &wanted) {
  Layout have = layouts.of(value);
  auto parameter = value.getDefiningOp<het::ParameterOp>();
  if (have == wanted && !(parameter && have.kind == Layout::Split))
    return locals[value];
  for (auto &[layout, made] : converted[value])
    if (layout == wanted)
      return made;

  Locals result;
  if (parameter && wanted.kind == Layout::Split) {
    // Any box of a parameter can be held: nothing crosses.
    result = takeParameterParts(parameter, wanted);
  } else if (have.kind == Layout::Whole) {
    assert(wanted.kind == Layout::Split && "a whole value is never made a sum");
    result = takeParts(locals[value], wanted);
  } else if (have.kind == Layout::Sum && wanted.kind == Layout::Whole) {
    result = exchangeSums(locals[value]);
  } else if (have.kind == Layout::Split && wanted.kind == Layout::Whole) {
    result = gather(localsOf(value), have, typeOf(value));
  } else {
    // By way of the whole. The layouts are equal but for `isSum` only where
    // nothing overlaps, and then they are one.
    if (have.isSplitAlong(wanted.dim) && have.parts == wanted.parts &&
        !het::haveOverlap(have.parts))
      return locals[value];
    result = takeParts(convert(value, Layout()), wanted);
  }
  converted[value].push_back({wanted, result});
  return result;
}

/// In the layout that it has.
StageSharder::Locals StageSharder::localsOf(Value value) {
  return convert(value, layouts.of(value));
}

namespace {

/// The box of a tensor that a rank's part of a dim is.
struct Box {
  SmallVector<int64_t> offsets, sizes, strides;
  Box(RankedTensorType type, unsigned dim, het::Part part)
      : offsets(type.getRank(), 0), sizes(type.getShape()),
        strides(type.getRank(), 1) {
    offsets[dim] = part.begin;
    sizes[dim] = part.size;
  }
};

} // namespace

static Value createSlice(OpBuilder &builder, Location loc, Value value,
                         const Box &box) {
  return het::SliceOp::create(builder, loc, value, box.offsets, box.sizes,
                              box.strides);
}

/// Each rank's part of a whole value.
StageSharder::Locals StageSharder::takeParts(const Locals &whole,
                                             const Layout &wanted) {
  Locals result;
  for (unsigned rank = 0; rank < getNumRanks(); ++rank)
    result.push_back(
        createSlice(on(rank), stamp.source->getLoc(), whole[rank],
                    Box(typeOf(whole[rank]), wanted.dim, wanted.parts[rank])));
  return result;
}

/// Of a parameter only the part is held.
StageSharder::Locals
StageSharder::takeParameterParts(het::ParameterOp parameter,
                                 const Layout &wanted) {
  // It stays a use of the parameter's own unit, whoever reads it first.
  llvm::SaveAndRestore<Operation *> source(stamp.source, parameter);
  auto whole = typeOf(parameter);
  Locals result;
  for (unsigned rank = 0; rank < getNumRanks(); ++rank) {
    Box box(whole, wanted.dim, wanted.parts[rank]);
    if (parameter.getOffsets())
      for (auto [offset, outer] :
           llvm::zip_equal(box.offsets, *parameter.getOffsets()))
        offset += outer;
    auto part = cast<het::ParameterOp>(on(rank).clone(*parameter));
    part.setOffsets(box.offsets);
    part.setGlobalShape(parameter.getWholeShape());
    part.getResult().setType(
        RankedTensorType::get(box.sizes, whole.getElementType()));
    result.push_back(part);
  }
  return result;
}

/// In the order in which a rank sends to them: each begins with the next one,
/// so that no two send to one at the same time.
SmallVector<unsigned> StageSharder::othersOf(unsigned rank) const {
  SmallVector<unsigned> others;
  for (unsigned step = 1; step < ranks.size(); ++step)
    others.push_back((rank + step) % ranks.size());
  return others;
}

SmallVector<StageSharder::Locals> StageSharder::exchange(const Locals &values) {
  int64_t channel = nextChannel++;
  Location loc = stamp.source->getLoc();
  unsigned size = getNumRanks();
  SmallVector<Locals> all(size, Locals(size));
  for (unsigned rank = 0; rank < size; ++rank) {
    all[rank][rank] = values[rank];
    for (unsigned other : othersOf(rank))
      dist::SendOp::create(on(rank), loc, values[rank], ranks[other], channel,
                           true);
    for (unsigned other = 0; other < size; ++other)
      if (other != rank)
        all[rank][other] =
            dist::RecvOp::create(on(rank), loc, values[other].getType(),
                                 ranks[other], channel, true)
                .getResult();
  }
  return all;
}

/// Each rank's slices of its own value, sent to the ranks that sum them; by
/// rank, what it has of all.
SmallVector<StageSharder::Locals>
StageSharder::exchangeSlices(const Locals &flat, ArrayRef<het::Part> slices) {
  int64_t channel = nextChannel++;
  Location loc = stamp.source->getLoc();
  unsigned size = getNumRanks();
  SmallVector<Locals> all(size, Locals(size));
  for (unsigned rank = 0; rank < size; ++rank) {
    auto type = typeOf(flat[rank]);
    // All slices first: behind a send, a kernel would wait for it to be
    // received, which nobody does before having sent.
    Locals own;
    for (const het::Part &part : slices)
      own.push_back(createSlice(on(rank), loc, flat[rank], Box(type, 0, part)));
    all[rank][rank] = own[rank];
    for (unsigned other : othersOf(rank))
      dist::SendOp::create(on(rank), loc, own[other], ranks[other], channel,
                           true);
    for (unsigned other = 0; other < size; ++other)
      if (other != rank)
        all[rank][other] =
            dist::RecvOp::create(on(rank), loc, own[rank].getType(),
                                 ranks[other], channel, true)
                .getResult();
  }
  return all;
}

/// The sum as `exchangeSums` gives it, to the bit: each rank sums one slice in
/// rank order and sends it to the others.
StageSharder::Locals StageSharder::exchangeSumsInSlices(const Locals &partial) {
  Location loc = stamp.source->getLoc();
  auto type = typeOf(partial.front());
  int64_t elements = type.getNumElements();
  SmallVector<het::Part> slices =
      het::consecutiveParts(splitExtentEvenly(elements, getNumRanks()));
  Locals flat, sums, result;
  for (unsigned rank = 0; rank < getNumRanks(); ++rank)
    flat.push_back(het::ReshapeOp::create(on(rank), loc, partial[rank],
                                          ArrayRef<int64_t>{elements}));
  SmallVector<Locals> pieces = exchangeSlices(flat, slices);
  for (unsigned rank = 0; rank < getNumRanks(); ++rank)
    sums.push_back(sumInOrder(rank, pieces[rank]));
  SmallVector<Locals> all = exchange(sums);
  for (unsigned rank = 0; rank < getNumRanks(); ++rank) {
    Value joined = het::ConcatOp::create(on(rank), loc, all[rank], 0);
    result.push_back(
        het::ReshapeOp::create(on(rank), loc, joined, type.getShape()));
  }
  return result;
}

/// The sum of what `rank` has from all, in rank order.
Value StageSharder::sumInOrder(unsigned rank, const Locals &parts) {
  Value sum = parts.front();
  for (Value part : ArrayRef<Value>(parts).drop_front())
    sum = het::AddOp::create(on(rank), stamp.source->getLoc(), sum, part);
  return sum;
}

/// The sum in rank order, on every rank.
StageSharder::Locals StageSharder::exchangeSums(const Locals &partial) {
  auto type = typeOf(partial.front());
  if (sumsInSlices(type.getNumElements() * type.getElementTypeBitWidth() / 8,
                   getNumRanks()))
    return exchangeSumsInSlices(partial);
  Locals result;
  SmallVector<Locals> all = exchange(partial);
  for (unsigned rank = 0; rank < getNumRanks(); ++rank)
    result.push_back(sumInOrder(rank, all[rank]));
  return result;
}

/// The whole of a divided value, on every rank.
StageSharder::Locals StageSharder::gather(const Locals &parts,
                                          const Layout &layout,
                                          RankedTensorType whole) {
  Location loc = stamp.source->getLoc();
  if (layout.isSum && het::haveOverlap(layout.parts)) {
    // Parts of sums: each rank's part within zeros is a partial sum.
    Locals padded;
    for (unsigned rank = 0; rank < getNumRanks(); ++rank) {
      Box box(whole, layout.dim, layout.parts[rank]);
      padded.push_back(het::SliceBackwardOp::create(on(rank), loc, parts[rank],
                                                    box.offsets, box.strides,
                                                    whole.getShape()));
    }
    return exchangeSums(padded);
  }
  Locals result;
  SmallVector<Locals> all = exchange(parts);
  for (unsigned rank = 0; rank < getNumRanks(); ++rank) {
    SmallVector<Value> pieces;
    int64_t end = 0;
    for (unsigned from = 0; from < getNumRanks(); ++from) {
      const het::Part &part = layout.parts[from];
      Value piece = all[rank][from];
      int64_t known = std::max<int64_t>(0, end - part.begin);
      if (known >= part.size)
        continue; // a copy of what an earlier rank gave
      if (known > 0)
        piece = createSlice(
            on(rank), loc, piece,
            Box(typeOf(piece), layout.dim, {known, part.size - known}));
      pieces.push_back(piece);
      end = part.begin + part.size;
    }
    Value joined = pieces.front();
    if (pieces.size() > 1)
      joined = het::ConcatOp::create(on(rank), loc, pieces, layout.dim);
    assert(joined.getType() == whole && "parts cover the dim in order");
    result.push_back(joined);
  }
  return result;
}

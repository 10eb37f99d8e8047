//===- StageLayouts.cpp - values from one layout to another -----------------===//
//
// What a reader needs and what lies there may differ: a whole value is cut for
// nothing, a partial sum is summed in rank order, a divided one is gathered.
// Sums are computed alike on every rank, so copies stay bit-equal.
//
//===----------------------------------------------------------------------===//

#include "StageSharder.h"

using namespace mlir;
using namespace autohet;

static RankedTensorType typeOf(Value v) {
  return cast<RankedTensorType>(v.getType());
}

StageSharder::Locals StageSharder::convert(Value value, const Layout &wanted,
                                           Operation *reader) {
  const Layout &have = layouts[value];
  if (have == wanted)
    return locals[value];
  for (auto &[layout, made] : converted[value])
    if (layout == wanted)
      return made;

  Locals result;
  if (have.kind == Layout::Whole) {
    assert(wanted.kind == Layout::Split && "a whole value is never made a sum");
    result = takeParts(value, wanted, reader);
  } else if (have.kind == Layout::Sum && wanted.kind == Layout::Whole) {
    result = exchangeSums(locals[value], reader);
  } else if (have.kind == Layout::Split && wanted.kind == Layout::Whole) {
    result = gather(locals[value], have, typeOf(value), reader);
  } else {
    // By way of the whole. The layouts are equal but for `isSum` only where
    // nothing overlaps, and then they are one.
    if (have.kind == Layout::Split && have.dim == wanted.dim &&
        have.parts == wanted.parts && !haveOverlap(have.parts))
      return locals[value];
    Locals whole = convert(value, Layout(), reader);
    Layout kept = have;
    layouts[value] = Layout();
    Locals keptLocals = std::exchange(locals[value], whole);
    result = takeParts(value, wanted, reader);
    layouts[value] = kept;
    locals[value] = keptLocals;
  }
  converted[value].push_back({wanted, result});
  return result;
}

/// Each rank's part of a whole value. Of a parameter only the part is held.
StageSharder::Locals StageSharder::takeParts(Value value, const Layout &wanted,
                                             Operation *reader) {
  Locals result;
  auto parameter = value.getDefiningOp<het::ParameterOp>();
  auto whole = typeOf(value);
  for (unsigned rank = 0; rank < size(); ++rank) {
    const Part &part = wanted.parts[rank];
    SmallVector<int64_t> offsets(whole.getRank(), 0), sizes(whole.getShape()),
        strides(whole.getRank(), 1);
    offsets[wanted.dim] = part.begin;
    sizes[wanted.dim] = part.size;
    OpBuilder &builder = builders[rank];
    if (!parameter) {
      result.push_back(mark(het::SliceOp::create(builder, reader->getLoc(),
                                                 locals[value][rank], offsets,
                                                 sizes, strides),
                            reader));
      continue;
    }
    if (parameter.getOffsets())
      for (auto [offset, outer] :
           llvm::zip_equal(offsets, *parameter.getOffsets()))
        offset += outer;
    auto box =
        mark(cast<het::ParameterOp>(builder.clone(*parameter)), parameter);
    box.setOffsets(offsets);
    box.setGlobalShape(parameter.getWholeShape());
    box.getResult().setType(
        RankedTensorType::get(sizes, whole.getElementType()));
    result.push_back(box);
  }
  return result;
}

SmallVector<StageSharder::Locals> StageSharder::exchange(ArrayRef<Value> values,
                                                         Operation *reader) {
  int64_t channel = nextChannel++;
  SmallVector<Locals> all(size(), Locals(size()));
  for (unsigned rank = 0; rank < size(); ++rank) {
    OpBuilder &builder = builders[rank];
    all[rank][rank] = values[rank];
    for (unsigned other = 0; other < size(); ++other)
      if (other != rank)
        mark(dist::SendOp::create(builder, reader->getLoc(), values[rank],
                                  ranks[other], channel, true),
             reader);
    for (unsigned other = 0; other < size(); ++other)
      if (other != rank)
        all[rank][other] =
            mark(dist::RecvOp::create(builder, reader->getLoc(),
                                      values[other].getType(), ranks[other],
                                      channel, true),
                 reader);
  }
  return all;
}

/// The sum in rank order, on every rank.
StageSharder::Locals StageSharder::exchangeSums(ArrayRef<Value> partial,
                                                Operation *reader) {
  Locals result;
  SmallVector<Locals> all = exchange(partial, reader);
  for (unsigned rank = 0; rank < size(); ++rank) {
    Value sum = all[rank].front();
    for (Value part : ArrayRef<Value>(all[rank]).drop_front())
      sum =
          mark(het::AddOp::create(builders[rank], reader->getLoc(), sum, part),
               reader);
    result.push_back(sum);
  }
  return result;
}

/// The whole of a divided value, on every rank.
StageSharder::Locals StageSharder::gather(ArrayRef<Value> parts,
                                          const Layout &layout,
                                          RankedTensorType whole,
                                          Operation *reader) {
  if (layout.isSum && haveOverlap(layout.parts)) {
    // Parts of sums: each rank's part within zeros is a partial sum.
    Locals padded;
    for (unsigned rank = 0; rank < size(); ++rank) {
      SmallVector<int64_t> offsets(whole.getRank(), 0),
          strides(whole.getRank(), 1);
      offsets[layout.dim] = layout.parts[rank].begin;
      padded.push_back(mark(het::SliceBackwardOp::create(
                                builders[rank], reader->getLoc(), parts[rank],
                                offsets, strides, whole.getShape()),
                            reader));
    }
    return exchangeSums(padded, reader);
  }
  Locals result;
  SmallVector<Locals> all = exchange(parts, reader);
  for (unsigned rank = 0; rank < size(); ++rank) {
    SmallVector<Value> pieces;
    int64_t end = 0;
    for (unsigned from = 0; from < size(); ++from) {
      const Part &part = layout.parts[from];
      Value piece = all[rank][from];
      int64_t known = std::max<int64_t>(0, end - part.begin);
      if (known >= part.size)
        continue; // a copy of what an earlier rank gave
      if (known > 0) {
        auto type = typeOf(piece);
        SmallVector<int64_t> offsets(type.getRank(), 0), sizes(type.getShape()),
            strides(type.getRank(), 1);
        offsets[layout.dim] = known;
        sizes[layout.dim] = part.size - known;
        piece = mark(het::SliceOp::create(builders[rank], reader->getLoc(),
                                          piece, offsets, sizes, strides),
                     reader);
      }
      pieces.push_back(piece);
      end = part.begin + part.size;
    }
    Value joined = pieces.front();
    if (pieces.size() > 1)
      joined = mark(het::ConcatOp::create(builders[rank], reader->getLoc(),
                                          pieces, layout.dim),
                    reader);
    assert(joined.getType() == whole && "parts cover the dim in order");
    result.push_back(joined);
  }
  return result;
}

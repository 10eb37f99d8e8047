//===- Philox.cpp - dropout masks in generated code -----------------------===//
//
// One Philox block an element and only its word 0, so that a box may start
// anywhere. All operations are 32-bit multiplications with 64-bit results and
// exclusive ors, which vectorise.
//
//===----------------------------------------------------------------------===//

#include "Philox.h"

#include "HetToLinalg.h"

#include <cmath>

using namespace mlir;
using namespace autohet;

namespace {

constexpr int64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

struct Words {
  Value low, high;
};

/// The i32 halves of an i64.
Words split(OpBuilder &b, Location loc, Value wide) {
  Type i32 = b.getI32Type();
  Value shift = intConstant(b, loc, b.getI64Type(), 32);
  Value high = arith::ShRUIOp::create(b, loc, wide, shift);
  return {arith::TruncIOp::create(b, loc, i32, wide),
          arith::TruncIOp::create(b, loc, i32, high)};
}

Words multiply(OpBuilder &b, Location loc, Value word, int64_t multiplier) {
  Type i64 = b.getI64Type();
  Value wide = arith::ExtUIOp::create(b, loc, i64, word);
  Value factor = intConstant(b, loc, i64, multiplier);
  return split(b, loc, arith::MulIOp::create(b, loc, wide, factor));
}

/// Word 0 of philox4x32-10.
Value philoxWord(OpBuilder &b, Location loc, Words key, Words element,
                 Value opId, Value step) {
  Type i32 = b.getI32Type();
  Value c0 = element.low, c1 = element.high, c2 = opId, c3 = step;
  uint32_t bump0 = 0, bump1 = 0;
  for (int round = 0; round < kRounds; ++round) {
    // The key's sequence is linear: key + round * weyl, modulo 2^32.
    Value k0 = arith::AddIOp::create(b, loc, key.low,
                                     intConstant(b, loc, i32, int32_t(bump0)));
    Value k1 = arith::AddIOp::create(b, loc, key.high,
                                     intConstant(b, loc, i32, int32_t(bump1)));
    Words p0 = multiply(b, loc, c0, kMultiplier0);
    Words p1 = multiply(b, loc, c2, kMultiplier1);
    c0 = arith::XOrIOp::create(b, loc,
                               arith::XOrIOp::create(b, loc, p1.high, c1), k0);
    c2 = arith::XOrIOp::create(b, loc,
                               arith::XOrIOp::create(b, loc, p0.high, c3), k1);
    c1 = p1.low;
    c3 = p0.low;
    bump0 += kWeyl0;
    bump1 += kWeyl1;
  }
  return c0;
}

} // namespace

DropoutMask::DropoutMask(OpBuilder &b, Location loc, Value context,
                         double probability, int64_t opId,
                         ArrayRef<int64_t> shape,
                         std::optional<ArrayRef<int64_t>> boxOffsets,
                         std::optional<ArrayRef<int64_t>> wholeShape)
    : seed(loadContext(b, loc, context, ContextField::Seed)),
      step(arith::TruncIOp::create(
          b, loc, b.getI32Type(),
          loadContext(b, loc, context, ContextField::Step))),
      firstSample(loadContext(b, loc, context, ContextField::FirstSample)),
      evaluates(arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::ne,
          loadContext(b, loc, context, ContextField::Evaluates),
          intConstant(b, loc, b.getI64Type(), 0))),
      probability(probability), opId(opId),
      globalShape(wholeShape.value_or(shape)) {
  if (boxOffsets)
    offsets.assign(boxOffsets->begin(), boxOffsets->end());
  else
    offsets.assign(shape.size(), 0);
}

Value DropoutMask::factorAt(OpBuilder &b, Location loc,
                            ArrayRef<Value> position) const {
  Type i64 = b.getI64Type(), i32 = b.getI32Type();
  // The row-major index in the whole batch's tensor: dim 0 counts samples, and
  // how many there are does not enter.
  Value element;
  for (auto [d, index] : llvm::enumerate(position)) {
    Value here = arith::IndexCastOp::create(b, loc, i64, index);
    here = arith::AddIOp::create(b, loc, here,
                                 intConstant(b, loc, i64, offsets[d]));
    if (d == 0) {
      element = arith::AddIOp::create(b, loc, here, firstSample);
      continue;
    }
    Value extent = intConstant(b, loc, i64, globalShape[d]);
    element = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, element, extent), here);
  }
  if (!element)
    element = firstSample;
  Value word = philoxWord(b, loc, split(b, loc, seed), split(b, loc, element),
                          intConstant(b, loc, i32, int32_t(opId)), step);
  // uniform >= p, where uniform = (word >> 8) 2^-24 is exact: compare integers.
  double threshold = std::ceil(double(float(probability)) * 0x1p24);
  Value top = arith::ShRUIOp::create(b, loc, word, intConstant(b, loc, i32, 8));
  Value keeps =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, top,
                            intConstant(b, loc, i32, int64_t(threshold)));
  Type f32 = b.getF32Type();
  Value factor = arith::SelectOp::create(
      b, loc, keeps, floatConstant(b, loc, f32, 1.0 / (1.0 - probability)),
      floatConstant(b, loc, f32, 0));
  return arith::SelectOp::create(b, loc, evaluates,
                                 floatConstant(b, loc, f32, 1), factor);
}

//===- SplitExtent.cpp - the one way to cut an extent ---------------------===//
//
// Integers only: a share that depended on the rounding of a division would
// differ between the machines that must agree on it.
//
//===----------------------------------------------------------------------===//

#include "autohet/Support/SplitExtent.h"

#include "llvm/ADT/STLExtras.h"
#include <cassert>

namespace autohet {

llvm::SmallVector<int64_t> splitExtent(int64_t extent,
                                       llvm::ArrayRef<int64_t> weights) {
  int64_t total = 0;
  for (int64_t weight : weights) {
    assert(weight >= 0 && weight < (int64_t(1) << 31) && "weight out of range");
    total += weight;
  }
  assert(extent >= 0 && total > 0 && total < (int64_t(1) << 31) &&
         "nothing to cut, or nobody to hold it");

  // share = quotient + remainder / total, exactly: extent = a total + b keeps
  // every product below 2^63.
  int64_t whole = extent / total, rest = extent % total;
  llvm::SmallVector<int64_t> sizes, remainders;
  int64_t left = extent;
  for (int64_t weight : weights) {
    sizes.push_back(whole * weight + rest * weight / total);
    remainders.push_back(rest * weight % total);
    left -= sizes.back();
  }

  llvm::SmallVector<unsigned> order(weights.size());
  for (unsigned rank = 0; rank < order.size(); ++rank)
    order[rank] = rank;
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return remainders[a] != remainders[b] ? remainders[a] > remainders[b]
                                          : a < b;
  });
  for (unsigned rank : llvm::ArrayRef(order).take_front(left))
    ++sizes[rank];
  return sizes;
}

llvm::SmallVector<int64_t> splitExtentEvenly(int64_t extent, int64_t parts) {
  return splitExtent(extent, llvm::SmallVector<int64_t>(parts, 1));
}

llvm::SmallVector<int64_t> partOffsets(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<int64_t> offsets;
  int64_t offset = 0;
  for (int64_t size : sizes) {
    offsets.push_back(offset);
    offset += size;
  }
  return offsets;
}

} // namespace autohet

//===- NearestBatches.cpp - which global batches replicas can make --------===//

#include "NearestBatches.h"

#include "autohet/Plan/Plan.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace autohet {

/// Of every sum up to `largest`: whether such sizes make it.
static std::vector<bool> findSums(llvm::ArrayRef<int64_t> sizes,
                                  int64_t largest) {
  std::vector<bool> reachable(largest + 1);
  reachable[0] = true;
  for (int64_t sum = 1; sum <= largest; ++sum)
    reachable[sum] = llvm::any_of(sizes, [&](int64_t size) {
      return sum >= size && reachable[sum - size];
    });
  return reachable;
}

std::pair<std::optional<int64_t>, int64_t>
nearestBatches(llvm::ArrayRef<int64_t> microbatchSizes, int64_t wanted) {
  // Every replica has one microbatch; what is left is a sum of sizes.
  int64_t least = std::accumulate(microbatchSizes.begin(),
                                  microbatchSizes.end(), int64_t(0));
  if (wanted <= least)
    return {wanted == least ? std::optional<int64_t>(least) : std::nullopt,
            least};
  int64_t largest =
      *std::max_element(microbatchSizes.begin(), microbatchSizes.end());
  std::vector<bool> reachable =
      findSums(microbatchSizes, wanted - least + largest);
  int64_t below = wanted - least, above = wanted - least;
  while (!reachable[below])
    --below;
  while (!reachable[above])
    ++above;
  return {least + below, least + above};
}

std::vector<int64_t> countsForBatch(llvm::ArrayRef<int64_t> microbatchSizes,
                                    int64_t wanted) {
  std::vector<int64_t> counts(microbatchSizes.size(), 1);
  int64_t rest = wanted - std::accumulate(microbatchSizes.begin(),
                                          microbatchSizes.end(), int64_t(0));
  assert(rest >= 0 && "less than one microbatch a replica");
  std::vector<bool> reachable = findSums(microbatchSizes, rest);
  assert(reachable[rest] && "these replicas cannot make the batch");
  while (rest) {
    // The replica that has fewest samples, so that they stay even.
    std::optional<size_t> next;
    for (size_t i = 0; i < counts.size(); ++i) {
      int64_t size = microbatchSizes[i];
      if (rest < size || !reachable[rest - size])
        continue;
      if (!next || counts[i] * size < counts[*next] * microbatchSizes[*next])
        next = i;
    }
    ++counts[*next];
    rest -= microbatchSizes[*next];
  }
  return counts;
}

} // namespace autohet

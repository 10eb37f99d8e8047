//===- NearestBatches.cpp - which global batches replicas can make --------===//

#include "autohet/Plan/Plan.h"

#include <algorithm>
#include <numeric>

namespace autohet {

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
  std::vector<bool> reachable(wanted - least + largest + 1);
  reachable[0] = true;
  for (size_t sum = 1; sum < reachable.size(); ++sum)
    for (int64_t size : microbatchSizes)
      if (static_cast<int64_t>(sum) >= size && reachable[sum - size]) {
        reachable[sum] = true;
        break;
      }
  int64_t below = wanted - least, above = wanted - least;
  while (!reachable[below])
    --below;
  while (!reachable[above])
    ++above;
  return {least + below, least + above};
}

} // namespace autohet

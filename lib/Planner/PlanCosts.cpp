//===- PlanCosts.cpp - what the search asks of a cost model ---------------===//

#include "autohet/Planner/PlanCosts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace autohet {

// In nodes of at most so many devices of a class, a stage may have any number.
static constexpr unsigned maxFreeExtent = 4;
// Nodes of so many different devices that all mixtures would be more than this
// get mixtures of equal counts only.
static constexpr size_t maxMixturesOfNode = 64;

unsigned StageShape::deviceCount() const {
  unsigned count = 0;
  for (const Part &part : parts)
    count += part.count;
  return count;
}

unsigned StageShape::mainClass() const {
  return std::max_element(
             parts.begin(), parts.end(),
             [](const Part &a, const Part &b) { return a.count < b.count; })
      ->machine_class;
}

double PlanCosts::flopsPerSample() const {
  double flops = 0;
  for (const Unit &unit : table.units)
    flops += unit.productFlops();
  return flops;
}

PassSeconds PlanCosts::secondsKeeping(Keeping keeping, unsigned shape,
                                      unsigned unit,
                                      int64_t microbatchSize) const {
  if (keeping == Keeping::OnHost)
    return offloadedSeconds(shape, unit, microbatchSize);
  PassSeconds seconds = unitSeconds(shape, unit, microbatchSize);
  if (keeping == Keeping::Inputs)
    seconds.backward_s += seconds.forward_s;
  return seconds;
}

double PlanCosts::syncSeconds(const StageQuery &stage, int64_t replicas) const {
  double least = std::numeric_limits<double>::infinity();
  for (const ExchangeSeconds &way : exchangeWays(stage, {replicas}))
    least = std::min(least, way.total());
  return least;
}

/// Shares by speed, in quarters of the slowest device's.
static std::vector<int64_t> weighBySpeed(const StageShape &shape,
                                         const MachineClasses &classes,
                                         const Cluster &cluster) {
  auto rateOf = [&](const StageShape::Part &part) {
    return cluster.kinds[classes[part.machine_class].kind].flops_per_s;
  };
  double slowest = rateOf(shape.parts.front());
  for (const StageShape::Part &part : shape.parts)
    slowest = std::min(slowest, rateOf(part));
  std::vector<int64_t> weights;
  int64_t divisor = 0;
  for (const StageShape::Part &part : shape.parts) {
    int64_t weight = std::llround(4 * rateOf(part) / slowest);
    divisor = std::gcd(divisor, weight);
    weights.insert(weights.end(), part.count, weight);
  }
  for (int64_t &weight : weights)
    weight /= divisor;
  return weights;
}

/// Numbers that fill a node without rest, or nearly: divisors and powers of
/// two.
static bool isGoodExtent(unsigned count, unsigned perNode) {
  return perNode <= maxFreeExtent || perNode % count == 0 ||
         llvm::isPowerOf2_32(count);
}

void PlanCosts::makeShapes(
    llvm::function_ref<bool(const StageShape &)> isKnown) {
  std::map<unsigned, std::vector<unsigned>> makes; // classes of each node make
  for (unsigned index = 0; index < machineClasses.size(); ++index)
    makes[machineClasses[index].node_make].push_back(index);
  allShapes.clear();
  auto add = [&](StageShape shape) {
    shape.weights = weighBySpeed(shape, machineClasses, cluster);
    if (isKnown(shape))
      allShapes.push_back(std::move(shape));
  };
  for (const auto &[make, members] : makes) {
    size_t mixtures = 1;
    for (unsigned member : members) {
      unsigned most = machineClasses[member].per_node;
      mixtures = std::min(maxMixturesOfNode + 1, mixtures * (most + 1));
      for (unsigned count = 1; count <= most; ++count) {
        StageShape shape;
        shape.parts.push_back({member, count});
        if (isGoodExtent(count, most))
          add(std::move(shape));
      }
    }
    if (members.size() == 1)
      continue;
    bool areAllTried = mixtures <= maxMixturesOfNode;
    // Counts through all vectors of at least two parts.
    ClassCounts counts(members.size());
    while (true) {
      size_t digit = 0;
      while (digit < members.size() &&
             counts[digit] == machineClasses[members[digit]].per_node)
        counts[digit++] = 0;
      if (digit == members.size())
        break;
      ++counts[digit];
      StageShape shape;
      bool areEqual = true, areGood = true;
      unsigned first = 0;
      for (auto [member, count] : llvm::zip_equal(members, counts))
        if (count) {
          areGood &= isGoodExtent(count, machineClasses[member].per_node);
          areEqual &= !first || count == first;
          first = count;
          shape.parts.push_back({member, count});
        }
      if (shape.parts.size() > 1 && areGood && (areAllTried || areEqual))
        add(std::move(shape));
    }
  }
}

} // namespace autohet

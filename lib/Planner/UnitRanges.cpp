//===- UnitRanges.cpp - what runs of consecutive units need ---------------===//

#include "UnitRanges.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

// Stages are in one node.
static double largestNode(const Cluster &cluster) {
  unsigned largest = 1;
  for (const Node &node : cluster.nodes)
    largest = std::max<unsigned>(largest, node.device_count);
  return largest;
}

UnitRanges::UnitRanges(const CostModel &costs)
    : count(costs.units().units.size()),
      mostRanks(largestNode(costs.machines())),
      stateFactor(stateBytesPerByte(costs.optimizerKind())),
      hasGradients(costs.optimizerKind() != OptimizerKind::None),
      hasBackward(costs.hasBackward()), ranges((count + 1) * (count + 1)),
      crossing(count + 1), largest(count) {
  const UnitTable &table = costs.units();
  for (auto [unit, bytes] : llvm::zip_equal(table.units, largest))
    for (unsigned parameter : unit.parameters)
      if (table.parameters[parameter].trained)
        bytes = std::max(bytes, table.parameters[parameter].bytes);
  std::vector<std::vector<UnitEdge>> incoming(count); // `to` is the sender
  for (auto [from, unit] : llvm::enumerate(table.units))
    for (const UnitEdge &edge : unit.successors) {
      incoming[edge.to].push_back(
          {static_cast<unsigned>(from), edge.bytes_per_sample});
      for (unsigned cut = from + 1; cut <= edge.to; ++cut)
        crossing[cut] += edge.bytes_per_sample;
    }

  for (unsigned begin = 0; begin < count; ++begin) {
    Range range;
    std::vector<bool> seen(table.parameters.size());
    for (unsigned end = begin + 1; end <= count; ++end) {
      const Unit &unit = table.units[end - 1];
      for (unsigned parameter : unit.parameters) {
        if (seen[parameter])
          continue;
        seen[parameter] = true;
        const UnitParameter &data = table.parameters[parameter];
        DividedBytes bytes = {data.bytes, data.divided ? 0 : data.bytes};
        range.parameters += bytes;
        if (!data.trained)
          continue;
        range.trained += bytes;
        // No rank may be without a head.
        auto extent = static_cast<double>(unit.divided_extent);
        bool isEven = mostRanks == 1 ||
                      (data.divided && (extent == 0 || extent >= mostRanks));
        range.owned += DividedBytes{data.bytes, isEven ? 0 : data.bytes};
      }
      range.activations += unit.activations;
      auto keepLarger = [](DividedBytes &largest, const DividedBytes &own) {
        if (own.all > largest.all)
          largest = own;
      };
      keepLarger(range.workspace, unit.workspace);
      if (hasGradients)
        keepLarger(range.gradient_workspace, unit.gradient_workspace);
      for (const UnitEdge &edge : unit.successors)
        range.sent += edge.bytes_per_sample;
      for (const UnitEdge &edge : incoming[end - 1])
        if (edge.to < begin)
          range.received += edge.bytes_per_sample;
        else
          range.sent -= edge.bytes_per_sample;
      ranges[begin * (count + 1) + end] = range;
    }
  }
}

UnitRanges::Memory UnitRanges::memory(unsigned begin, unsigned end,
                                      double share, int64_t microbatchSize,
                                      double owned, Keeping keeping) const {
  const Range &range = at(begin, end);
  Memory memory;
  memory.keeping = keeping;
  memory.samples = static_cast<double>(microbatchSize);
  double trained = hasGradients ? range.trained.of(share) : 0;
  memory.held = range.parameters.of(share) + trained +
                stateFactor * ownedBytes(begin, end, share, owned, mostRanks);
  memory.activations = range.activations.of(share) * memory.samples;
  memory.received = range.received;
  if (hasBackward) {
    memory.slots = memory.samples * (kSlotsBesideReceived * range.received +
                                     kSlotsOfSent * range.sent);
    // Who owns less has less of both together, unless state is smaller.
    if (owned > 0 && stateFactor >= 1)
      memory.contributions = trained * (1 - owned);
  }
  memory.workspace = std::max(range.workspace.of(share) * memory.samples,
                              range.gradient_workspace.of(share));
  return memory;
}

double UnitRanges::Memory::bytes(int64_t inFlight) const {
  double kept =
      activations * static_cast<double>(keptMicrobatches(keeping, inFlight));
  return held + kept +
         (received * (samples * static_cast<double>(inFlight)) + slots) +
         exchangeBytes(contributions, kept, inFlight) + workspace;
}

double UnitRanges::allParameterBytes() const {
  return at(0, count).parameters.of(1);
}

} // namespace autohet

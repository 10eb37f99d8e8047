//===- CostModel.cpp - seconds and bytes of units on devices --------------===//

#include "autohet/Planner/CostModel.h"
#include "autohet/Support/SplitExtent.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>
#include <numeric>

namespace autohet {

// For one fp32 element: the gradient's square is added to the norm, then the
// optimizer reads parameter, gradient and state and writes parameter and state.
static constexpr double normFlopsPerElement = 2, updateFlopsPerElement = 12;

CostModel::CostModel(const UnitTable &table, const Cluster &cluster,
                     OptimizerKind optimizer, PlanObjective objective)
    : table(table), cluster(cluster), optimizer(optimizer),
      objective(objective), classes(cluster) {
  assert((objective == PlanObjective::Latency || table.is_forward_only) &&
         "steps of training do not overlap");
}

std::vector<double> sharesOf(llvm::ArrayRef<int64_t> weights) {
  double total = std::accumulate(weights.begin(), weights.end(), int64_t(0));
  std::vector<double> shares;
  for (int64_t weight : weights)
    shares.push_back(static_cast<double>(weight) / total);
  return shares;
}

std::vector<double> sharesOf(const Unit &unit,
                             llvm::ArrayRef<int64_t> weights) {
  if (unit.divided_extent == 0 || weights.size() == 1)
    return sharesOf(weights);
  std::vector<double> shares;
  for (int64_t part : splitExtent(unit.divided_extent, weights))
    shares.push_back(static_cast<double>(part) / unit.divided_extent);
  // No rank may be without a head: all do all of it.
  if (llvm::is_contained(shares, 0))
    shares.assign(weights.size(), 1);
  return shares;
}

int64_t microbatchesInFlight(Schedule schedule, unsigned stage,
                             unsigned stageCount, int64_t microbatches) {
  if (schedule == Schedule::GPipe)
    return microbatches;
  return std::min<int64_t>(stageCount - stage, microbatches);
}

//===-- Time
//---------------------------------------------------------------===//

CostModel::RankPorts
CostModel::rankPorts(llvm::ArrayRef<unsigned> devices) const {
  RankPorts slowest;
  // Mostly all links are one.
  bool areAlike = llvm::all_of(devices, [&](unsigned device) {
    return classes.classOf(device) == classes.classOf(devices.front()) &&
           cluster.devices()[device].node ==
               cluster.devices()[devices.front()].node;
  });
  auto meet = [&](const Link &hop, double &port) {
    port += 1 / hop.bandwidth_bytes_per_s;
    slowest.latency_s = std::max(slowest.latency_s, hop.latency_s);
  };
  for (size_t rank = 0; rank < (areAlike ? 1 : devices.size()); ++rank) {
    double out = 0, in = 0;
    for (size_t other = 0; other < devices.size(); ++other)
      if (other != rank) {
        meet(link(devices[rank], devices[other]), out);
        meet(link(devices[other], devices[rank]), in);
      }
    slowest.seconds_per_byte = std::max({slowest.seconds_per_byte, out, in});
  }
  return slowest;
}

PassSeconds CostModel::unitSeconds(unsigned unit,
                                   llvm::ArrayRef<unsigned> devices,
                                   llvm::ArrayRef<int64_t> weights,
                                   int64_t microbatchSize) const {
  const Unit &data = table.units[unit];
  double samples = static_cast<double>(microbatchSize);

  // The slowest rank decides, then all meet: what a pass takes the slowest and
  // the next one.
  struct Slowest {
    double first_s = 0, second_s = 0;
    void add(double seconds) {
      second_s = std::max(second_s, std::min(first_s, seconds));
      first_s = std::max(first_s, seconds);
    }
  } forward, backward;
  unsigned ranks = devices.size();
  std::vector<double> shares = sharesOf(data, weights);
  // Where all ranks do all of it, they have nothing to exchange.
  bool isDivided = ranks > 1 && shares.front() < 1;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const DeviceKind &kind = cluster.kindOf(devices[rank]);
    double share = shares[rank];
    auto seconds = [&](const PassWork &pass) {
      Work mine = pass.of(samples, share);
      if (isDivided)
        for (const RankExchange &exchange : pass.exchanges)
          mine += exchangeWork(
              exchange.kind, exchange.bytes_per_sample * samples, ranks, share);
      return kind.seconds(mine);
    };
    forward.add(seconds(data.forward));
    if (hasBackward())
      backward.add(seconds(data.backward));
  }
  PassSeconds result = {forward.first_s, backward.first_s};
  if (!isDivided)
    return result;

  RankPorts ports = rankPorts(devices);
  auto exchanged = [&](const PassWork &pass, const Slowest &slowest) {
    double messages_s = 0;
    bool hasSlices = false;
    for (const RankExchange &exchange : pass.exchanges) {
      double bytes = exchange.bytes_per_sample * samples;
      ExchangeMessages messages = exchangeMessages(exchange.kind, bytes, ranks);
      messages_s += messages.rounds * ports.latency_s +
                    messages.bytes / (ranks - 1) * ports.seconds_per_byte;
      hasSlices |= messages.rounds > 1;
    }
    if (hasSlices)
      return slowest.first_s + messages_s;
    // What the others have sent is there when the slowest comes, if they are so
    // much faster: from unit to unit, two ranks take turns in waiting.
    return std::max(slowest.first_s,
                    (slowest.first_s + slowest.second_s) / 2 + messages_s);
  };
  result.forward_s = exchanged(data.forward, forward);
  if (hasBackward())
    result.backward_s = exchanged(data.backward, backward);
  return result;
}

PassSeconds CostModel::offloadedSeconds(unsigned unit,
                                        llvm::ArrayRef<unsigned> devices,
                                        llvm::ArrayRef<int64_t> weights,
                                        int64_t microbatchSize) const {
  PassSeconds seconds = unitSeconds(unit, devices, weights, microbatchSize);
  for (auto [device, share] : llvm::zip_equal(devices, sharesOf(weights))) {
    double moved_s = table.units[unit].activations.of(share) *
                     static_cast<double>(microbatchSize) /
                     cluster.kindOf(device).host_bandwidth_bytes_per_s;
    seconds.forward_s = std::max(seconds.forward_s, moved_s);
    seconds.backward_s = std::max(seconds.backward_s, moved_s);
  }
  return seconds;
}

PassSeconds CostModel::unitSeconds(unsigned unit, const ResolvedStage &stage,
                                   int64_t microbatchSize) const {
  if (stage.keeping == Keeping::OnHost)
    return offloadedSeconds(unit, stage.devices, stage.weights, microbatchSize);
  PassSeconds seconds =
      unitSeconds(unit, stage.devices, stage.weights, microbatchSize);
  if (stage.keeping == Keeping::Inputs)
    seconds.backward_s += seconds.forward_s;
  return seconds;
}

PassSeconds CostModel::stageSeconds(const ResolvedStage &stage,
                                    int64_t microbatchSize) const {
  PassSeconds sum;
  for (unsigned unit : stage.units)
    sum += unitSeconds(unit, stage, microbatchSize);
  return sum;
}

Link CostModel::groupLink(llvm::ArrayRef<unsigned> from,
                          llvm::ArrayRef<unsigned> to) const {
  Link slowest = {std::numeric_limits<double>::infinity(), 0};
  llvm::SmallDenseMap<unsigned, double, 4> left, entered; // of each node
  auto nodeOf = [&](unsigned device) { return cluster.devices()[device].node; };
  for (size_t position = 0; position < to.size(); ++position) {
    unsigned sender = from[position % from.size()];
    const Link &hop = link(sender, to[position]);
    slowest.bandwidth_bytes_per_s =
        std::min(slowest.bandwidth_bytes_per_s, hop.bandwidth_bytes_per_s);
    slowest.latency_s = std::max(slowest.latency_s, hop.latency_s);
    if (nodeOf(sender) == nodeOf(to[position]))
      continue;
    ++left[nodeOf(sender)];
    ++entered[nodeOf(to[position])];
  }
  // A sender's messages follow one another, those of several share the card.
  double copies = static_cast<double>(llvm::divideCeil(to.size(), from.size()));
  for (const auto &messages : {left, entered})
    for (auto [node, count] : messages)
      if (double rate = cluster.nodes[node].nic_bytes_per_s; rate > 0)
        slowest.bandwidth_bytes_per_s =
            std::min(slowest.bandwidth_bytes_per_s, rate * copies / count);
  return slowest;
}

Work CostModel::normWork(double bytes, double parameters) const {
  Work work;
  if (optimizer == OptimizerKind::None)
    return work;
  work.commands = parameters;
  work.elementwise_flops = bytes / kBytesPerElement * normFlopsPerElement;
  work.traffic_bytes = bytes;
  return work;
}

Work CostModel::updateWork(double bytes, double parameters) const {
  Work work;
  if (optimizer == OptimizerKind::None)
    return work;
  work.commands = parameters;
  work.elementwise_flops = bytes / kBytesPerElement * updateFlopsPerElement;
  work.traffic_bytes = bytes * (3 + 2 * stateBytesPerByte(optimizer));
  return work;
}

Work CostModel::sumWork(double bytes, double parameters, double parts) {
  Work work;
  if (parts < 2)
    return work;
  work.commands = parameters;
  work.elementwise_flops = bytes / kBytesPerElement * (parts - 1);
  work.traffic_bytes = bytes * (parts + 1);
  return work;
}

Work CostModel::copyWork(double bytes, double commands) {
  Work work;
  work.commands = commands;
  work.traffic_bytes = 2 * bytes;
  return work;
}

double CostModel::flopsPerSample() const {
  double flops = 0;
  for (const Unit &unit : table.units)
    flops += unit.productFlops();
  return flops;
}

//===-- Bytes
//--------------------------------------------------------------===//

double CostModel::bytesBetween(llvm::ArrayRef<unsigned> from,
                               llvm::ArrayRef<unsigned> to) const {
  double bytes = 0;
  for (unsigned unit : from)
    for (const UnitEdge &edge : table.units[unit].successors)
      if (llvm::is_contained(to, edge.to))
        bytes += edge.bytes_per_sample;
  return bytes;
}

MemoryNeed CostModel::memory(llvm::ArrayRef<unsigned> units,
                             llvm::ArrayRef<int64_t> weights, unsigned position,
                             int64_t microbatchSize, int64_t inFlight,
                             const StageTies &ties, Keeping keeping) const {
  MemoryNeed need;
  double samples = static_cast<double>(microbatchSize);
  double held = samples * static_cast<double>(inFlight);
  std::vector<unsigned> seen;
  double plain = sharesOf(weights)[position];
  for (unsigned index : units) {
    const Unit &unit = table.units[index];
    // In whole heads; searches reckon with no less than the plain share.
    double share = std::max(plain, sharesOf(unit, weights)[position]);
    // A tied parameter lies here once, however many units use it.
    for (unsigned parameter : unit.parameters) {
      if (llvm::is_contained(seen, parameter))
        continue;
      seen.push_back(parameter);
      const UnitParameter &data = table.parameters[parameter];
      double bytes = data.bytes * (data.divided ? share : 1);
      need.parameter_bytes += bytes;
      if (data.trained && optimizer != OptimizerKind::None)
        need.gradient_bytes += bytes;
    }
    need.activation_bytes +=
        unit.activations.of(share) * samples *
        static_cast<double>(keptMicrobatches(keeping, inFlight));
    need.workspace_bytes =
        std::max(need.workspace_bytes, unit.workspace.of(share) * samples);
    if (optimizer != OptimizerKind::None)
      need.workspace_bytes =
          std::max(need.workspace_bytes, unit.gradient_workspace.of(share));
  }
  need.state_bytes =
      need.gradient_bytes * stateBytesPerByte(optimizer) * ties.owned;
  need.transfer_bytes = ties.received_bytes * held;
  if (hasBackward()) {
    need.transfer_bytes +=
        samples * (kSlotsBesideReceived * ties.received_bytes +
                   kSlotsOfSent * ties.sent_bytes);
    need.exchange_bytes = exchangeBytes(need.gradient_bytes * ties.exchanged,
                                        need.activation_bytes, inFlight);
  }
  return need;
}

} // namespace autohet

//===- GradientTraffic.cpp - who owns, and what an exchange takes ---------===//

#include "GradientTraffic.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>

namespace autohet {

Ownership::Ownership(const ResolvedPlan &plan, llvm::StringRef stateOwner,
                     const CostModel &costs)
    : plan(plan), costs(costs), areSpread(stateOwner == "spread"),
      holders(costs.units().parameters.size()), owners(holders.size()) {
  std::optional<unsigned> pinned;
  if (stateOwner != "spread" && stateOwner != "first")
    pinned = costs.machines().findDevice(stateOwner);
  for (auto [r, replica] : llvm::enumerate(plan.replicas))
    for (auto [s, stage] : llvm::enumerate(replica.stages))
      for (unsigned unit : stage.units)
        for (unsigned parameter : costs.units().units[unit].parameters)
          add(parameter, {static_cast<unsigned>(r), static_cast<unsigned>(s)});
  std::map<std::pair<std::vector<Holder>, unsigned>, unsigned> known;
  for (auto [all, owner] : llvm::zip_equal(holders, owners)) {
    if (stateOwner == "first" && !all.empty())
      owner = 0;
    if (!pinned)
      continue;
    auto found = llvm::find_if(all, [&](const Holder &holder) {
      return llvm::is_contained(stageOf(holder).devices, *pinned);
    });
    if (found != all.end())
      owner = found - all.begin();
  }
  for (auto [all, owner] : llvm::zip_equal(holders, owners))
    groups.push_back(
        known.try_emplace({all, owner.value_or(all.size())}, known.size())
            .first->second);
}

double Ownership::stageShare(const Holder &holder) const {
  double held = 0, owned = 0;
  llvm::SmallDenseSet<unsigned, 16> seen;
  for (unsigned unit : stageOf(holder).units)
    for (unsigned parameter : costs.units().units[unit].parameters) {
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.trained || !seen.insert(parameter).second)
        continue;
      held += data.bytes;
      owned += data.bytes * share(parameter, holder);
    }
  return held > 0 ? owned / held : 0;
}

void Ownership::add(unsigned parameter, Holder holder) {
  // Tied ones of a stage come one after the other.
  for (const Holder &other : llvm::reverse(holders[parameter])) {
    if (other.replica != holder.replica)
      break;
    if (other.stage == holder.stage)
      return;
  }
  holders[parameter].push_back(holder);
}

namespace {

/// Bytes that a device has of parameters with equal holders.
struct SharedBytes {
  unsigned parameter; ///< one of them
  double bytes;
  double count; ///< of parameters
};

std::vector<SharedBytes> sharedBytesOf(const DeviceEvaluation &entry,
                                       const Ownership &owners,
                                       const CostModel &costs) {
  const ResolvedStage &stage = owners.stageOf({entry.replica, entry.stage});
  double share = sharesOf(stage.weights)[entry.position];
  std::map<unsigned, SharedBytes> groups;
  llvm::DenseSet<unsigned> seen;
  for (unsigned unit : stage.units)
    for (unsigned parameter : costs.units().units[unit].parameters) {
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.trained || !seen.insert(parameter).second)
        continue;
      double divisible = costs.units().units[unit].divisible;
      auto &group = groups[owners.groupOf(parameter)];
      group.parameter = parameter;
      group.count += 1;
      group.bytes += data.bytes * (1 - divisible + divisible * share);
    }
  std::vector<SharedBytes> result;
  for (auto &[number, group] : groups)
    result.push_back(group);
  return result;
}

/// The holders' devices that this one meets, by node, and their turns.
struct Party {
  Holder holder;
  unsigned device, turn; ///< in the order of holders
};
using Parties = std::map<unsigned, llvm::SmallVector<Party, 8>>;

Parties partiesOf(const DeviceEvaluation &entry, unsigned parameter,
                  const Ownership &owners, const CostModel &costs) {
  Parties parties;
  Holder self = {entry.replica, entry.stage};
  for (auto [turn, holder] : llvm::enumerate(owners.of(parameter))) {
    llvm::ArrayRef<unsigned> devices = owners.stageOf(holder).devices;
    unsigned device = holder == self ? entry.device
                                     : devices[entry.position % devices.size()];
    parties[costs.machines().devices()[device].node].push_back(
        {holder, device, static_cast<unsigned>(turn)});
  }
  return parties;
}

} // namespace

Traffic trafficOf(const DeviceEvaluation &entry, const Ownership &owners,
                  const CostModel &costs, GradientExchange how) {
  Holder self = {entry.replica, entry.stage};
  unsigned ownNode = costs.machines().devices()[entry.device].node;
  Traffic traffic;
  double out[2] = {}, in[2] = {}, latency[2] = {};
  llvm::DenseSet<unsigned> met[2];
  auto meet = [&](unsigned hop, unsigned device) {
    if (met[hop].insert(device).second)
      latency[hop] += costs.link(entry.device, device).latency_s;
  };
  auto send = [&](unsigned hop, unsigned device, double bytes) {
    out[hop] += bytes / costs.link(entry.device, device).bandwidth_bytes_per_s;
    meet(hop, device);
  };
  auto receive = [&](unsigned hop, unsigned device, double bytes) {
    in[hop] += bytes / costs.link(device, entry.device).bandwidth_bytes_per_s;
    meet(hop, device);
  };
  for (const SharedBytes &group : sharedBytesOf(entry, owners, costs)) {
    double share = owners.share(group.parameter, self);
    double mine = share * group.bytes;
    Parties parties = partiesOf(entry, group.parameter, owners, costs);
    llvm::ArrayRef<Party> inside = parties[ownNode];
    unsigned turn = 0; // this device's, as owner
    for (const Party &party : inside)
      if (party.holder == self)
        turn = party.turn;
    bool relays = how == GradientExchange::Hierarchical;
    size_t parts = relays ? parties.size() : owners.of(group.parameter).size();
    traffic.update += costs.updateWork(mine, share * group.count);
    traffic.update += CostModel::sumWork(mine, share * group.count,
                                         static_cast<double>(parts));
    for (auto &[node, others] : parties)
      for (const Party &party : others) {
        if (party.holder == self)
          continue;
        double theirShare = owners.share(group.parameter, party.holder);
        double theirs = theirShare * group.bytes;
        if (node == ownNode || !relays) {
          send(0, party.device, theirs);
          receive(0, party.device, mine);
          continue;
        }
        // What goes to that owner, through a relay here.
        const Party &relay = inside[party.turn % inside.size()];
        if (relay.device != entry.device) {
          send(0, relay.device, theirs);
        } else {
          for (const Party &member : inside)
            if (member.device != entry.device)
              receive(0, member.device, theirs);
          send(inside.size() > 1, party.device, theirs);
          traffic.update +=
              CostModel::sumWork(theirs, theirShare * group.count,
                                 static_cast<double>(inside.size()));
        }
        // What comes for this owner, through a relay there.
        if (&party == &others[turn % others.size()])
          receive(others.size() > 1, party.device, mine);
      }
  }
  traffic.first_s = std::max(out[0], in[0]) + latency[0];
  traffic.second_s = std::max(out[1], in[1]) + latency[1];
  return traffic;
}

} // namespace autohet

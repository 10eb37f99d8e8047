//===- GradientTraffic.cpp - what an exchange takes -----------------------===//

#include "GradientTraffic.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

const GradientTraffic::Held &
GradientTraffic::heldBy(const DeviceEvaluation &entry, unsigned make) {
  auto [place, isNew] = held.try_emplace({make, entry.stage, entry.position});
  Held &made = place->second;
  if (!isNew)
    return made;
  Holder self = {entry.replica, entry.stage};
  std::map<unsigned, HeldBytes> found; // of each class
  llvm::DenseSet<unsigned> seen;
  for (unsigned unit : owners.stageOf(self).units)
    for (unsigned parameter : costs.units().units[unit].parameters) {
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.trained || !seen.insert(parameter).second)
        continue;
      bool isCut = owners.isCutByOthers(parameter, self, entry.position);
      owners.visitCells(parameter, self, entry.position,
                        [&](unsigned cells, double width) {
                          HeldBytes &own = found[cells];
                          own.cell_class = cells;
                          own.bytes += data.bytes * width;
                          own.count += 1;
                          if (isCut)
                            made.cut_bytes += data.bytes * width;
                        });
    }
  for (const auto &[number, own] : found)
    made.classes.push_back(own);
  return made;
}

namespace {

/// What one device sends and receives in one hop.
struct Hop {
  LinkSeconds link;
  double latency_s = 0;
  CardBytes card;

  double seconds() const { return std::max(link.out_s, link.in_s) + latency_s; }
};

} // namespace

Traffic GradientTraffic::of(const DeviceEvaluation &entry, unsigned make,
                            GradientExchange how) {
  llvm::ArrayRef<Device> devices = costs.machines().devices();
  const DeviceKind &kind = costs.machines().kindOf(entry.device);
  bool relays = how == GradientExchange::Hierarchical;
  Traffic traffic;
  Hop first, second;
  auto sendingSeconds = [&](unsigned device, double bytes) {
    return bytes / costs.link(entry.device, device).bandwidth_bytes_per_s;
  };
  auto receivingSeconds = [&](unsigned device, double bytes) {
    return bytes / costs.link(device, entry.device).bandwidth_bytes_per_s;
  };
  auto cardBytes = [&](unsigned device, double bytes) {
    return devices[device].node == devices[entry.device].node ? 0 : bytes;
  };
  auto meet = [&](Hop &hop, unsigned device) {
    hop.latency_s =
        std::max(hop.latency_s, costs.link(entry.device, device).latency_s);
  };
  // `back`: where the owner's new bytes take the same way.
  auto send = [&](Hop &hop, LinkSeconds &there, LinkSeconds &back,
                  unsigned device, double bytes) {
    double seconds = sendingSeconds(device, bytes);
    hop.link.out_s += seconds;
    there.out_s += seconds;
    hop.card.out += cardBytes(device, bytes);
    back.in_s += receivingSeconds(device, bytes);
    meet(hop, device);
  };
  auto receive = [&](Hop &hop, LinkSeconds &there, LinkSeconds &back,
                     unsigned device, double bytes) {
    double seconds = receivingSeconds(device, bytes);
    hop.link.in_s += seconds;
    there.in_s += seconds;
    hop.card.in += cardBytes(device, bytes);
    traffic.buffer_bytes += bytes;
    back.out_s += sendingSeconds(device, bytes);
    meet(hop, device);
  };
  const Held &held = heldBy(entry, make);
  traffic.buffer_bytes = held.cut_bytes;
  for (const HeldBytes &data : held.classes) {
    const CellClass &cells = owners.cellClasses()[data.cell_class];
    ClassTraffic &own = traffic.classes.emplace_back();
    own.cell_class = data.cell_class;
    size_t ownNode = 0, ownTurn = 0; // among the node's, and all, parties
    for (size_t node = 0; node < cells.nodeCount(); ++node)
      if (devices[cells.ofNode(node).front().device].node ==
          devices[entry.device].node)
        ownNode = node;
    llvm::ArrayRef<Party> inside = cells.ofNode(ownNode);
    while (cells.parties[ownTurn].device != entry.device)
      ++ownTurn;
    double share = cells.parties[ownTurn].share, mine = share * data.bytes;
    // Those of its node, and of each other node the relay's sum.
    size_t parts =
        relays ? inside.size() + cells.nodeCount() - 1 : cells.parties.size();
    Work sums = costs.normWork(mine, share * data.count);
    sums += CostModel::sumWork(mine, share * data.count,
                               static_cast<double>(parts));
    Work relayed;
    size_t turn = 0; // the party's, as owner
    for (size_t node = 0; node < cells.nodeCount(); ++node) {
      llvm::ArrayRef<Party> others = cells.ofNode(node);
      // What comes for this owner, through a relay there.
      const Party &theirRelay = others[ownTurn % others.size()];
      for (const Party &party : others) {
        size_t theirTurn = turn++;
        if (party.device == entry.device)
          continue;
        double theirs = party.share * data.bytes;
        if (node == ownNode || !relays) {
          send(first, own.first, own.back, party.device, theirs);
          receive(first, own.first, own.back, party.device, mine);
          continue;
        }
        // What goes to that owner, through a relay here.
        const Party &relay = inside[theirTurn % inside.size()];
        if (inside.size() == 1) {
          send(first, own.first, own.back, party.device, theirs);
        } else if (relay.device != entry.device) {
          send(first, own.first, own.passed_on, relay.device, theirs);
        } else {
          for (const Party &member : inside)
            if (member.device != entry.device)
              receive(first, own.first, own.passed_on, member.device, theirs);
          send(second, own.second, own.back, party.device, theirs);
          relayed += CostModel::sumWork(theirs, party.share * data.count,
                                        static_cast<double>(inside.size()));
        }
        if (&party == &theirRelay) {
          bool isLonely = others.size() == 1;
          receive(isLonely ? first : second, isLonely ? own.first : own.second,
                  own.back, party.device, mine);
        }
      }
    }
    own.relay_s = kind.seconds(relayed);
    own.sum_s = kind.seconds(sums);
    own.update_s = kind.seconds(costs.updateWork(mine, share * data.count));
    if (data.bytes > 0)
      for (double *seconds :
           {&own.first.out_s, &own.first.in_s, &own.second.out_s,
            &own.second.in_s, &own.back.out_s, &own.back.in_s,
            &own.passed_on.out_s, &own.passed_on.in_s, &own.relay_s, &own.sum_s,
            &own.update_s})
        *seconds /= data.bytes;
  }
  traffic.first_s = first.seconds();
  traffic.second_s = second.seconds();
  traffic.latency_s = first.latency_s;
  traffic.first_card = first.card;
  traffic.second_card = second.card;
  return traffic;
}

} // namespace autohet

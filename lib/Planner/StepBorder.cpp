//===- StepBorder.cpp - from the last backward to the next forward --------===//

#include "StepBorder.h"
#include "autohet/Plan/Exchanges.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();

StepBorder::StepBorder(const ResolvedPlan &plan, const PlanEvaluation &result,
                       const Ownership &owners, const CostModel &costs)
    : plan(plan), result(result), owners(owners), costs(costs),
      piecesOf(costs.units().parameters.size()) {
  makePieces();
  orderTurns();
}

// From the last unit to the first, as buckets are filled: what the same devices
// hold and one owns goes together up to a bucket's size.
void StepBorder::makePieces() {
  const UnitTable &table = costs.units();
  llvm::ArrayRef<CellClass> classes = owners.cellClasses();
  std::vector<double> most; // of a class's bytes, for one bucket an owner
  for (const CellClass &cells : classes)
    most.push_back(kBucketBytes / cells.largestShare());
  std::vector<unsigned> unitOf(piecesOf.size(), ~0u); // the first that has it
  for (auto [unit, data] : llvm::enumerate(table.units))
    for (unsigned parameter : data.parameters)
      unitOf[parameter] = std::min<unsigned>(unitOf[parameter], unit);
  std::vector<int> open(classes.size(), -1); // may still grow
  for (unsigned unit = table.units.size(); unit-- > 0;) {
    llvm::SmallVector<unsigned, 8> own;
    llvm::SmallVector<GradientPiece, 4> fresh; // one a class
    for (unsigned parameter : table.units[unit].parameters) {
      const UnitParameter &data = table.parameters[parameter];
      if (!data.trained || unitOf[parameter] != unit)
        continue;
      own.push_back(parameter);
      owners.visitAllCells(parameter, [&](unsigned cells, double width) {
        auto place = llvm::find_if(fresh, [&](const GradientPiece &piece) {
          return piece.cell_class == cells;
        });
        if (place == fresh.end()) {
          fresh.emplace_back().cell_class = cells;
          place = &fresh.back();
          place->first_unit = unit;
        }
        place->bytes += data.bytes * width;
        place->message_bytes =
            std::max(place->message_bytes, data.bytes * width);
      });
    }
    for (GradientPiece &piece : fresh) {
      double limit = most[piece.cell_class];
      piece.message_bytes =
          std::max(piece.message_bytes, std::min(piece.bytes, limit));
      int &last = open[piece.cell_class];
      if (last >= 0 && pieces[last].bytes + piece.bytes <= limit) {
        pieces[last] += piece;
        continue;
      }
      last = static_cast<int>(pieces.size());
      pieces.push_back(piece);
    }
    for (unsigned parameter : own)
      owners.visitAllCells(parameter, [&](unsigned cells, double) {
        piecesOf[parameter].push_back(
            {cells, static_cast<unsigned>(open[cells])});
      });
  }
}

const StepBorder::StageMeetings &
StepBorder::meetingsOf(const DeviceEvaluation &entry) {
  auto [place, isNew] = stages.try_emplace(
      {result.make_of_replica[entry.replica], entry.stage, entry.position});
  StageMeetings &made = place->second;
  if (!isNew)
    return made;
  const ResolvedReplica &replica = plan.replicas[entry.replica];
  const ResolvedStage &stage = replica.stages[entry.stage];
  Holder self = {entry.replica, entry.stage};
  llvm::SmallDenseMap<unsigned, unsigned, 32> meetingOf; // of each piece
  std::vector<bool> isSeen(piecesOf.size());
  for (unsigned unit : stage.units) {
    PassSeconds seconds =
        costs.unitSeconds(unit, stage, replica.microbatch_size);
    for (unsigned parameter : costs.units().units[unit].parameters) {
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.trained || isSeen[parameter])
        continue;
      isSeen[parameter] = true;
      bool isCut = owners.isCutByOthers(parameter, self, entry.position);
      owners.visitCells(
          parameter, self, entry.position, [&](unsigned cells, double width) {
            unsigned piece =
                llvm::find_if(piecesOf[parameter], [&](const auto &of) {
                  return of.first == cells;
                })->second;
            auto [known, isFirst] =
                meetingOf.try_emplace(piece, made.meetings.size());
            if (isFirst)
              made.meetings.push_back({piece, made.seconds.forward_s,
                                       made.seconds.backward_s, seconds});
            if (!isCut)
              return;
            Meeting &meeting = made.meetings[known->second];
            meeting.cut_bytes += data.bytes * width;
            ++meeting.cut_count;
          });
    }
    made.seconds += seconds;
  }
  // Backward goes through the units the other way.
  for (Meeting &meeting : made.meetings)
    meeting.backward_s = made.seconds.backward_s - meeting.backward_s;
  for (unsigned number = 0; number < made.meetings.size(); ++number)
    made.by_need.push_back(number);
  llvm::sort(made.by_need, [&](unsigned a, unsigned b) {
    unsigned first = made.meetings[a].piece, second = made.meetings[b].piece;
    return std::pair(pieces[first].first_unit, first) <
           std::pair(pieces[second].first_unit, second);
  });
  return made;
}

double StepBorder::firstMessage(const DeviceEvaluation &entry) {
  const StageMeetings &stage = meetingsOf(entry);
  double bytes = 0;
  for (const Meeting &meeting : stage.meetings)
    bytes += bytesOf(meeting);
  return bytes > 0 ? pieces[stage.meetings.front().piece].message_bytes / bytes
                   : 0;
}

void StepBorder::makeMembers(llvm::ArrayRef<Traffic> traffic,
                             llvm::ArrayRef<unsigned> kinds) {
  llvm::ArrayRef<Device> devices = costs.machines().devices();
  members.assign(traffic.size(), {});
  relays = false;
  for (auto [entry, kind] : llvm::zip_equal(result.devices, kinds)) {
    Member &member = members[kind];
    if (member.entry)
      continue;
    member.entry = &entry;
    member.traffic = &traffic[kind];
    member.stage = &meetingsOf(entry);
    member.node = devices[entry.device].node;
    // Where no node has several holders all is direct.
    relays |= member.traffic->second_s > 0;
    const DeviceKind &kindOfDevice = costs.machines().kindOf(entry.device);
    for (const Meeting &meeting : member.stage->meetings) {
      unsigned number = pieces[meeting.piece].cell_class;
      member.ways.push_back(&member.traffic->of(number));
      const CellClass &cells = owners.cellClasses()[number];
      bool isAlone = true;
      for (const Party &party : cells.parties)
        isAlone &= party.device == entry.device ||
                   devices[party.device].node != member.node;
      member.are_alone.push_back(isAlone);
      double cut_s = kindOfDevice.seconds(
          CostModel::copyWork(meeting.cut_bytes, meeting.cut_count));
      member.cut_s += cut_s;
      member.assemble_s += 2 * cut_s;
    }
  }
}

StepBorderTimes StepBorder::time(llvm::ArrayRef<Traffic> traffic,
                                 llvm::ArrayRef<unsigned> kinds) {
  makeMembers(traffic, kinds);
  StepBorderTimes times;
  times.replicas.resize(plan.replicas.size());
  sendParameters();
  receiveParameters();
  // A replica begins when all its stages can.
  for (auto [entry, kind] : llvm::zip_equal(result.devices, kinds)) {
    ReplicaBorder &replica = times.replicas[entry.replica];
    replica.update_s = std::max(replica.update_s, members[kind].update_s);
    replica.late_s = std::max(replica.late_s, members[kind].late_s);
  }
  for (auto [entry, kind] : llvm::zip_equal(result.devices, kinds)) {
    double &late = members[kind].late_s;
    late = std::max(late, times.replicas[entry.replica].late_s);
  }
  sendGradients();
  receiveGradients();
  if (relays)
    relayGradients();
  for (auto [entry, kind] : llvm::zip_equal(result.devices, kinds)) {
    ReplicaBorder &replica = times.replicas[entry.replica];
    replica.sent_s = std::max(replica.sent_s, members[kind].sent_s);
    replica.end_s = std::max(replica.end_s, members[kind].end_s);
  }
  for (const ReplicaBorder &replica : times.replicas)
    times.end_s = std::max({times.end_s, replica.sent_s, replica.end_s});
  times.end_s = std::max(times.end_s, addUp());
  return times;
}

void StepBorder::clear(Passings &passings) const {
  passings.assign(pieces.size(), {never, 0});
}

StepBorder::Passings &StepBorder::ofNode(std::map<unsigned, Passings> &nodes,
                                         unsigned node) const {
  auto [place, isNew] = nodes.try_emplace(node);
  if (isNew)
    clear(place->second);
  return place->second;
}

//===-- New parameters ----------------------------------------------------===//

// As units need them. What relays pass on leaves behind what of their own is on
// its way when it comes: about a round of owners, and a piece is a bucket of
// each.
void StepBorder::orderTurns() {
  std::vector<unsigned> byNeed(pieces.size());
  std::iota(byNeed.begin(), byNeed.end(), 0);
  llvm::sort(byNeed, [&](unsigned a, unsigned b) {
    return std::pair(pieces[a].first_unit, a) <
           std::pair(pieces[b].first_unit, b);
  });
  llvm::DenseSet<unsigned> all;
  std::vector<size_t> ownersOf; // of each class
  for (const CellClass &cells : owners.cellClasses()) {
    size_t &count = ownersOf.emplace_back();
    for (const Party &party : cells.parties)
      if (party.share > 0) {
        ++count;
        all.insert(party.device);
      }
  }
  std::vector<Turn> ofOwners, ofRelays;
  size_t buckets = 0;
  for (unsigned piece : byNeed) {
    ofOwners.push_back({buckets, /*is_relays=*/false, piece});
    buckets += ownersOf[pieces[piece].cell_class];
    ofRelays.push_back({buckets + all.size(), /*is_relays=*/true, piece});
  }
  std::merge(ofOwners.begin(), ofOwners.end(), ofRelays.begin(), ofRelays.end(),
             std::back_inserter(turns));
}

void StepBorder::sendParameters() {
  clear(direct);
  inside.clear();
  meeters.assign(pieces.size(), {});
  for (auto [index, member] : llvm::enumerate(members)) {
    member.sent_s = member.come_back_s = 0;
    member.own_left = 0;
    for (auto [number, meeting] : llvm::enumerate(member.stage->meetings)) {
      meeters[meeting.piece].push_back({index, number});
      member.own_left += member.ways[number]->isOwners();
    }
  }
  for (const Turn &turn : turns)
    for (auto [index, number] : meeters[turn.piece]) {
      if (!turn.is_relays)
        updateAndSend(members[index], number);
      else if (relays)
        passParametersOn(members[index], number);
    }
}

// The first forward waits for the device's own updates, whoever they are for.
void StepBorder::updateAndSend(Member &member, unsigned number) {
  const ClassTraffic *way = member.ways[number];
  if (!way->isOwners())
    return;
  --member.own_left;
  const Meeting &meeting = member.stage->meetings[number];
  Passing &passing = direct[meeting.piece];
  passing.ready_s = std::min(passing.ready_s, member.update_s);
  member.update_s += way->update_s * bytesOf(meeting);
  member.sent_s = std::max(member.sent_s, member.update_s) +
                  way->back.out_s * bytesOf(meeting);
  passing.left_s = std::max(passing.left_s, member.sent_s);
}

// While this has not come, what it has updated itself leaves: as long as there
// is some, the port is not idle.
void StepBorder::passParametersOn(Member &member, unsigned number) {
  const ClassTraffic *way = member.ways[number];
  const Meeting &meeting = member.stage->meetings[number];
  const Passing &from = direct[meeting.piece];
  if (way->back.in_s > 0)
    member.come_back_s =
        std::max(from.left_s, std::max(member.come_back_s, from.ready_s) +
                                  way->back.in_s * bytesOf(meeting));
  if (way->passed_on.out_s == 0)
    return;
  Passing &passing = ofNode(inside, member.node)[meeting.piece];
  passing.ready_s = std::min(passing.ready_s, member.come_back_s);
  double seconds = way->passed_on.out_s * bytesOf(meeting);
  double sent_s =
      std::max(member.sent_s, member.come_back_s + member.traffic->latency_s) +
      seconds;
  passing.left_s = std::max(passing.left_s, sent_s);
  member.sent_s = member.own_left > 0 ? member.sent_s + seconds : sent_s;
}

// Each unit of the first forward waits for its own parameters.
void StepBorder::receiveParameters() {
  for (Member &member : members) {
    double latency_s = member.traffic->latency_s;
    double start_s = result.timelineOf(member.entry->replica)
                         .first(member.entry->stage)
                         .start_s;
    double there_s = 0, parts_s = member.update_s;
    member.update_s =
        std::max(0.0, member.update_s + member.assemble_s - start_s);
    member.late_s = member.update_s;
    for (unsigned number : member.stage->by_need) {
      const Meeting &meeting = member.stage->meetings[number];
      const ClassTraffic *way = member.ways[number];
      const GradientPiece &piece = pieces[meeting.piece];
      double in_s = (way->back.in_s + way->passed_on.in_s) * piece.bytes;
      if (in_s == 0)
        continue;
      double message = piece.message();
      member.late_s =
          std::max(member.late_s, there_s + in_s * message + latency_s -
                                      start_s - meeting.forward_s);
      if (way->back.in_s > 0) {
        const Passing &from = direct[meeting.piece];
        there_s = std::max(from.left_s, std::max(there_s, from.ready_s) +
                                            way->back.in_s * piece.bytes);
      }
      if (way->passed_on.in_s > 0) {
        const Passing &from = ofNode(inside, member.node)[meeting.piece];
        there_s = std::max(from.left_s, std::max(there_s, from.ready_s) +
                                            way->passed_on.in_s * piece.bytes);
      }
      // The last message is for the end of the unit.
      member.late_s = std::max(
          member.late_s, there_s + latency_s - start_s - meeting.forward_s -
                             meeting.unit.forward_s * (1 - message));
      if (meeting.cut_count > 0)
        parts_s = std::max(parts_s, there_s + latency_s);
    }
    member.late_s =
        std::max(member.late_s, parts_s + member.assemble_s - start_s);
  }
}

//===-- Gradients ---------------------------------------------------------===//

void StepBorder::sendGradients() {
  clear(direct);
  inside.clear();
  for (Member &member : members) {
    double latency_s = member.traffic->latency_s;
    const PipelineTimeline &timeline = result.timelineOf(member.entry->replica);
    PipelineCommand last = timeline.last(member.entry->stage);
    double begin_s = member.late_s + last.start_s, sums_s = member.cut_s;
    member.backward_end_s = member.late_s + last.end_s + member.cut_s;
    member.sent_s = 0;
    for (auto [meeting, way, isAlone] : llvm::reverse(llvm::zip_equal(
             member.stage->meetings, member.ways, member.are_alone))) {
      const GradientPiece &piece = pieces[meeting.piece];
      sums_s += (way->sum_s + way->relay_s) * piece.bytes;
      double ready = begin_s + meeting.backward_s;
      double out_s = way->first.out_s * piece.bytes, message = piece.message();
      double first = ready - meeting.unit.backward_s * (1 - message);
      if (out_s > 0)
        member.sent_s = std::max(std::max(member.sent_s, first) + out_s,
                                 ready + out_s * message);
      for (Passings *passings :
           {relays ? &ofNode(inside, member.node) : nullptr,
            !relays || isAlone ? &direct : nullptr}) {
        if (!passings)
          continue;
        Passing &passing = (*passings)[meeting.piece];
        passing.ready_s = std::min(passing.ready_s, ready);
        if (out_s > 0)
          passing.left_s = std::max(passing.left_s, member.sent_s + latency_s);
      }
    }
    member.end_s = member.late_s + last.end_s + sums_s;
  }
}

void StepBorder::receiveGradients() {
  for (Member &member : members) {
    Passings *near = relays ? &ofNode(inside, member.node) : nullptr;
    double come_s = 0;
    member.comes_from_s = never;
    member.come_s.resize(member.ways.size());
    for (unsigned number : llvm::reverse(member.stage->by_need)) {
      const Meeting &meeting = member.stage->meetings[number];
      const ClassTraffic *way = member.ways[number];
      if (way->first.in_s > 0) {
        Passing from = direct[meeting.piece];
        if (near) {
          const Passing &other = (*near)[meeting.piece];
          from = {std::min(from.ready_s, other.ready_s),
                  std::max(from.left_s, other.left_s)};
        }
        member.comes_from_s =
            std::min(member.comes_from_s, std::max(come_s, from.ready_s));
        come_s = std::max(from.left_s, std::max(come_s, from.ready_s) +
                                           way->first.in_s * bytesOf(meeting) +
                                           member.traffic->latency_s);
      }
      member.come_s[number] = come_s;
    }
  }
}

// Relays add up behind their own last backward, all that they pass on before
// what they own.
void StepBorder::relayGradients() {
  clear(relayed);
  for (Member &member : members) {
    member.relayed_s = member.backward_end_s;
    double sent_s = member.sent_s;
    for (unsigned number : llvm::reverse(member.stage->by_need)) {
      const Meeting &meeting = member.stage->meetings[number];
      const ClassTraffic *way = member.ways[number];
      if (way->second.out_s == 0)
        continue;
      double bytes = bytesOf(meeting);
      double added_s = std::max(member.relayed_s, member.come_s[number]);
      Passing &passing = relayed[meeting.piece];
      passing.ready_s = std::min(passing.ready_s, added_s);
      member.relayed_s = added_s + way->relay_s * bytes;
      sent_s = std::max(sent_s, member.relayed_s) + way->second.out_s * bytes;
      passing.left_s =
          std::max(passing.left_s, sent_s + member.traffic->latency_s);
    }
    member.sent_s = sent_s;
  }
}

// Each owner adds up, and takes the norm of, what has come.
double StepBorder::addUp() {
  double end_s = 0;
  for (const Member &member : members) {
    double done_s = std::max(member.backward_end_s, member.relayed_s);
    // What relays send takes its turn with the rest.
    double come_s = 0, busy_s = 0;
    for (unsigned number : llvm::reverse(member.stage->by_need)) {
      const Meeting &meeting = member.stage->meetings[number];
      const ClassTraffic *way = member.ways[number];
      double bytes = bytesOf(meeting);
      busy_s += (way->first.in_s + way->second.in_s) * bytes;
      if (way->sum_s == 0)
        continue;
      if (way->first.in_s > 0)
        done_s = std::max(done_s, member.come_s[number]);
      if (way->second.in_s > 0) {
        const Passing &from = relayed[meeting.piece];
        double begin_s = std::max(come_s, from.ready_s);
        come_s = std::max(
            {from.left_s,
             begin_s + way->second.in_s * bytes + member.traffic->latency_s,
             std::min(member.comes_from_s, from.ready_s) + busy_s});
        done_s = std::max(done_s, come_s);
      }
      done_s += way->sum_s * bytes;
    }
    end_s = std::max(end_s, done_s);
  }
  return end_s;
}

} // namespace autohet

//===- StepBorder.cpp - from the last backward to the next forward --------===//

#include "StepBorder.h"
#include "autohet/Plan/Exchanges.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();

StepBorder::StepBorder(const ResolvedPlan &plan, const PlanEvaluation &result,
                       const Ownership &owners, const CostModel &costs)
    : plan(plan), result(result), owners(owners), costs(costs),
      pieceOf(costs.units().parameters.size(), -1) {
  makePieces();
}

// From the last unit to the first, as buckets are filled: what has the same
// holders and owner goes together up to a bucket's size.
void StepBorder::makePieces() {
  const UnitTable &table = costs.units();
  std::vector<double> part(owners.groupCount()); // of one owner's device
  for (auto [group, share] : llvm::enumerate(part))
    for (const Holder &holder : owners.holdersOf(group))
      share = std::max(share, owners.share(group, holder, 0) /
                                  static_cast<double>(
                                      owners.stageOf(holder).devices.size()));
  std::vector<unsigned> unitOf(pieceOf.size(), ~0u); // the first that has it
  for (auto [unit, data] : llvm::enumerate(table.units))
    for (unsigned parameter : data.parameters)
      unitOf[parameter] = std::min<unsigned>(unitOf[parameter], unit);
  std::vector<int> open(owners.groupCount(), -1); // may still grow
  for (unsigned unit = table.units.size(); unit-- > 0;) {
    llvm::SmallVector<unsigned, 8> own;
    llvm::SmallVector<GradientPiece, 2> fresh; // one a group
    for (unsigned parameter : table.units[unit].parameters) {
      const UnitParameter &data = table.parameters[parameter];
      if (!data.trained || unitOf[parameter] != unit)
        continue;
      own.push_back(parameter);
      unsigned group = owners.groupOf(parameter);
      auto place = llvm::find_if(fresh, [&](const GradientPiece &piece) {
        return piece.group == group;
      });
      if (place == fresh.end()) {
        fresh.emplace_back().group = group;
        place = &fresh.back();
      }
      (data.divided ? place->divided_bytes : place->whole_bytes) += data.bytes;
      place->message_bytes = std::max(place->message_bytes, data.bytes);
    }
    for (GradientPiece &piece : fresh) {
      double most = kBucketBytes / part[piece.group]; // of one bucket
      piece.message_bytes =
          std::max(piece.message_bytes, std::min(piece.all(), most));
      int &last = open[piece.group];
      if (last >= 0 && pieces[last].all() + piece.all() <= most) {
        pieces[last] += piece;
        continue;
      }
      last = static_cast<int>(pieces.size());
      pieces.push_back(piece);
    }
    for (unsigned parameter : own)
      pieceOf[parameter] = open[owners.groupOf(parameter)];
  }
}

const StepBorder::StageMeetings &
StepBorder::meetingsOf(const DeviceEvaluation &entry) {
  auto [place, isNew] =
      stages.try_emplace({result.make_of_replica[entry.replica], entry.stage});
  StageMeetings &made = place->second;
  if (!isNew)
    return made;
  const ResolvedReplica &replica = plan.replicas[entry.replica];
  const ResolvedStage &stage = replica.stages[entry.stage];
  std::vector<int> meetingOf(pieces.size(), -1);
  std::vector<bool> isSeen(pieceOf.size());
  llvm::SmallDenseMap<unsigned, bool, 4> isCut; // each group
  Holder self = {entry.replica, entry.stage};
  for (unsigned unit : stage.units) {
    PassSeconds seconds =
        costs.unitSeconds(unit, stage, replica.microbatch_size);
    for (unsigned parameter : costs.units().units[unit].parameters) {
      int piece = pieceOf[parameter];
      if (piece < 0 || isSeen[parameter])
        continue;
      isSeen[parameter] = true;
      if (meetingOf[piece] < 0) {
        meetingOf[piece] = static_cast<int>(made.meetings.size());
        made.meetings.push_back({static_cast<unsigned>(piece),
                                 made.seconds.forward_s,
                                 made.seconds.backward_s, seconds});
      }
      unsigned group = owners.groupOf(parameter);
      auto [known, isFirst] = isCut.try_emplace(group);
      if (isFirst)
        known->second = owners.isCutByOthers(group, self);
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.divided || !known->second)
        continue;
      Meeting &meeting = made.meetings[meetingOf[piece]];
      meeting.cut_bytes += data.bytes;
      ++meeting.cut_count;
    }
    made.seconds += seconds;
  }
  // Backward goes through the units the other way.
  for (Meeting &meeting : made.meetings)
    meeting.backward_s = made.seconds.backward_s - meeting.backward_s;
  return made;
}

double StepBorder::firstMessage(const DeviceEvaluation &entry) {
  const StageMeetings &stage = meetingsOf(entry);
  double bytes = 0;
  for (const Meeting &meeting : stage.meetings)
    bytes += pieces[meeting.piece].all();
  return bytes > 0 ? pieces[stage.meetings.front().piece].message_bytes / bytes
                   : 0;
}

StepBorderTimes StepBorder::time(llvm::ArrayRef<Traffic> traffic,
                                 llvm::ArrayRef<unsigned> kinds) {
  // Where no node has several holders all is direct.
  relays = llvm::any_of(
      traffic, [](const Traffic &entry) { return entry.second_s > 0; });
  members.assign(traffic.size(), {});
  StepBorderTimes times;
  times.replicas.resize(plan.replicas.size());
  for (auto [entry, kind] : llvm::zip_equal(result.devices, kinds)) {
    Member &member = members[kind];
    if (member.entry)
      continue;
    const ResolvedStage &stage =
        plan.replicas[entry.replica].stages[entry.stage];
    member.entry = &entry;
    member.traffic = &traffic[kind];
    member.stage = &meetingsOf(entry);
    member.share = sharesOf(stage.weights)[entry.position];
    const DeviceKind &kindOfDevice = costs.machines().kindOf(entry.device);
    for (const Meeting &meeting : member.stage->meetings) {
      double cut = meeting.cut_bytes * member.share;
      Work work = CostModel::copyWork(cut, meeting.cut_count);
      member.cut_s += kindOfDevice.seconds(work);
      member.assemble_s += 2 * kindOfDevice.seconds(work);
    }
  }
  updateAndSend();
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

// The first forward waits for the device's own updates, whoever they are for.
void StepBorder::updateAndSend() {
  left_s.assign(pieces.size(), 0);
  ready_s.assign(pieces.size(), never);
  for (Member &member : members) {
    double sent_s = 0;
    for (const Meeting &meeting : member.stage->meetings) {
      const GradientPiece &piece = pieces[meeting.piece];
      const GroupTraffic &group = member.traffic->of(piece.group);
      double bytes = piece.of(member.share);
      if (group.update_s == 0)
        continue;
      double &ready = ready_s[meeting.piece];
      ready = std::min(ready, member.update_s);
      member.update_s += group.update_s * bytes;
      sent_s = std::max(sent_s, member.update_s) + group.back_out_s * bytes;
      double &left = left_s[meeting.piece];
      left = std::max(left, sent_s);
    }
  }
}

// Each unit of the first forward waits for its own parameters.
void StepBorder::receiveParameters() {
  for (Member &member : members) {
    const Traffic &traffic = *member.traffic;
    double start_s = result.timelineOf(member.entry->replica)
                         .first(member.entry->stage)
                         .start_s;
    double there_s = 0, parts_s = member.update_s;
    member.update_s =
        std::max(0.0, member.update_s + member.assemble_s - start_s);
    member.late_s = member.update_s;
    // Through relays it takes both hops, one behind the other.
    double direct_s = 0;
    for (const Meeting &meeting : member.stage->meetings) {
      const GroupTraffic &group = traffic.of(pieces[meeting.piece].group);
      direct_s += std::max(group.out_s, group.in_s) *
                  pieces[meeting.piece].of(member.share);
    }
    double hops = direct_s > 0 ? 1 + traffic.second_s / direct_s : 1;
    for (const Meeting &meeting : member.stage->meetings) {
      const GradientPiece &piece = pieces[meeting.piece];
      const GroupTraffic &group = traffic.of(piece.group);
      double in_s = (relays ? hops * std::max(group.out_s, group.in_s)
                            : group.back_in_s) *
                    piece.of(member.share);
      if (in_s == 0)
        continue;
      double message = piece.message_bytes / piece.all();
      member.late_s =
          std::max(member.late_s, there_s + in_s * message + traffic.latency_s -
                                      start_s - meeting.forward_s);
      there_s = std::max(there_s, ready_s[meeting.piece]) + in_s;
      if (!relays)
        there_s = std::max(there_s, left_s[meeting.piece]);
      // The last message is for the end of the unit.
      member.late_s =
          std::max(member.late_s, there_s + traffic.latency_s - start_s -
                                      meeting.forward_s -
                                      meeting.unit.forward_s * (1 - message));
      if (meeting.cut_count > 0)
        parts_s = std::max(parts_s, there_s + traffic.latency_s);
    }
    member.late_s =
        std::max(member.late_s, parts_s + member.assemble_s - start_s);
  }
}

void StepBorder::sendGradients() {
  left_s.assign(pieces.size(), 0);
  ready_s.assign(pieces.size(), never);
  for (Member &member : members) {
    const Traffic &traffic = *member.traffic;
    PipelineCommand last =
        result.timelineOf(member.entry->replica).last(member.entry->stage);
    double begin_s = member.late_s + last.start_s;
    double sums_s = member.cut_s;
    for (const Meeting &meeting : llvm::reverse(member.stage->meetings)) {
      const GradientPiece &piece = pieces[meeting.piece];
      const GroupTraffic &group = traffic.of(piece.group);
      double bytes = piece.of(member.share);
      sums_s += group.sum_s * bytes;
      double ready = begin_s + meeting.backward_s;
      ready_s[meeting.piece] = std::min(ready_s[meeting.piece], ready);
      double out_s =
          (relays ? std::max(group.out_s, group.in_s) : group.out_s) * bytes;
      if (out_s == 0)
        continue;
      double message = piece.message_bytes / piece.all();
      double first = ready - meeting.unit.backward_s * (1 - message);
      member.sent_s = std::max(std::max(member.sent_s, first) + out_s,
                               ready + out_s * message);
      double &left = left_s[meeting.piece];
      left = std::max(left, member.sent_s + traffic.latency_s);
    }
    // What relays add up leaves behind all that.
    if (relays)
      member.sent_s += traffic.second_s;
    member.end_s = member.late_s + last.end_s + sums_s;
  }
}

// Each owner adds up, and takes the norm of, what has come.
double StepBorder::addUp() {
  double end_s = 0;
  for (const Member &member : members) {
    const Traffic &traffic = *member.traffic;
    PipelineCommand last =
        result.timelineOf(member.entry->replica).last(member.entry->stage);
    double done_s = member.late_s + last.end_s + member.cut_s, come_s = 0;
    // Relays add up when they have nothing else to do, and pass on message by
    // message.
    double relayed_s = member.late_s + last.end_s, bytes_in_all = 0;
    for (const Meeting &meeting : member.stage->meetings)
      bytes_in_all += pieces[meeting.piece].of(member.share);
    for (const Meeting &meeting : llvm::reverse(member.stage->meetings)) {
      const GradientPiece &piece = pieces[meeting.piece];
      const GroupTraffic &group = traffic.of(piece.group);
      if (group.sum_s == 0)
        continue;
      double bytes = piece.of(member.share);
      if (group.in_s > 0) {
        come_s = std::max({std::max(come_s, ready_s[meeting.piece]) +
                               group.in_s * bytes + traffic.latency_s,
                           left_s[meeting.piece]});
        relayed_s = std::max(relayed_s, come_s);
        if (relays)
          relayed_s += traffic.second_s * bytes / bytes_in_all;
        done_s = std::max(done_s, relayed_s);
      }
      done_s += group.sum_s * bytes;
    }
    end_s = std::max(end_s, done_s);
  }
  return end_s;
}

} // namespace autohet

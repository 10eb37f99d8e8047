//===- StepBorder.h - from the last backward to the next forward -*- C++ -*-===//
//
// Gradients leave piece by piece under and behind a stage's last backward.
// Their owners add them up as they come, all agree, and owners update and send
// new parameters piece by piece to those who compute with them next. Who is
// done early waits for the others' gradients with time to spare: whatever it
// has to do then costs nothing.
//
// So each device has clocks, of its arithmetic and of each direction of its
// links, which go through the pieces that it holds in the order of the
// programs. Pieces are what one message brings: those of a unit, or of several
// small ones.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_STEPBORDER_H
#define AUTOHET_LIB_PLANNER_STEPBORDER_H

#include "GradientTraffic.h"

namespace autohet {

/// What is between two steps of one replica. All begin when the agreement of
/// the step before is over.
struct ReplicaBorder {
  double update_s = 0; ///< its first forward waits for its own updates
  double late_s = 0;   ///< and for new parameters: with them
  /// Its gradients are sent, and its own part of sums and norm is done, as far
  /// as it waits for nobody.
  double sent_s = 0, end_s = 0;

  double end() const { return std::max(sent_s, end_s); }
};

struct StepBorderTimes {
  std::vector<ReplicaBorder> replicas;
  double end_s = 0; ///< of the last one's sums
};

/// Parameters of one unit, or of several, that have the same holders.
struct GradientPiece {
  unsigned group = 0;
  double divided_bytes = 0, whole_bytes = 0;
  double message_bytes = 0; ///< that come, or become ready, at once

  double all() const { return divided_bytes + whole_bytes; }
  double of(double share) const { return divided_bytes * share + whole_bytes; }
  GradientPiece &operator+=(const GradientPiece &other) {
    divided_bytes += other.divided_bytes;
    whole_bytes += other.whole_bytes;
    message_bytes = all();
    return *this;
  }
};

class StepBorder {
public:
  StepBorder(const ResolvedPlan &plan, const PlanEvaluation &result,
             const Ownership &owners, const CostModel &costs);

  /// `kinds`: what of `traffic` each of the result's devices has.
  StepBorderTimes time(llvm::ArrayRef<Traffic> traffic,
                       llvm::ArrayRef<unsigned> kinds);

  /// The part of a stage's bytes in the message that is needed first and
  /// complete last.
  double firstMessage(const DeviceEvaluation &entry);

private:
  /// A piece as a stage meets it.
  struct Meeting {
    unsigned piece = 0;
    /// Of the unit that needs it first and completes its gradient: when it
    /// begins its forward and ends its backward, from the stage's beginning,
    /// and how long it takes for them. The pass goes on in proportion.
    double forward_s = 0, backward_s = 0;
    PassSeconds unit;
    /// Of parameters that others divide otherwise: these come and go in
    /// several parts, and are put together before the first forward.
    double cut_bytes = 0, cut_count = 0;
  };
  struct StageMeetings {
    std::vector<Meeting> meetings; ///< in the order of units
    PassSeconds seconds;
  };
  /// A device of those of one kind.
  struct Member {
    const DeviceEvaluation *entry = nullptr;
    const Traffic *traffic = nullptr;
    const StageMeetings *stage = nullptr;
    double share = 1; ///< of what is divided
    double update_s = 0, late_s = 0, sent_s = 0, end_s = 0; ///< as a replica's
    double cut_s = 0;      ///< cutting its gradients
    double assemble_s = 0; ///< putting its new parameters together
  };

  void makePieces();
  const StageMeetings &meetingsOf(const DeviceEvaluation &entry);
  void updateAndSend();
  void receiveParameters();
  void sendGradients();
  double addUp();

  const ResolvedPlan &plan;
  const PlanEvaluation &result;
  const Ownership &owners;
  const CostModel &costs;
  std::vector<GradientPiece> pieces;
  std::vector<int> pieceOf; ///< of each parameter; -1: not trained
  std::map<std::pair<unsigned, unsigned>, StageMeetings>
      stages; ///< make, stage

  std::vector<Member> members; ///< one of each kind
  bool relays = false;
  /// Of each piece: when its last part has left, and when its first part is
  /// there to be sent.
  std::vector<double> left_s, ready_s;
};

} // namespace autohet

#endif

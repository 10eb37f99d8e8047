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
// small ones. Relays have clocks of their own: what a node's devices send them
// comes first, what they add up leaves behind it.
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

/// Of one class's parameters: of one unit, or of several.
struct GradientPiece {
  unsigned cell_class = 0;
  double bytes = 0;
  double message_bytes = 0; ///< that come, or become ready, at once
  unsigned first_unit = 0;  ///< that needs any of it

  double message() const { return bytes > 0 ? message_bytes / bytes : 0; }
  GradientPiece &operator+=(const GradientPiece &other) {
    bytes += other.bytes;
    message_bytes = bytes;
    first_unit = std::min(first_unit, other.first_unit);
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

  /// The part of a device's bytes in the message that is needed first and
  /// complete last.
  double firstMessage(const DeviceEvaluation &entry);

private:
  /// A piece as a stage's device meets it.
  struct Meeting {
    unsigned piece = 0;
    /// Of the unit that needs it first and completes its gradient: when it
    /// begins its forward and ends its backward, from the stage's beginning,
    /// and how long it takes for them. The pass goes on in proportion.
    double forward_s = 0, backward_s = 0;
    PassSeconds unit;
    /// Of parameters that others divide otherwise, in no runs of rows: these
    /// come and go in several parts, and are put together before the first
    /// forward.
    double cut_bytes = 0, cut_count = 0;
  };
  struct StageMeetings {
    std::vector<Meeting> meetings; ///< in the order of units
    /// Of meetings: as the first unit of the model that has the piece needs it.
    /// Owners update in this order, and add up in the opposite one; tied
    /// parameters come into it where they are first used.
    std::vector<unsigned> by_need;
    PassSeconds seconds;
  };
  /// When a piece's first part is there to be sent, and when its last part has
  /// come to those that it is for.
  struct Passing {
    double ready_s, left_s = 0;
  };
  /// What devices send each other in one hop: everybody to everybody, or, as
  /// far as nodes matter, those of each to one another.
  using Passings = std::vector<Passing>; ///< of each piece

  /// A device of those of one kind.
  struct Member {
    const DeviceEvaluation *entry = nullptr;
    const Traffic *traffic = nullptr;
    const StageMeetings *stage = nullptr;
    std::vector<const ClassTraffic *> ways; ///< of each meeting
    std::vector<bool> are_alone;            ///< in its node, of each meeting
    unsigned node = 0;
    double update_s = 0, late_s = 0, sent_s = 0, end_s = 0; ///< as a replica's
    double cut_s = 0;      ///< cutting its gradients
    double assemble_s = 0; ///< putting its new parameters together
    double backward_end_s = 0;
    double come_back_s = 0;     ///< new parameters, as far as it has looked
    unsigned own_left = 0;      ///< pieces that it updates and has not sent
    double relayed_s = 0;       ///< it has added up what it relays
    double comes_from_s = 0;    ///< when its first gradients come
    std::vector<double> come_s; ///< of each meeting: the first hop is over
  };

  void makePieces();
  const StageMeetings &meetingsOf(const DeviceEvaluation &entry);
  void makeMembers(llvm::ArrayRef<Traffic> traffic,
                   llvm::ArrayRef<unsigned> kinds);
  void orderTurns();
  void sendParameters();
  void updateAndSend(Member &member, unsigned number);
  void passParametersOn(Member &member, unsigned number);
  void receiveParameters();
  void sendGradients();
  void receiveGradients();
  void relayGradients();
  double addUp();

  Passings &ofNode(std::map<unsigned, Passings> &nodes, unsigned node) const;
  void clear(Passings &passings) const;
  double bytesOf(const Meeting &meeting) const {
    return pieces[meeting.piece].bytes;
  }

  const ResolvedPlan &plan;
  const PlanEvaluation &result;
  const Ownership &owners;
  const CostModel &costs;
  std::vector<GradientPiece> pieces;
  /// Of each parameter: its classes, and the piece of each.
  std::vector<llvm::SmallVector<std::pair<unsigned, unsigned>, 2>> piecesOf;
  std::map<std::array<unsigned, 3>, StageMeetings>
      stages; ///< make, stage, position

  /// A piece's turn among what a device sends of new parameters.
  struct Turn {
    size_t order = 0; ///< of buckets
    bool is_relays = false;
    unsigned piece = 0;

    bool operator<(const Turn &other) const {
      return std::tie(order, is_relays) <
             std::tie(other.order, other.is_relays);
    }
  };
  std::vector<Turn> turns; ///< of all pieces, once their owners' and relays'

  std::vector<Member> members; ///< one of each kind
  /// Of each piece: who meets it, and the number of the meeting.
  std::vector<llvm::SmallVector<std::pair<unsigned, unsigned>, 4>> meeters;
  bool relays = false;
  /// From all who send to owners themselves, and from relays; inside nodes.
  Passings direct, relayed;
  std::map<unsigned, Passings> inside;
};

} // namespace autohet

#endif

//===- Exchanges.h - what tensor-parallel ranks tell each other -*- C++ -*-===//
//
// And replicas about gradients: one rule for the programs and for what the
// planner thinks that they take.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLAN_EXCHANGES_H
#define AUTOHET_PLAN_EXCHANGES_H

#include "autohet/Cluster/Work.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace autohet {

/// From so many bytes on, a second round costs less than what it saves.
constexpr double kBytesToSumInSlices = 1 << 16;

/// Whether each rank had better sum a slice and send it to the others: of n
/// ranks, each then sends 2 (n - 1) / n of the value in two rounds, instead of
/// n - 1 times all of it in one.
inline bool sumsInSlices(double bytes, unsigned ranks) {
  return ranks >= 3 && bytes >= kBytesToSumInSlices;
}

/// A value that lies otherwise than its reader needs it.
struct RankExchange {
  enum Kind {
    Sum,       ///< of parts that all ranks have
    JoinedSum, ///< the same, computed by the kernel that reads it
    Gather,    ///< of divided parts
    Cut        ///< a rank's part of what it has whole: nothing is sent
  };
  Kind kind = Sum;
  double bytes_per_sample = 0; ///< of the whole value

  bool isSum() const { return kind == Sum || kind == JoinedSum; }
  bool operator==(const RankExchange &other) const {
    return kind == other.kind && bytes_per_sample == other.bytes_per_sample;
  }
};

/// Less of a parameter goes to one owner: a message has to be worth it.
constexpr int64_t kLeastPartBytes = int64_t(1) << 16;
/// What one message of gradients or parameters carries at most, unless one
/// slice has more.
constexpr int64_t kBucketBytes = int64_t(1) << 20;

llvm::StringRef exchangeName(RankExchange::Kind kind);
std::optional<RankExchange::Kind> parseExchange(llvm::StringRef name);

/// What a rank with this share of what is divided computes for it, the value
/// having `bytes`.
Work exchangeWork(RankExchange::Kind kind, double bytes, unsigned ranks,
                  double share);

/// How often ranks wait for each other, and what each sends altogether.
struct ExchangeMessages {
  unsigned rounds = 0;
  double bytes = 0;
};
ExchangeMessages exchangeMessages(RankExchange::Kind kind, double bytes,
                                  unsigned ranks);

} // namespace autohet

#endif

//===- Exchanges.cpp - what tensor-parallel ranks tell each other ---------===//
//
// The kernels are those that StageConversions.cpp builds.
//
//===----------------------------------------------------------------------===//

#include "autohet/Plan/Exchanges.h"

#include "llvm/Support/ErrorHandling.h"

namespace autohet {

static constexpr std::pair<RankExchange::Kind, llvm::StringLiteral> names[] = {
    {RankExchange::Sum, "sum"},
    {RankExchange::JoinedSum, "joined_sum"},
    {RankExchange::Gather, "gather"},
    {RankExchange::Cut, "cut"}};

llvm::StringRef exchangeName(RankExchange::Kind kind) {
  for (const auto &[known, name] : names)
    if (known == kind)
      return name;
  llvm_unreachable("all kinds have names");
}

std::optional<RankExchange::Kind> parseExchange(llvm::StringRef text) {
  for (const auto &[kind, name] : names)
    if (name == text)
      return kind;
  return std::nullopt;
}

Work exchangeWork(RankExchange::Kind kind, double bytes, unsigned ranks,
                  double share) {
  // Values that ranks exchange are float32.
  constexpr double bytesPerElement = 4;
  double others = ranks - 1, elements = bytes / bytesPerElement;
  Work work;
  switch (kind) {
  case RankExchange::Gather:
    work.commands = 1;
    work.traffic_bytes = 2 * bytes;
    return work;
  case RankExchange::Cut:
    work.commands = 1;
    work.traffic_bytes = 2 * bytes * share;
    return work;
  case RankExchange::Sum:
  case RankExchange::JoinedSum:
    break;
  }
  if (sumsInSlices(bytes, ranks)) {
    // All slices are cut, one is summed, and all summed ones are joined.
    work.commands = ranks + 2;
    work.traffic_bytes = bytes * (2 + (1 + 1.0 / ranks) + 2);
    work.elementwise_flops = others * elements / ranks;
    return work;
  }
  // A kernel that reads the sum reads the parts instead.
  bool isJoined = kind == RankExchange::JoinedSum;
  work.commands = isJoined ? 0 : 1;
  work.traffic_bytes = bytes * (isJoined ? others : others + 2);
  work.elementwise_flops = others * elements;
  return work;
}

ExchangeMessages exchangeMessages(RankExchange::Kind kind, double bytes,
                                  unsigned ranks) {
  double others = ranks - 1;
  switch (kind) {
  case RankExchange::Cut:
    return {};
  case RankExchange::Gather:
    return {1, bytes * others / ranks};
  case RankExchange::Sum:
  case RankExchange::JoinedSum:
    break;
  }
  if (sumsInSlices(bytes, ranks))
    return {2, 2 * bytes * others / ranks};
  return {1, bytes * others};
}

} // namespace autohet

//===- ExchangeLimits.cpp - stages that exchange for too long -------------===//

#include "ExchangeLimits.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

void ExchangeLimits::reset(StageTables &tables, double low_s, double high_s,
                           double left_s) {
  areSet = true;
  units = tables.unitCount();
  allEnds.resize(tables.variants().size() * units);
  longEnds.resize(allEnds.size());
  findHidden(tables, high_s);
  for (unsigned variant = 0; variant < tables.variants().size(); ++variant)
    limit(tables, variant, low_s, high_s, left_s);
}

// Every unit on the slowest devices that may have it, and every cut a transfer
// over the slowest link.
void ExchangeLimits::findHidden(const StageTables &tables, double high_s) {
  PassSeconds sum;
  hidden.assign(1, sum);
  for (unsigned unit = 0; unit < units; ++unit) {
    PassSeconds slowest;
    for (const StageTables::Variant &variant : tables.variants()) {
      double total = variant.total_s[unit + 1] - variant.total_s[unit];
      if (total > high_s)
        continue;
      double forward = variant.forward_s[unit + 1] - variant.forward_s[unit];
      slowest.forward_s = std::max(slowest.forward_s, forward);
      slowest.backward_s = std::max(slowest.backward_s, total - forward);
    }
    sum += slowest;
    sum += tables.slowestTransfer(unit + 1);
    hidden.push_back(sum);
  }
}

void ExchangeLimits::limit(StageTables &tables, unsigned index, double low_s,
                           double high_s, double left_s) {
  const StageTables::Variant &variant = tables.variants()[index];
  unsigned end = 0;
  for (unsigned begin = 0; begin < units; ++begin) {
    end = std::max(end, begin);
    while (end < units &&
           variant.total_s[end + 1] - variant.total_s[begin] <= high_s)
      ++end;
    auto isTooLong = [&](unsigned last, bool setsPace) {
      double forward = variant.forward_s[last] - variant.forward_s[begin];
      double total = variant.total_s[last] - variant.total_s[begin];
      double first = tables.firstMessage(index, begin, last);
      return llvm::all_of(
          tables.exchangeWays(index, begin, last),
          [&](const ExchangeSeconds &way) {
            PassSeconds seen = exposedSeconds(way, first, hidden[begin],
                                              {forward, total - forward});
            return (setsPace ? seen.total() : seen.forward_s) > left_s;
          });
    };
    unsigned last = end, lastLong = end;
    while (last > begin && isTooLong(last, /*setsPace=*/false))
      --last;
    while (lastLong > begin &&
           variant.total_s[lastLong] - variant.total_s[begin] >= low_s &&
           isTooLong(lastLong, /*setsPace=*/true))
      --lastLong;
    allEnds[index * units + begin] = last;
    longEnds[index * units + begin] = lastLong;
  }
}

} // namespace autohet

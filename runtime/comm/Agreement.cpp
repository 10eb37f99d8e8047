//===- Agreement.cpp - agree and barrier over point to point --------------===//
//
// Contributions go up a binomial tree unsummed, so that rank 0 adds all of them
// in rank order: the result depends neither on arrival nor on the tree. Then
// the one result goes down the tree: all ranks hold the same bits.
//
//===----------------------------------------------------------------------===//

#include "comm/Agreement.h"

#include <algorithm>
#include <vector>

using namespace autohet::runtime;

namespace {

/// One rank's contribution, and the result, as they travel.
struct Contribution {
  double squared_norm = 0, loss = 0;
  uint64_t step = 0;
  uint64_t first_nonfinite_rank = ~0ull;
  uint64_t label_count = 0;
  uint32_t flags = 0;
  uint32_t steps_differ = 0;
};

class Exchange {
public:
  Exchange(const ah_comm_table &table, ah_comm *comm, uint64_t tag,
           const char *what, uint64_t step)
      : table(table), comm(comm), tag(tag), what(what), step(step) {}

  ah_status send(uint32_t peer, std::vector<Contribution> &all) {
    return transfer(peer, 1, all);
  }
  ah_status receive(uint32_t peer, std::vector<Contribution> &all) {
    return transfer(peer, 0, all);
  }

private:
  const ah_comm_table &table;
  ah_comm *comm;
  uint64_t tag;
  const char *what;
  uint64_t step;

  ah_status transfer(uint32_t peer, uint32_t isSend,
                     std::vector<Contribution> &all) {
    ah_request request = {};
    request.peer = peer;
    request.is_send = isSend;
    request.tag = tag;
    request.data = all.data();
    request.bytes = all.size() * sizeof(Contribution);
    request.what = what;
    request.step = step;
    request.microbatch = -1;
    ah_status status = table.start(comm, &request);
    return status == AH_IN_PROGRESS ? table.wait(comm, &request) : status;
  }
};

} // namespace

/// Left to right over the ranks: a function of their number only.
static Contribution sum(const std::vector<Contribution> &all) {
  Contribution total = all[0];
  for (uint32_t rank = 0; rank < all.size(); ++rank) {
    const Contribution &one = all[rank];
    if (rank) {
      total.squared_norm += one.squared_norm;
      total.loss += one.loss;
      total.label_count = std::max(total.label_count, one.label_count);
      total.flags |= one.flags;
      total.steps_differ |= one.step != total.step;
    }
    if (one.flags & AH_FLAG_NONFINITE)
      total.first_nonfinite_rank =
          std::min<uint64_t>(total.first_nonfinite_rank, rank);
  }
  return total;
}

ah_status autohet::runtime::agreeOverTransfers(const ah_comm_table &table,
                                               ah_comm *comm, uint32_t rank,
                                               uint32_t worldSize,
                                               uint64_t round, uint32_t channel,
                                               const char *what,
                                               ah_agreement &agreement) {
  Contribution mine;
  mine.squared_norm = agreement.squared_norm;
  mine.loss = agreement.loss;
  mine.flags = agreement.flags;
  mine.step = agreement.step;
  mine.label_count = agreement.label_count;
  std::vector<Contribution> all{mine}; // of ranks [rank, rank + all.size())
  Exchange exchange(table, comm, ah_tag(AH_TAG_AGREE, channel, round), what,
                    agreement.step);

  // In the tree, `rank` is the parent of rank + 2^k for each 2^k below its
  // lowest set bit; that child's subtree holds the next 2^k ranks.
  uint32_t span = 1;
  for (; span < worldSize && !(rank & span); span *= 2)
    if (rank + span < worldSize) {
      std::vector<Contribution> subtree(
          std::min(span, worldSize - (rank + span)));
      if (ah_status status = exchange.receive(rank + span, subtree))
        return status;
      all.insert(all.end(), subtree.begin(), subtree.end());
    }

  std::vector<Contribution> result(1);
  if (rank) {
    if (ah_status status = exchange.send(rank - span, all))
      return status;
    if (ah_status status = exchange.receive(rank - span, result))
      return status;
  } else {
    result[0] = sum(all);
  }
  for (uint32_t child = span / 2; child; child /= 2)
    if (rank + child < worldSize)
      if (ah_status status = exchange.send(rank + child, result))
        return status;

  if (result[0].steps_differ)
    return ah_fail(AH_ERROR_INTERNAL,
                   "'%s': the ranks are in different steps (rank 0 in %llu, "
                   "rank %u in %llu)",
                   what, static_cast<unsigned long long>(result[0].step), rank,
                   static_cast<unsigned long long>(mine.step));
  agreement.squared_norm = result[0].squared_norm;
  agreement.loss = result[0].loss;
  agreement.flags = result[0].flags;
  agreement.first_nonfinite_rank = result[0].first_nonfinite_rank;
  agreement.label_count = result[0].label_count;
  return AH_OK;
}

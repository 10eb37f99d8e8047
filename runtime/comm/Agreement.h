//===- Agreement.h - agree and barrier over point to point ----------------===//

#ifndef AUTOHET_RUNTIME_COMM_AGREEMENT_H
#define AUTOHET_RUNTIME_COMM_AGREEMENT_H

#include "autohet/runtime/comm.h"

namespace autohet::runtime {

/// Sums and ors `agreement` over all ranks through `table`'s transfers.
/// `round` counts the calls on `channel`, alike on all ranks.
ah_status agreeOverTransfers(const ah_comm_table &table, ah_comm *comm,
                             uint32_t rank, uint32_t worldSize, uint64_t round,
                             uint32_t channel, const char *what,
                             ah_agreement &agreement);

} // namespace autohet::runtime

#endif

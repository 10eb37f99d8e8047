//===- UcxComm.h - the communication table over UCX -----------------------===//

#ifndef AUTOHET_RUNTIME_COMM_UCX_UCXCOMM_H
#define AUTOHET_RUNTIME_COMM_UCX_UCXCOMM_H

#include "autohet/runtime/comm.h"
#include "comm/JobWatch.h"
#include "comm/Pacer.h"

#include <string>
#include <vector>

namespace autohet::runtime {

struct UcxOptions {
  uint32_t rank = 0, worldSize = 1;
  double stall_timeout_s = 600;
  std::string netDevices;     ///< interfaces for TCP; "" for all
  bool checkMessages = false; ///< debug mode: a header in every message
  JobWatch *watch = nullptr;  ///< outlives the transport
  std::vector<PacedLink>
      links; ///< emulated, one a peer; none: as fast as it is
};

/// The table's functions, one for all transports of this process.
const ah_comm_table &ucxTable();

/// Opens the library and a transport. `address` is what the other ranks need;
/// nothing may be started before `connectUcx`.
ah_status openUcx(const UcxOptions &options, ah_comm *&comm,
                  std::string &address);

/// All ranks' addresses, this one's included, in rank order.
void connectUcx(ah_comm *comm, std::vector<std::string> addresses);

} // namespace autohet::runtime

#endif

//===- Transfer.h - one message on its way --------------------------------===//
//
// What the transport keeps of a request: UCX's handle, the stall clock, and in
// debug mode a header that travels before the payload. Two programs that
// disagree about a message then fail with both sides' names instead of
// computing with the wrong bytes.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_COMM_UCX_TRANSFER_H
#define AUTOHET_RUNTIME_COMM_UCX_TRANSFER_H

#include "autohet/runtime/comm.h"

#include <cstring>
#include <string>
#include <ucp/api/ucp.h>

struct ah_comm;

namespace autohet {

struct MessageHeader {
  uint64_t magic, bytes, step;
  int64_t microbatch;
  char what[64];
};
constexpr uint64_t messageMagic = 0x4547415353454d41ull; // "AMESSAGE"

struct Transfer {
  ah_comm *owner = nullptr;
  ah_request *request = nullptr;
  void *handle = nullptr; ///< UCX's; null when UCX is done with it
  size_t index = 0;       ///< in the owner's list of active transfers
  uint64_t peerCommands = 0;
  double silent_s = 0; ///< since the peer's counter moved, while we were awake
  MessageHeader header;
  ucp_dt_iov_t pieces[2];

  void fillHeader() {
    header = {messageMagic, request->bytes, request->step, request->microbatch,
              {}};
    std::strncpy(header.what, request->what ? request->what : "",
                 sizeof(header.what) - 1);
  }

  /// "" if the sender meant this message, else how the two differ.
  std::string compareHeader() const {
    if (header.magic != messageMagic)
      return "its sender does not check messages: start all nodes alike";
    if (header.bytes != request->bytes)
      return "the sender's '" + std::string(header.what) + "' has " +
             std::to_string(header.bytes) + " bytes, this one " +
             std::to_string(request->bytes);
    if (header.step != request->step ||
        header.microbatch != request->microbatch)
      return "the sender's '" + std::string(header.what) + "' is of step " +
             std::to_string(header.step) + ", microbatch " +
             std::to_string(header.microbatch);
    return "";
  }
};

} // namespace autohet

#endif

//===- Transfer.h - one message on its way --------------------------------===//
//
// What the transport keeps of a request: the stall clock, and in debug mode the
// header, a message of its own before the payload. (In one message it would be
// lost where the lengths differ, since UCX drops what does not fit.) Two
// programs that disagree about a message then fail with both sides' names
// instead of computing with the wrong bytes.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_COMM_UCX_TRANSFER_H
#define AUTOHET_RUNTIME_COMM_UCX_TRANSFER_H

#include "autohet/runtime/comm.h"

#include <cstring>
#include <string>

struct ah_comm;

namespace autohet::runtime {

struct MessageHeader {
  uint64_t magic, bytes, step;
  int64_t microbatch;
  char what[64];
};
constexpr uint64_t messageMagic = 0x4547415353454d41ull; // "AMESSAGE"
/// Set in the tags of headers; no ah_tag_kind reaches it.
constexpr uint64_t headerTagBit = 1ull << (AH_TAG_BITS - 1);

struct Transfer {
  ah_comm *owner = nullptr;
  ah_request *request = nullptr;
  size_t index = 0; ///< in the owner's list of active transfers
  uint64_t peerCommands = 0;
  double silent_s = 0;  ///< since the peer's counter moved, while we were awake
  uint32_t pending = 0; ///< messages that UCX still sends
  MessageHeader header;

  void fillHeader() {
    header = {
        messageMagic, request->bytes, request->step, request->microbatch, {}};
    std::strncpy(header.what, request->what ? request->what : "",
                 sizeof(header.what) - 1);
  }

  /// "" if the sender meant this message, else how the two differ.
  std::string compareHeader() const {
    if (header.magic != messageMagic)
      return "its header is damaged";
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

} // namespace autohet::runtime

#endif

//===- Sockets.h - listening, connecting, interfaces ----------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_SOCKETS_H
#define AUTOHET_RUNTIME_SUPERVISOR_SOCKETS_H

#include <cstdint>
#include <string>

namespace autohet::runtime {

/// Listens on exactly this address. `mayBeLoopback` false: an address that
/// resolves to loopback (a host's own name often does) is refused, since the
/// other nodes would wait for ever. -1 and `error` on failure.
int listenOn(const std::string &address, uint16_t port, bool mayBeLoopback,
             std::string &error);

/// One attempt to connect, at most `seconds` long. -1 on failure; `error` says
/// why, `isFinal` whether to try again is pointless (an unknown name).
int connectTo(const std::string &address, uint16_t port, double seconds,
              std::string &error, bool &isFinal);

/// The interface that holds this socket's own address, "eth0"; "" if unknown.
std::string interfaceOf(int socket);

} // namespace autohet::runtime

#endif

//===- Sockets.cpp - listening, connecting, interfaces --------------------===//

#include "supervisor/Sockets.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace autohet::runtime;

namespace {

struct FreeAddresses {
  void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string &address, uint16_t port,
                  std::string &error) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  int status =
      getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (status)
    error = "the address '" + address +
            "' is unknown here: " + gai_strerror(status);
  return Addresses(status ? nullptr : list);
}

bool isLoopback(const sockaddr *address) {
  if (address->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in *>(address)
                     ->sin_addr.s_addr) >>
               24 ==
           127;
  return IN6_IS_ADDR_LOOPBACK(
      &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

/// The bytes that say which machine, without the port.
std::string hostPart(const sockaddr *address) {
  if (address->sa_family == AF_INET)
    return std::string(
        reinterpret_cast<const char *>(
            &reinterpret_cast<const sockaddr_in *>(address)->sin_addr),
        sizeof(in_addr));
  if (address->sa_family == AF_INET6)
    return std::string(
        reinterpret_cast<const char *>(
            &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr),
        sizeof(in6_addr));
  return "";
}

} // namespace

int autohet::runtime::listenOn(const std::string &address, uint16_t port,
                               bool mayBeLoopback, std::string &error) {
  Addresses list = resolve(address, port, error);
  if (!list)
    return -1;
  std::string where = address + ":" + std::to_string(port);
  if (!mayBeLoopback && isLoopback(list->ai_addr)) {
    error = "the address '" + address +
            "' means this machine only (it resolves to loopback), but other "
            "nodes are to connect to it; set MASTER_ADDR to an address that "
            "they reach";
    return -1;
  }
  int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) != 0 ||
      listen(fd, /*backlog=*/1024) != 0) {
    int reason = errno;
    error = "cannot listen on " + where + ": " + strerror(reason);
    if (reason == EADDRINUSE)
      error += "; set MASTER_PORT to another port, on all nodes";
    if (reason == EADDRNOTAVAIL)
      error += " (it is no address of this machine)";
    if (fd >= 0)
      close(fd);
    return -1;
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

int autohet::runtime::connectTo(const std::string &address, uint16_t port,
                                double seconds, std::string &error,
                                bool &isFinal) {
  Addresses list = resolve(address, port, error);
  isFinal = !list;
  if (!list)
    return -1;
  int fd =
      socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int status = connect(fd, list->ai_addr, list->ai_addrlen);
  if (status != 0 && errno == EINPROGRESS) {
    pollfd waiting = {fd, POLLOUT, 0};
    int reason = ETIMEDOUT;
    socklen_t size = sizeof(reason);
    if (poll(&waiting, 1, static_cast<int>(seconds * 1000)) > 0)
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size);
    errno = reason;
    status = reason ? -1 : 0;
  }
  if (status != 0) {
    error = address + ":" + std::to_string(port) + ": " + strerror(errno);
    close(fd);
    return -1;
  }
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return fd;
}

std::string autohet::runtime::interfaceOf(int socket) {
  sockaddr_storage own = {};
  socklen_t size = sizeof(own);
  auto *address = reinterpret_cast<sockaddr *>(&own);
  ifaddrs *list = nullptr;
  if (getsockname(socket, address, &size) != 0 || getifaddrs(&list) != 0)
    return "";
  std::string name;
  for (ifaddrs *one = list; one; one = one->ifa_next)
    if (one->ifa_addr && one->ifa_addr->sa_family == own.ss_family &&
        hostPart(one->ifa_addr) == hostPart(address))
      name = one->ifa_name;
  freeifaddrs(list);
  return name;
}

//===- Error.h - failures inside the runtime ---------------------*- C++ -*-===//
//
// Inside the runtime a failure is an exception that carries its status; at each
// function of the C interface `guarded` turns it into that status and the
// thread's error text.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_ERROR_H
#define AUTOHET_RUNTIME_CORE_ERROR_H

#include "autohet/runtime/status.h"

#include <new>
#include <stdexcept>
#include <string>

namespace autohet::runtime {

class Error : public std::runtime_error {
public:
  Error(ah_status status, const std::string &text)
      : std::runtime_error(text), status(status) {}
  const ah_status status;
};

/// Throws an Error; printf style.
[[noreturn]] void fail(ah_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// printf into a string.
std::string format(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/// Throws what a call of the C interface has reported.
inline void check(ah_status status) {
  if (status != AH_OK)
    throw Error(status, ah_last_error());
}

/// Runs `body` at the border to C.
template <typename Body>
ah_status guarded(Body &&body) noexcept {
  try {
    body();
    return AH_OK;
  } catch (const Error &error) {
    return ah_fail(error.status, "%s", error.what());
  } catch (const std::bad_alloc &) {
    return ah_fail(AH_ERROR_NO_SPACE, "out of memory");
  } catch (const std::exception &error) {
    return ah_fail(AH_ERROR_INTERNAL, "internal error: %s", error.what());
  }
}

} // namespace autohet::runtime

#endif

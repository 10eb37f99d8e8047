//===- Status.cpp - the last failure of each thread -------------------------===//

#include "autohet/runtime/status.h"

#include <cstdarg>
#include <cstdio>
#include <string>

static thread_local std::string lastError;

const char *ah_last_error(void) { return lastError.c_str(); }

ah_status ah_fail(ah_status status, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  // Composed beside the old text, which may be one of the arguments.
  std::string text(length > 0 ? length : 0, '\0');
  vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  lastError = std::move(text);
  return status;
}

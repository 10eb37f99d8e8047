//===- Error.cpp - failures inside the runtime ------------------------------===//

#include "core/Error.h"

#include <cstdarg>
#include <cstdio>

namespace autohet::runtime {

static std::string formatList(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string text(length > 0 ? length : 0, '\0');
  vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

void fail(ah_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatList(format, arguments);
  va_end(arguments);
  throw Error(status, text);
}

std::string format(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatList(format, arguments);
  va_end(arguments);
  return text;
}

} // namespace autohet::runtime

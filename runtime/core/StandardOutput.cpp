//===- StandardOutput.cpp - whether what was printed arrived --------------===//

#include "core/StandardOutput.h"

#include "core/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace autohet::runtime {

void checkStandardOutput() {
  errno = 0;
  bool isLost = fflush(stdout) != 0;
  if (!isLost && !ferror(stdout))
    return;
  // An earlier loss no longer knows its reason.
  fail(errno == ENOSPC ? AH_ERROR_NO_SPACE : AH_ERROR_SYSTEM,
       "cannot write to standard output%s%s", errno ? ": " : "",
       errno ? strerror(errno) : "");
}

} // namespace autohet::runtime

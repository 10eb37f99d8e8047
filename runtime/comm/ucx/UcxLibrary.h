//===- UcxLibrary.h - libucp, opened when it is needed --------------------===//
//
// An executable does not link UCX: a run of one device needs none, and a
// machine without it must still start and say what is missing.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_COMM_UCX_UCXLIBRARY_H
#define AUTOHET_RUNTIME_COMM_UCX_UCXLIBRARY_H

#include "autohet/runtime/status.h"

#include <ucp/api/ucp.h>

namespace autohet::runtime {

struct UcxLibrary {
#define AUTOHET_UCP(name) decltype(&::name) name = nullptr;
#define AUTOHET_UCS(name) decltype(&::name) name = nullptr;
#include "comm/ucx/UcxSymbols.def"

  /// The library of this process, opened by the first call. On failure
  /// `library` is null and the last error names the library or the symbol.
  static ah_status open(const UcxLibrary *&library);
};

} // namespace autohet::runtime

#endif

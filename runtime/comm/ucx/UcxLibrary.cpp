//===- UcxLibrary.cpp - libucp, opened when it is needed ------------------===//

#include "comm/ucx/UcxLibrary.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace autohet::runtime;

/// UCX reads these when it is loaded. What the user sets stays.
static void setDefaults() {
  // Its messages about a dead peer come beside ours and say less.
  setenv("UCX_LOG_LEVEL", "fatal", /*overwrite=*/0);
  // No signal handlers of its own, no patching of malloc and mmap: there is no
  // RDMA registration cache in the default transports that would need it.
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  setenv("UCX_MEM_EVENTS", "no", 0);
  setenv("UCX_MEMTYPE_CACHE", "no", 0);
  setenv("UCX_WARN_UNUSED_ENV_VARS", "no", 0);
}

static ah_status load(UcxLibrary &library) {
  setDefaults();
  void *ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!ucp)
    return ah_fail(AH_ERROR_NOT_FOUND,
                   "communication between devices needs UCX, but its library "
                   "cannot be opened: %s (Debian: apt-get install libucx0)",
                   dlerror());
  void *ucs = dlopen("libucs.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!ucs)
    return ah_fail(AH_ERROR_NOT_FOUND,
                   "UCX's library libucs.so.0 cannot be opened: %s", dlerror());
  auto find = [](void *handle, const char *file, const char *name, void **out) {
    *out = dlsym(handle, name);
    return *out
               ? AH_OK
               : ah_fail(AH_ERROR_NOT_FOUND,
                         "%s has no symbol %s: autohet needs UCX 1.12 or newer",
                         file, name);
  };
#define AUTOHET_UCP(name)                                                      \
  if (find(ucp, "libucp.so.0", #name,                                          \
           reinterpret_cast<void **>(&library.name)) != AH_OK)                 \
    return AH_ERROR_NOT_FOUND;
#define AUTOHET_UCS(name)                                                      \
  if (find(ucs, "libucs.so.0", #name,                                          \
           reinterpret_cast<void **>(&library.name)) != AH_OK)                 \
    return AH_ERROR_NOT_FOUND;
#include "comm/ucx/UcxSymbols.def"
  return AH_OK;
}

ah_status UcxLibrary::open(const UcxLibrary *&library) {
  static UcxLibrary loaded;
  static bool isLoaded = false;
  // Never closed: UCX's own clean-up at exit expects to be there.
  if (!isLoaded) {
    library = nullptr;
    if (ah_status status = load(loaded); status != AH_OK)
      return status;
    isLoaded = true;
  }
  library = &loaded;
  return AH_OK;
}

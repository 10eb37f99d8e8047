//===- ObjectCache.h - compiled kernels by content hash ---------*- C++ -*-===//

#ifndef AUTOHET_TARGET_CPU_OBJECTCACHE_H
#define AUTOHET_TARGET_CPU_OBJECTCACHE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <mutex>
#include <optional>
#include <string>

namespace autohet::cpu {

/// What compiling a kernel gives.
struct KernelObject {
  /// The function in `object` that has the runtime's kernel signature.
  std::string symbol;
  /// An ELF object.
  std::string object;
  /// Bytes of scratch memory that the kernel takes as its last operand; 0: it
  /// takes none.
  int64_t scratchBytes = 0;
};

/// Kernels by the hash of everything that determines them. Thread-safe. With a
/// folder, entries outlive the process; several processes may share it.
class ObjectCache {
public:
  /// `folder` empty: in memory only.
  explicit ObjectCache(llvm::StringRef folder = "") : folder(folder.str()) {}

  std::optional<KernelObject> lookup(llvm::StringRef key);
  /// Keeps `kernel`. A folder that cannot be written is not an error: the next
  /// process compiles again.
  void insert(llvm::StringRef key, const KernelObject &kernel);

private:
  std::string folder;
  std::mutex mutex;
  llvm::StringMap<KernelObject> entries;
};

} // namespace autohet::cpu

#endif

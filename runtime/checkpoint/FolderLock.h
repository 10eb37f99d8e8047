//===- FolderLock.h - one run at a time saves into a folder ------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CHECKPOINT_FOLDERLOCK_H
#define AUTOHET_RUNTIME_CHECKPOINT_FOLDERLOCK_H

#include <string>

namespace autohet::runtime {

/// Holds the file `lock` in a folder of checkpoints while it lives: two runs
/// that save the same steps would replace each other's. Readers need none. The
/// kernel lets go of it when the process ends in whatever way, so the file may
/// stay where it is, and in copies.
class FolderLock {
public:
  /// Throws, naming the folder and the process that has it, where another run
  /// holds it. Where the file system has no locks `warning` says so.
  FolderLock(const std::string &folder, std::string &warning);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

  /// Whether some run holds it now.
  static bool isHeld(const std::string &folder);

private:
  int descriptor = -1;
};

} // namespace autohet::runtime

#endif

//===- SharedMemory.h - where workers' shared memory has names ---*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_SHAREDMEMORY_H
#define AUTOHET_RUNTIME_SUPERVISOR_SHAREDMEMORY_H

#include <string>

namespace autohet::runtime {

/// A folder in /dev/shm for the files that this supervisor's workers share. UCX
/// removes them as soon as they are mapped, but not those of a worker that is
/// killed before that; in the common folder nothing says whose they are.
class SharedMemory {
public:
  /// Removes what supervisors that were killed have left, then makes the folder
  /// and tells the workers to come. Without /dev/shm, UCX goes on to choose.
  void open();
  ~SharedMemory();

private:
  std::string path;
};

} // namespace autohet::runtime

#endif

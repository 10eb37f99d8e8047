//===- Launch.h - which node, of how many, and where they meet ------------===//
//
// An executable may be started by anything: autohet-run, mpirun, srun, a pod
// with RANK and WORLD_SIZE, a shell. This is the one place that reads what the
// launcher says. It is a function of its arguments, so that every launcher can
// be tested without having it.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_LAUNCH_H
#define AUTOHET_RUNTIME_SUPERVISOR_LAUNCH_H

#include "autohet/runtime/comm.h"
#include "supervisor/Manifest.h"

#include <functional>
#include <optional>

namespace autohet::runtime {

/// Null where the variable is not set.
using Environment = std::function<const char *(const char *name)>;

struct Launch {
  uint32_t node = 0;
  std::string launcher; ///< "Open MPI", ...: for messages; "" if none was seen
  /// Where node 0 listens; empty where the plan has one node.
  std::string masterAddress;
  uint16_t masterPort = 0;
};

/// Checks what the launcher says against the plan. Precedence: our flags, MPI
/// or PMI, Slurm (ignored under mpirun), RANK and WORLD_SIZE; MPI against RANK
/// is a conflict. `jobHash` gives the port where nothing else does.
std::optional<Launch> decideLaunch(const Manifest &manifest, uint32_t node,
                                   const ah_supervisor_options &options,
                                   const Environment &environment,
                                   uint64_t jobHash, std::string &error);

} // namespace autohet::runtime

#endif

//===- Preflight.h - could this node run its part? ------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_PREFLIGHT_H
#define AUTOHET_RUNTIME_SUPERVISOR_PREFLIGHT_H

#include "autohet/runtime/comm.h"

#include <string>

namespace autohet::runtime {

/// Checks what a run would need on this machine: CPU features, libraries, port,
/// memory, disk, and every byte of the weights. Prints a line a check; the exit
/// status is 1 if one failed. `weightsIndex` and `outputFolder` as a run would
/// use them.
int runPreflight(const ah_node_image &image,
                 const ah_supervisor_options &options,
                 const std::string &weightsIndex,
                 const std::string &outputFolder);

} // namespace autohet::runtime

#endif

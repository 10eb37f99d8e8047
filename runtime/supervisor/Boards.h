//===- Boards.h - what a worker did last, in words ------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_BOARDS_H
#define AUTOHET_RUNTIME_SUPERVISOR_BOARDS_H

#include "autohet/runtime/comm.h"

#include <string>

namespace autohet::runtime {

/// "step 12, 340 commands; compute at 'block3.mlp' microbatch 2; ..."
std::string describeBoard(const ah_device_image &device, const ah_board &board);

} // namespace autohet::runtime

#endif

//===- Passes.td - the passes of the Schedule phase, in order ------*- tablegen -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE
#define AUTOHET_PASSES_SCHEDULE

include "mlir/Pass/PassBase.td"

#endif

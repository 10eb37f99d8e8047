//===- Passes.td - the passes of the Plan phase, in order ------*- tablegen -*-===//

#ifndef AUTOHET_PASSES_PLAN
#define AUTOHET_PASSES_PLAN

include "mlir/Pass/PassBase.td"

#endif

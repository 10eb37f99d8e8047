//===- Passes.td - the passes of the Model phase, in order ------*- tablegen -*-===//

#ifndef AUTOHET_PASSES_MODEL
#define AUTOHET_PASSES_MODEL

include "mlir/Pass/PassBase.td"

#endif

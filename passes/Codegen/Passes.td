//===- Passes.td - the passes of the Codegen phase, in order ------*- tablegen -*-===//

#ifndef AUTOHET_PASSES_CODEGEN
#define AUTOHET_PASSES_CODEGEN

include "mlir/Pass/PassBase.td"

#endif

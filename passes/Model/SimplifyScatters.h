//===- SimplifyScatters.h - scattered updates, sample by sample -*- C++ -*-===//

#ifndef AUTOHET_PASSES_MODEL_SIMPLIFYSCATTERS_H
#define AUTOHET_PASSES_MODEL_SIMPLIFYSCATTERS_H

#include "mlir/IR/PatternMatch.h"

namespace autohet {

/// Patterns of het-simplify-gathers for het.scatter_nd.
void populateScatterPatterns(mlir::RewritePatternSet &patterns);

} // namespace autohet

#endif

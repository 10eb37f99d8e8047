//===- Pipeline.cpp - the Codegen phase as one pipeline ------------------------===//
//
// The order of the phase's passes and the reason for each place.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Codegen/Passes.h"

void autohet::registerCodegenPipelines() {}

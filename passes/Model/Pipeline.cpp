//===- Pipeline.cpp - the Model phase as one pipeline ------------------------===//
//
// The order of the phase's passes and the reason for each place.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Model/Passes.h"

void autohet::registerModelPipelines() {}

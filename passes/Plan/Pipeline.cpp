//===- Pipeline.cpp - the Plan phase as one pipeline ------------------------===//
//
// The order of the phase's passes and the reason for each place.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Plan/Passes.h"

void autohet::registerPlanPipelines() {}

//===- Pipeline.cpp - the Schedule phase as one pipeline ------------------------===//
//
// The order of the phase's passes and the reason for each place.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Schedule/Passes.h"

void autohet::registerSchedulePipelines() {}

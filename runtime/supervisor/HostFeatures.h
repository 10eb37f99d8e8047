//===- HostFeatures.h - what this machine's CPU can do --------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_HOSTFEATURES_H
#define AUTOHET_RUNTIME_SUPERVISOR_HOSTFEATURES_H

#include <string>
#include <vector>

namespace autohet::runtime {

/// Those of `needed` (LLVM's names, "avx512f") that this CPU lacks, with commas
/// between; "" when it has all. A leading '+' is allowed; "-feature" needs
/// nothing.
std::string missingFeatures(const std::vector<std::string> &needed);

} // namespace autohet::runtime

#endif

//===- Profile.h - what a model's units take on a kind of device -*- C++ -*-===//

#ifndef AUTOHET_TOOLS_AUTOHET_PROFILE_PROFILE_H
#define AUTOHET_TOOLS_AUTOHET_PROFILE_PROFILE_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Plan/UnitTable.h"

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace autohet {

struct ProfileOptions {
  std::string model;
  ClusterSource machines;
  std::vector<std::string> kinds; ///< empty: all that the cluster uses
  std::vector<int64_t> microbatches;
  bool emulate = false;
  std::string work;                 ///< an existing folder
  std::vector<std::string> compile; ///< passed on to autohet-compile
  std::vector<std::string> run;     ///< passed on to autohet-run
  double secondsPerKind = 60;
};

/// Measures and prints; the cluster with the kinds' fitted figures.
llvm::Expected<Cluster> profile(const ProfileOptions &options);

} // namespace autohet

#endif

//===- Fingerprint.h - what all nodes of a job must have alike ------------===//
//
// Two nodes that run another plan, other programs, other weights or another
// learning rate compute garbage together without noticing. So they compare at
// start, and an error says which part differs and how.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_FINGERPRINT_H
#define AUTOHET_RUNTIME_SUPERVISOR_FINGERPRINT_H

#include "autohet/runtime/comm.h"
#include "supervisor/Manifest.h"
#include "supervisor/Wire.h"

#include <string>

namespace autohet::runtime {

struct Fingerprint {
  std::string structure, plan, programs, weightsIndex;
  uint64_t worldSize = 0, optionsHash = 0;
  std::string options; ///< "name=value" lines

  void pack(Packer &packer) const;
  static Fingerprint unpack(Unpacker &unpacker);

  /// "" when equal, else a sentence. `here` and `there` are the nodes' names.
  std::string compare(const Fingerprint &other, const std::string &here,
                      const std::string &there) const;

  /// Of plan and programs only, which autohet-compile fixes.
  uint64_t hash() const;
};

/// `folder` holds the executable and the weights index.
Fingerprint fingerprintOf(const Manifest &manifest,
                          const ah_supervisor_options &options,
                          const std::string &folder);

} // namespace autohet::runtime

#endif

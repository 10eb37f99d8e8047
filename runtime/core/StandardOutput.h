//===- StandardOutput.h - whether what was printed arrived -------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CORE_STANDARDOUTPUT_H
#define AUTOHET_RUNTIME_CORE_STANDARDOUTPUT_H

namespace autohet::runtime {

/// Throws if anything that was printed to standard output was lost: a full disk
/// or a closed stream must not look like an empty result.
void checkStandardOutput();

} // namespace autohet::runtime

#endif

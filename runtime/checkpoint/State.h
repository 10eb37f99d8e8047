//===- State.h - a running device's state, saved and loaded ------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CHECKPOINT_STATE_H
#define AUTOHET_RUNTIME_CHECKPOINT_STATE_H

#include "autohet/runtime/comm.h"
#include "checkpoint/Checkpoint.h"
#include "core/Memory.h"

#include <set>
#include <string>

namespace autohet::runtime {

/// Writes the slices owned here into `folder`/step-N; rank 0 adds the manifest
/// when all ranks have written, and all return after that. `head` has
/// everything but files and slices; `frozen` are the parameters that nobody
/// updates. Every rank calls it, between steps.
void saveCheckpoint(const Memory &memory, const ah_worker_link &link,
                    const std::string &folder, const CheckpointManifest &head,
                    const std::set<std::string> &frozen);

/// Whether this rank saves its part of a parameter: what it owns, and of what
/// is frozen what it holds in the first replica, which has all of it.
bool isSavedHere(const Program &program, const ah_parameter &parameter,
                 const std::set<std::string> &frozen);

/// Whether `rank` can save into `folder`, which it makes if `makes`; throws.
void checkCheckpointFolder(const std::string &folder, bool makes,
                           uint32_t rank);

/// Removes all but the newest `keep` complete checkpoints. One that cannot be
/// removed is no reason to end a run: it is named in what is returned.
std::vector<std::string> keepCheckpoints(const std::string &folder,
                                         uint64_t keep);

/// Fills parameters held here and optimizer state owned here. Throws where the
/// checkpoint is of another model, optimizer or global batch, damaged, or lacks
/// something.
void loadCheckpoint(Memory &memory, CheckpointReader &checkpoint);

/// Rank 0's `value` on all ranks.
uint64_t broadcast(const Memory &memory, const ah_worker_link &link,
                   uint64_t value, const char *what);

} // namespace autohet::runtime

#endif

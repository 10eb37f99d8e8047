//===- Checkpoint.h - a run's state on disk ----------------------*- C++ -*-===//
//
// One folder a step: safetensors files of owned slices, and a manifest that is
// written last and makes them a checkpoint. Slices are named by PyTorch's names
// and global offsets, so any other plan can read them. See
// docs/formats/checkpoint.md.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define AUTOHET_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "autohet/runtime/optimizer.h"
#include "data/Box.h"
#include "data/Safetensors.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace autohet::runtime {

/// What is kept of a parameter: itself, and Adam's two moments.
enum class SliceKind { Parameter, Mean, Square };
/// "parameter", "exp_avg", "exp_avg_sq": PyTorch's words.
const char *sliceKindName(SliceKind kind);

/// A box of a tensor in a file of a checkpoint.
struct SliceRecord {
  std::string name;
  SliceKind kind = SliceKind::Parameter;
  uint8_t dtype = 0;
  Box box;
  std::string file;
  uint64_t checksum = 0;

  /// The tensor's name in its file: "exp_avg/wte.weight/0,0".
  std::string key() const;
};

struct CheckpointFile {
  std::string name; // beside the manifest
  uint64_t bytes = 0;
};

struct CheckpointManifest {
  uint64_t step = 0;    // steps done: the next one's number
  uint64_t updates = 0; // of them, those whose update was applied
  uint64_t structureHash = 0;
  uint64_t seed = 0;
  uint32_t globalBatch = 0;
  uint32_t sequenceLength = 0; // of the data's windows; 0: it is not said
  ah_optimizer optimizer = AH_NO_OPTIMIZER;
  ah_optimizer_settings settings = {};
  std::string noDecay; // the names of parameters without weight decay
  Aliases aliases;     // for export
  std::vector<CheckpointFile> files;
  std::vector<SliceRecord> slices;

  std::string text() const;
  /// Throws with path and key.
  static CheckpointManifest read(const std::string &path);
  /// That of one step's folder; throws where they differ about the step.
  static CheckpointManifest ofFolder(const std::string &folder);
};

/// What a job must have in common with the checkpoint that it goes on from.
struct CheckpointJob {
  uint64_t structureHash = 0;
  uint32_t globalBatch = 0;         // 0: it is not known
  std::optional<ah_optimizer> kind; // of its optimizer; unset: it is not known
};
/// Throws where `manifest`, of the checkpoint `folder`, is of another job.
void checkJob(const CheckpointManifest &manifest, const std::string &folder,
              const CheckpointJob &job);

/// By kind: "sgd" and so on, as in every file.
extern const char *const optimizerNames[4];
/// The kind called `name`; nothing where there is none.
std::optional<ah_optimizer> optimizerOfName(const std::string &name);

/// Throws unless the slices are the whole of every tensor, of each kind once
/// (what is frozen may be there several times) and in files that are listed.
void checkComplete(const CheckpointManifest &manifest,
                   const std::string &folder);

/// Records as JSON, as ranks send them to each other.
std::string recordsText(const std::vector<SliceRecord> &records);
std::vector<SliceRecord> parseRecords(const std::string &text,
                                      const std::string &where);

/// "step-00000020".
std::string stepFolderName(uint64_t step);

/// A complete checkpoint, open for reading.
class CheckpointReader {
public:
  /// Opens `folder` (of one step); checks that the slices are complete and that
  /// files are there in the right size.
  explicit CheckpointReader(const std::string &folder);

  const std::string &folder() const { return path; }
  const CheckpointManifest &manifest() const { return content; }
  /// Fills `packed` (box of a tensor) from all slices that overlap it,
  /// comparing each one's checksum first. False where the tensor is not there
  /// at all; throws where a part of it is missing.
  bool read(const std::string &name, SliceKind kind, uint8_t dtype,
            const Box &box, char *packed);
  /// Compares every checksum; throws with tensor and file. Of a large one what
  /// `seconds` suffice for, at least one slice.
  void verify(double seconds = 1e300);

private:
  const char *data(const SliceRecord &slice);

  std::string path;
  CheckpointManifest content;
  std::map<std::string, SafetensorsFile> files;
  std::map<const SliceRecord *, bool> verified;
  std::multimap<std::string, const SliceRecord *> byName;
};

/// What is in a folder of checkpoints, newest first.
struct FoundCheckpoint {
  std::string folder;
  uint64_t step = 0;
  // Has a manifest, or nobody can say: only what was not finished is passed
  // over in silence, what cannot be read is an error.
  bool complete = false;
};
std::vector<FoundCheckpoint> findCheckpoints(const std::string &folder);

/// Of those other than `step`'s that have a manifest and all of their files the
/// newest; nothing where there is none. Reads no tensor.
std::optional<FoundCheckpoint> findOther(const std::string &folder,
                                         uint64_t step);

/// The newest complete one, or that of `step`; the names of skipped ones go to
/// `skipped`. Throws where there is none: nobody starts from scratch unasked.
FoundCheckpoint chooseCheckpoint(const std::string &folder, int64_t step,
                                 std::vector<std::string> &skipped);

/// Removes what the manifest of one checkpoint lists, the manifest first, and
/// then its folder if nothing else is in it.
void removeCheckpoint(const std::string &folder);

} // namespace autohet::runtime

#endif

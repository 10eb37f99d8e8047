//===- Weights.h - where initial parameters come from ------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_DATA_WEIGHTS_H
#define AUTOHET_RUNTIME_DATA_WEIGHTS_H

#include "core/Memory.h"
#include "data/Safetensors.h"

#include <map>
#include <optional>
#include <set>

namespace autohet::runtime {

/// One entry of a weights index; see docs/formats/weights-index.md.
struct StoredTensor {
  std::string name;
  std::string file; // empty: no bytes are stored anywhere
  uint64_t offset = 0, bytes = 0;
  uint8_t dtype = 0;
  std::vector<int64_t> shape; // as PyTorch has it, whatever the file's order
  bool transposed = false;
  bool trained = true;
  bool frozen = false; // a parameter, and not trained
  std::optional<uint64_t> checksum;
};

/// `weights.index` of an output folder: says which bytes of which file a
/// parameter is.
class WeightsIndex {
public:
  /// Throws with path, tensor and field. Files are looked up beside the index.
  explicit WeightsIndex(const std::string &path);

  const std::string &path() const { return indexPath; }
  uint64_t structureHash() const { return structure; }
  const std::map<std::string, StoredTensor> &tensors() const { return entries; }
  const Aliases &aliases() const { return otherNames; }
  std::set<std::string> frozen() const;
  /// The bytes of a tensor as stored; checks that the file holds them.
  const char *data(const StoredTensor &tensor);
  /// Compares the checksum; throws AH_ERROR_INPUT naming tensor and file.
  void verify(const StoredTensor &tensor);
  /// Nobody reads the tensor's bytes for now: weights that were read need not
  /// stay in memory beside their copies.
  void release(const StoredTensor &tensor);

private:
  std::string indexPath, folder;
  uint64_t structure = 0;
  std::map<std::string, StoredTensor> entries;
  Aliases otherNames;
  std::map<std::string, MappedFile> files;
};

/// How trained parameters get their first values.
struct WeightOptions {
  std::string indexPath;
  // Safetensors under PyTorch's names, a file or a folder; empty: the index.
  std::string overrideFiles;
  bool draw = false; // --init: by (seed, name, global index)
  double deviation = 0.02;
  uint64_t seed = 0;
  bool skipTrained = false; // a checkpoint will fill them
};

/// Fills parameter and constant buffers; reads only the boxes held here.
/// Returns warnings, such as names in the override file that the model does not
/// have.
std::vector<std::string> loadWeights(Memory &memory,
                                     const WeightOptions &options);

} // namespace autohet::runtime

#endif

//===- WeightFiles.h - one model's tensors in one or several files -*- C++ -*-===//
//
// What people have of a published model: one safetensors file, or a folder of
// several with an index, often in half the precision that is trained in.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_DATA_WEIGHTFILES_H
#define AUTOHET_RUNTIME_DATA_WEIGHTFILES_H

#include "data/Safetensors.h"

#include <memory>

namespace autohet::runtime {

class WeightFiles {
public:
  struct Tensor {
    const SafetensorsFile *file;
    const TensorInfo *info;
    const char *data() const { return file->data(*info); }
  };

  /// A safetensors file; or a folder with model.safetensors, or with the index
  /// model.safetensors.index.json and the files that it names. Throws
  /// AH_ERROR_INPUT where index and files disagree.
  explicit WeightFiles(const std::string &path);

  const std::string &path() const { return name; }
  const std::map<std::string, Tensor> &tensors() const { return byName; }
  /// Null where there is none.
  const Tensor *find(const std::string &tensor) const;
  /// Throws AH_ERROR_NOT_FOUND, listing what is there.
  [[noreturn]] void failMissing(const std::string &tensor) const;

private:
  void readIndex(const std::string &folder, const std::string &index);
  const SafetensorsFile &open(const std::string &path);

  std::string name;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files;
  std::map<std::string, Tensor> byName;
};

/// Whether values of `from` can be read as those of `to` without a loss: equal
/// dtypes, and the halves as float32.
bool widens(uint8_t from, uint8_t to);
/// `count` values of dtype F16 or BF16 as float32.
std::vector<char> widened(uint8_t from, const char *values, uint64_t count);

} // namespace autohet::runtime

#endif

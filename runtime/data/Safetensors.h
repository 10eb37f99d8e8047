//===- Safetensors.h - files of named tensors --------------------*- C++ -*-===//
//
// The format of everything that leaves or enters a run by name. The reader is
// strict: header, offsets and file size must agree to the byte, because a
// truncated file read through a mapping is zeros, not an error.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_DATA_SAFETENSORS_H
#define AUTOHET_RUNTIME_DATA_SAFETENSORS_H

#include "data/Mapped.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace autohet::runtime {

/// A dtype that files may hold and programs do not (F8_E4M3, C64, ...).
constexpr uint8_t foreignDtype = 0xff;

struct TensorInfo {
  std::string name;
  uint8_t dtype = 0; // ah_dtype or foreignDtype
  std::string dtypeText;
  std::vector<int64_t> shape;
  uint64_t offset = 0; // in the file
  uint64_t bytes = 0;

  int64_t elements() const;
};

using Metadata = std::map<std::string, std::string>;

/// The other names of tied parameters, each with the one that programs use.
using Aliases = std::map<std::string, std::string>;

class SafetensorsFile {
public:
  /// Throws AH_ERROR_INPUT with path, tensor, what was found and what was
  /// wanted.
  explicit SafetensorsFile(const std::string &path);

  const std::string &path() const { return file.path(); }
  const std::vector<TensorInfo> &tensors() const {
    return infos;
  } // in file order
  const Metadata &metadata() const { return meta; }
  /// Null where there is none.
  const TensorInfo *find(const std::string &name) const;
  /// Throws AH_ERROR_NOT_FOUND, listing what is there.
  const TensorInfo &get(const std::string &name) const;
  const char *data(const TensorInfo &tensor) const {
    return file.data() + tensor.offset;
  }

private:
  MappedFile file;
  std::vector<TensorInfo> infos;
  std::map<std::string, size_t> byName;
  Metadata meta;
};

/// What to write: the bytes are asked for one tensor at a time, in order.
struct TensorSource {
  std::string name;
  uint8_t dtype;
  std::vector<int64_t> shape;
  std::function<const void *()> bytes;
};

/// Writes all or nothing.
void writeSafetensors(const std::string &path,
                      const std::vector<TensorSource> &tensors,
                      const Metadata &metadata = {});

} // namespace autohet::runtime

#endif

//===- TensorFile.h - one tensor a file, and files of many ------*- C++ -*-===//
//
// Inputs come, and outputs go, in whatever form a user has: safetensors,
// NumPy's .npy, ONNX's .pb (a TensorProto, as the backend tests have them), or
// the bare elements of a .raw file.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_DATA_TENSORFILE_H
#define AUTOHET_RUNTIME_DATA_TENSORFILE_H

#include "core/Program.h"
#include "data/Safetensors.h"

#include <memory>
#include <optional>

namespace autohet::runtime {

/// A tensor that lies in memory, and where it came from.
struct FileTensor {
  std::string where; // "'in.safetensors', tensor 'x'", for messages
  TensorInfo info;
  const char *data;
};

/// The files of `--inputs`: "FILE", safetensors with a tensor for each name, or
/// "NAME=FILE" with one tensor in any format.
class TensorFiles {
public:
  /// Opens all of them; throws with the file, what was found and wanted.
  explicit TensorFiles(const std::vector<std::string> &specs);

  bool empty() const { return files.empty(); }
  /// The tensor for `port`, which says what a .raw file holds.
  std::optional<FileTensor> find(const Program &program, const ah_port &port);
  /// The one tensor of the first file, which holds no more and is not .raw.
  FileTensor first() const;
  /// The tensors that are for none of `names`, in words.
  std::vector<std::string>
  findUnused(const std::vector<std::string> &names) const;

private:
  struct File {
    std::string path, name; // no name: safetensors of many
    std::unique_ptr<SafetensorsFile> many;
    std::unique_ptr<MappedFile> mapped;
    TensorInfo info;           // of the one tensor
    std::vector<char> decoded; // where it does not lie as it is needed
    bool isRaw = false;
  };
  void open(const std::string &spec);
  void readNpy(File &file);
  void readProto(File &file);

  std::vector<File> files;
};

/// Reads the one tensor of a .npy or .pb file, for callers without exceptions:
/// returns what is wrong, or nothing.
std::string readTensorFile(const std::string &path, TensorInfo &info,
                           std::vector<char> &bytes) noexcept;

/// Elements of any dtype as doubles, which hold all but the largest 64-bit
/// integers.
std::vector<double> toDoubles(uint8_t dtype, const char *data, int64_t count);

/// Writes tensors in the format that `path` ends in. "{name}" in it stands for
/// a tensor's name (with '_' for '/'): a file each. Only safetensors hold
/// several.
void writeTensors(const std::string &path,
                  const std::vector<TensorSource> &tensors);

} // namespace autohet::runtime

#endif

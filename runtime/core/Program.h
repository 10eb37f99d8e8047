//===- Program.h - a device's program, checked ------------------*- C++ -*-===//
//
// The walker trusts every offset and index it reads, so that walking costs
// nothing; this is the one place that checks them, before anything runs.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_PROGRAM_H
#define AUTOHET_RUNTIME_CORE_PROGRAM_H

#include "autohet/runtime/program.h"

#include <cstddef>
#include <string>

namespace autohet::runtime {

/// A table of the blob.
template <typename T>
class Table {
public:
  Table() = default;
  Table(const T *first, uint32_t count) : first(first), count(count) {}
  const T *begin() const { return first; }
  const T *end() const { return first + count; }
  const T &operator[](size_t index) const { return first[index]; }
  uint32_t size() const { return count; }

private:
  const T *first = nullptr;
  uint32_t count = 0;
};

/// Typed views of a blob that has passed all checks. Does not own it.
class Program {
public:
  /// Throws AH_ERROR_MISMATCH with the table, index and field that is wrong.
  /// `node` is its name in the cluster file, for messages.
  explicit Program(const ah_device_image &image, std::string node = "");

  const ah_program &header() const { return *blob; }
  const char *string(uint32_t offset) const { return strings.begin() + offset; }
  const char *name(const ah_command &command) const {
    return string(command.name);
  }
  /// "gpu-a/1", as plans and messages write a device; "node0/1" without a name.
  std::string deviceName() const;
  /// "kind 'name'": what messages call a command.
  std::string describe(const ah_command &command) const;
  ah_kernel kernel(int64_t index) const { return image.kernels[index]; }
  bool communicates() const { return hasTransfers; }

  Table<ah_buffer> buffers;
  Table<uint32_t> operands;
  Table<ah_command> commands;
  Table<ah_gemm> gemms;
  Table<ah_parameter> parameters;
  Table<ah_port> inputs, outputs;
  Table<ah_stream> streams;
  Table<ah_event> events;
  Table<char> strings;

private:
  friend class ProgramChecker;
  ah_device_image image;
  const ah_program *blob;
  std::string node;
  bool hasTransfers = false;
};

/// Bytes of one element.
uint32_t dtypeBytes(uint8_t dtype);
/// PyTorch's spelling without "torch.": "float32".
const char *dtypeName(uint8_t dtype);
/// "LAUNCH".
const char *kindName(uint8_t kind);
int64_t elementCount(const int64_t *shape, unsigned rank);
/// "[2, 3]".
std::string shapeText(const int64_t *shape, unsigned rank);

} // namespace autohet::runtime

#endif

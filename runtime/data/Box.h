//===- Box.h - boxes of global tensors ---------------------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_DATA_BOX_H
#define AUTOHET_RUNTIME_DATA_BOX_H

#include "autohet/runtime/program.h"

#include <string>
#include <vector>

namespace autohet::runtime {

/// A box of a tensor: what a device holds of it, in row-major order of its own.
struct Box {
  std::vector<int64_t> global, offset, size;

  static Box whole(std::vector<int64_t> shape);
  static Box of(const ah_parameter &parameter);
  int64_t elements() const;
  bool isWhole() const { return size == global; }
  /// Whether all of `other`, which is of the same tensor, is in it.
  bool contains(const Box &other) const;
  /// "[0:2, 4:8] of [2, 8]".
  std::string text() const;
};

/// global[box] -> packed. `transposed`: `global` is stored with its last two
/// dims exchanged.
void copyFromGlobal(const Box &box, unsigned elementBytes, const char *global,
                    char *packed, bool transposed = false);
/// packed -> global[box].
void copyToGlobal(const Box &box, unsigned elementBytes, const char *packed,
                  char *global);

} // namespace autohet::runtime

#endif

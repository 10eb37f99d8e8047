//===- Memory.h - the memory of a device's program ---------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CORE_MEMORY_H
#define AUTOHET_RUNTIME_CORE_MEMORY_H

#include "autohet/runtime/device.h"
#include "core/Program.h"

#include <vector>

namespace autohet::runtime {

/// An open device and its spaces, one allocation each.
class Memory {
public:
  Memory(const Program &program, const ah_device_table &table, uint32_t index);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  const Program &program;
  const ah_device_table &table;
  ah_device *device = nullptr;

  char *space(unsigned space) const {
    return static_cast<char *>(spaces[space]);
  }
  /// Where `buffer` holds microbatch `microbatch`.
  char *address(uint32_t buffer, uint64_t microbatch = 0) const {
    const ah_buffer &b = program.buffers[buffer];
    return space(b.space) + b.offset + (microbatch % b.slots) * b.slot_stride;
  }
  /// The f64 accumulators and f32 factors that the host shares with kernels.
  double &scalar64(ah_scalar scalar) const {
    return *reinterpret_cast<double *>(space(AH_SPACE_SCALAR) + 64 * scalar);
  }
  float &scalar32(ah_scalar scalar) const {
    return *reinterpret_cast<float *>(space(AH_SPACE_SCALAR) + 64 * scalar);
  }

  /// Whole buffers between host and device.
  void write(uint32_t buffer, const void *from, uint64_t bytes);
  std::vector<char> read(uint32_t buffer, uint64_t bytes,
                         uint64_t microbatch = 0) const;
  void zeroGradients();

private:
  void *spaces[AH_SPACE_COUNT] = {};
};

} // namespace autohet::runtime

#endif

//===- Memory.cpp - the memory of a device's program ------------------------===//

#include "core/Memory.h"

#include "core/Error.h"

namespace autohet::runtime {

Memory::Memory(const Program &program, const ah_device_table &table,
               uint32_t index)
    : program(program), table(table) {
  check(table.open(index, &program.header(), &device));
  static const char *const names[] = {"activations", "parameters",
                                      "gradients",   "optimizer state",
                                      "constants",   "scalars"};
  for (unsigned space = 0; space < AH_SPACE_COUNT; ++space) {
    uint64_t bytes = program.header().space_bytes[space];
    ah_status status =
        table.allocate(device, ah_space(space), bytes, &spaces[space]);
    if (status != AH_OK)
      fail(status, "device %s, %s: %s", program.deviceName().c_str(),
           names[space], ah_last_error());
  }
}

Memory::~Memory() {
  for (unsigned space = 0; space < AH_SPACE_COUNT; ++space)
    table.release(device, spaces[space], program.header().space_bytes[space]);
  table.close(device);
}

void Memory::write(uint32_t buffer, const void *from, uint64_t bytes) {
  check(table.write(device, address(buffer), from, bytes));
}

std::vector<char> Memory::read(uint32_t buffer, uint64_t bytes,
                               uint64_t microbatch) const {
  std::vector<char> data(bytes);
  check(table.read(device, data.data(), address(buffer, microbatch), bytes));
  return data;
}

void Memory::zeroGradients() {
  check(table.zero(device, 0, spaces[AH_SPACE_GRADIENT],
                   program.header().space_bytes[AH_SPACE_GRADIENT]));
}

} // namespace autohet::runtime

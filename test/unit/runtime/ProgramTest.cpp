//===- ProgramTest.cpp - damaged programs are refused -----------------------===//

#include "LinearModel.h"

#include "autohet/runtime/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

template <typename Damage>
static std::string errorOf(Damage &&damage) {
  LinearModel model(2, 2);
  damage(model);
  try {
    Program program(model.build());
  } catch (const Error &error) {
    EXPECT_EQ(error.status, AH_ERROR_MISMATCH);
    return error.what();
  }
  return "no error";
}

TEST(Program, GoodOneIsAccepted) {
  EXPECT_EQ(errorOf([](LinearModel &) {}), "no error");
}

TEST(Program, DamageIsNamed) {
  EXPECT_THAT(errorOf([](LinearModel &m) { m.header.magic = 1; }),
              HasSubstr("not a device program"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.header.version = 9; }),
              HasSubstr("version 9"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.header.rank = 1; }),
              HasSubstr("rank outside"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.header.global_batch = 3; }),
              HasSubstr("microbatches outside the global batch"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.buffers[0].bytes = 1 << 20; }),
              HasSubstr("buffer 0: outside its space"));
  EXPECT_THAT(
      errorOf([](LinearModel &m) { m.buffers[0].offset = ~uint64_t(0); }),
      HasSubstr("buffer 0: outside its space"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.operands[0] = 99; }),
              HasSubstr("unknown buffer"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.commands[4].args[0] = 9; }),
              HasSubstr("command 4 (GEMM 'forward'): index outside its table"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.gemms[0].m = 3; }),
              HasSubstr("GEMM 'forward'): more bytes than the buffer has"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.commands[1].args[1] = 3; }),
              HasSubstr("loop outside the step's microbatches"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.commands[2].microbatch = 1; }),
              HasSubstr("works for a microbatch after the last"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.streams[0].command_count -= 1; }),
              HasSubstr("streams do not partition the commands"));
  EXPECT_THAT(
      errorOf([](LinearModel &m) { m.parameters[0].box_offset[0] = 1; }),
      HasSubstr("parameter 0: box outside the tensor"));
  EXPECT_THAT(errorOf([](LinearModel &m) { m.commands[12].operand_count = 1; }),
              HasSubstr("UPDATE 'update w'): wrong number of operands"));
}

// Any single byte of the tables may be anything: refused or accepted, never a
// crash. (Sanitizers make this a real test.)
TEST(Program, RandomDamageNeverCrashes) {
  LinearModel model(2, 2);
  ah_device_image image = model.build();
  const char *first = reinterpret_cast<const char *>(image.program);
  std::vector<uint64_t> copy(image.program->total_bytes / 8);
  image.program = reinterpret_cast<const ah_program *>(copy.data());
  unsigned refused = 0;
  for (unsigned round = 0; round < 5000; ++round) {
    memcpy(copy.data(), first, copy.size() * 8);
    ah_random draw = ah_philox(1, round, 0, 0);
    // The header's total size is the linker's, not checked: leave it alone.
    size_t position = draw.word[0] % (copy.size() * 8);
    if (position >= offsetof(ah_program, total_bytes) &&
        position < offsetof(ah_program, total_bytes) + 8)
      continue;
    reinterpret_cast<char *>(copy.data())[position] ^= 1 << (draw.word[1] % 8);
    try {
      Program program(image);
    } catch (const Error &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500u);
}

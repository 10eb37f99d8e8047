//===- MemoryOverTimeTest.cpp - what a simulated device holds -------------===//

#include "autohet/Simulator/MemoryOverTime.h"

#include "gtest/gtest.h"

using namespace autohet;

namespace {

SimCommand compute(double seconds, int64_t microbatch,
                   std::vector<unsigned> buffers) {
  SimCommand command;
  command.name = "compute";
  command.seconds = seconds;
  command.microbatch = microbatch;
  command.buffers = std::move(buffers);
  return command;
}

/// Two forwards, then two backwards: the first activation is held longest.
TEST(MemoryOverTime, AMicrobatchHoldsFromFirstToLastUse) {
  SimProgram program;
  SimDevice &device = program.devices.emplace_back();
  device.name = "n/0";
  device.microbatches = 2;
  device.buffers = {{"activation", 100}, {"temporary", 7}};
  device.streams.push_back({"compute",
                            {compute(1, 0, {0}), compute(1, 1, {0}),
                             compute(2, 0, {0, 1}), compute(2, 1, {0, 1})}});
  program.links.resize(1);
  llvm::Expected<SimResult> result = simulate(program);
  ASSERT_TRUE(static_cast<bool>(result));

  std::vector<MemoryPoint> curve = memoryOverTime(program, *result).front();
  std::vector<std::pair<double, double>> found;
  for (const MemoryPoint &point : curve)
    found.push_back({point.time_s, point.bytes});
  std::vector<std::pair<double, double>> wanted = {
      {0, 100}, {1, 200}, {2, 207}, {4, 107}, {6, 0}};
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(peakBytes(curve, 0, 6), 207);
  EXPECT_EQ(peakBytes(curve, 4, 6), 107);
  EXPECT_EQ(peakBytes(curve, 0, 1), 100);
  EXPECT_DOUBLE_EQ(meanBytes(curve, 0, 6),
                   (100 + 200 + 2 * 207 + 2 * 107) / 6.0);
}

} // namespace

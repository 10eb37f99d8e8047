//===- DeviceTest.cpp - what every device back end has to do ----------------===//
//
// One suite for all back ends: a new one adds its table to the list at the end.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "autohet/runtime/device.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime::test;
using testing::HasSubstr;

namespace {
class Device : public testing::TestWithParam<const ah_device_table *> {
protected:
  void SetUp() override {
    builder.stream("compute");
    image = builder.build();
    ASSERT_EQ(table.open(0, image.program, &device), AH_OK) << ah_last_error();
  }
  void TearDown() override {
    for (auto &[memory, bytes] : allocated)
      table.release(device, memory, bytes);
    table.close(device);
  }

  float *put(const std::vector<float> &values) {
    void *memory;
    uint64_t bytes = values.size() * sizeof(float);
    EXPECT_EQ(table.allocate(device, AH_SPACE_ARENA, bytes, &memory), AH_OK);
    EXPECT_EQ(table.write(device, memory, values.data(), bytes), AH_OK);
    allocated.push_back({memory, bytes});
    return static_cast<float *>(memory);
  }
  std::vector<float> get(const float *from, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(table.finish(device, 0), AH_OK);
    EXPECT_EQ(table.read(device, values.data(), from, count * sizeof(float)),
              AH_OK);
    return values;
  }

  const ah_device_table &table = *GetParam();
  ProgramBuilder builder;
  ah_device_image image;
  ah_device *device = nullptr;
  std::vector<std::pair<void *, uint64_t>> allocated;
};
} // namespace

TEST_P(Device, MemoryIsAlignedAndZero) {
  for (uint64_t bytes : {uint64_t(4), uint64_t(4096), uint64_t(5) << 20}) {
    void *memory;
    ASSERT_EQ(table.allocate(device, AH_SPACE_ARENA, bytes, &memory), AH_OK);
    EXPECT_EQ(uintptr_t(memory) % AH_ALIGNMENT, 0u);
    EXPECT_EQ(get(static_cast<float *>(memory), 1)[0], 0);
    EXPECT_EQ(get(static_cast<float *>(memory) + bytes / 4 - 1, 1)[0], 0);
    table.release(device, memory, bytes);
  }
  void *none;
  EXPECT_EQ(table.allocate(device, AH_SPACE_GRADIENT, 0, &none), AH_OK);
  EXPECT_EQ(table.zero(device, 0, none, 0), AH_OK);
  EXPECT_EQ(table.allocate(device, AH_SPACE_ARENA, uint64_t(1) << 60, &none),
            AH_ERROR_NO_SPACE);
  EXPECT_THAT(ah_last_error(), HasSubstr("cannot allocate"));
}

TEST_P(Device, CopyAndZero) {
  float *a = put({1, 2, 3, 4}), *b = put({5, 6, 7, 8});
  EXPECT_EQ(table.copy(device, 0, b, a, 12), AH_OK);
  EXPECT_THAT(get(b, 4), testing::ElementsAre(1, 2, 3, 8));
  EXPECT_EQ(table.zero(device, 0, b, 8), AH_OK);
  EXPECT_THAT(get(b, 4), testing::ElementsAre(0, 0, 3, 8));
}

TEST_P(Device, ReduceAddsLeftToRight) {
  float *a = put({1e8f, 1}), *b = put({-1e8f, 2}), *c = put({0.5f, 3});
  const float *from[] = {a, b, c};
  EXPECT_EQ(table.reduce(device, 0, c, from, 3, 2), AH_OK);
  EXPECT_THAT(get(c, 2), testing::ElementsAre(0.5f, 6));
}

TEST_P(Device, GemmIsBatchedAndAccumulates) {
  // Two products of [1, 2] and [2, 1].
  float *a = put({1, 2, 3, 4}), *b = put({5, 6, 7, 8}), *c = put({100, 200});
  ah_gemm gemm = {2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 0, 0, 0, {}};
  EXPECT_EQ(table.gemm(device, 0, &gemm, a, b, c), AH_OK) << ah_last_error();
  EXPECT_THAT(get(c, 2), testing::ElementsAre(117, 253));
  gemm.beta = 0;
  c = put({NAN, NAN});
  EXPECT_EQ(table.gemm(device, 0, &gemm, a, b, c), AH_OK);
  EXPECT_THAT(get(c, 2), testing::ElementsAre(17, 53));
}

TEST_P(Device, SumOfSquaresIsAdded) {
  double sum = 1;
  EXPECT_EQ(table.add_squares(device, 0, put({3, 4}), 2, &sum), AH_OK);
  EXPECT_EQ(table.finish(device, 0), AH_OK);
  EXPECT_EQ(sum, 26);
}

TEST_P(Device, UpdateStepsAgainstTheGradient) {
  ah_update update = {};
  update.kind = AH_SGD;
  update.learning_rate = 0.5;
  update.clips = 1;
  update.clip = 0.5f;
  float *p = put({1, 1}), *g = put({2, -4});
  float *states[2] = {};
  EXPECT_EQ(table.update(device, 0, &update, p, g, states, 2), AH_OK);
  EXPECT_THAT(get(p, 2), testing::ElementsAre(0.5f, 2));
  update.kind = AH_ADAMW;
  update.clips = 0;
  update.updates = 1;
  update.epsilon = 1e-8;
  update.beta1 = 0.9;
  update.beta2 = 0.999;
  states[0] = put({0, 0});
  states[1] = put({0, 0});
  p = put({1, 1});
  // Adam's first step is the rate, against the sign.
  EXPECT_EQ(table.update(device, 0, &update, p, g, states, 2), AH_OK);
  EXPECT_THAT(get(p, 2),
              testing::Pointwise(testing::FloatNear(1e-6), {0.5f, 1.5f}));
  EXPECT_THAT(get(states[0], 2),
              testing::Pointwise(testing::FloatEq(), {0.2f, -0.4f}));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Device, testing::Values(ah_cpu_device_table()));

//===- DropoutTest.cpp - masks are those of runtime/random.h ----------------===//

#include "KernelHarness.h"

#include "autohet/runtime/random.h"

#include <gtest/gtest.h>

using namespace autohet::test;

TEST(DropoutKernel, DrawsTheRuntimesMaskOrNoneWhileEvaluating) {
  Kernel kernel(R"(func.func @k(%x: tensor<3x37xf32>) -> tensor<3x37xf32> {
    %y = het.dropout %x {p = 2.5e-1 : f64, op_id = 7 : i64} : (tensor<3x37xf32>) -> tensor<3x37xf32>
    return %y : tensor<3x37xf32>
  })");
  Floats x = random(3 * 37, 1), y(3 * 37);
  ah_kernel_context context = {};
  context.seed = 0x123456789abcull;
  context.step = 11;
  context.first_sample = 5;
  ASSERT_EQ(kernel({x, y}, &context), 0);
  for (size_t i = 0; i < y.size(); ++i) {
    bool keeps = ah_dropout_keeps(context.seed, 11, 7, 5 * 37 + i, 0.25f);
    EXPECT_EQ(y[i], keeps ? x[i] * float(1 / 0.75) : 0) << i;
  }
  context.evaluates = 1;
  ASSERT_EQ(kernel({x, y}, &context), 0);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], x[i]);
}

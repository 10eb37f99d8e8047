//===- CostTest.cpp - arithmetic and traffic of het ops ---------------------===//

#include "ParseOp.h"

#include "gtest/gtest.h"

using namespace autohet;

static het::OpCost costOf(const std::string &arguments,
                          const std::string &text) {
  test::ParsedOp parsed(arguments, text);
  EXPECT_TRUE(parsed.get()) << text;
  if (!parsed.get())
    return {};
  return llvm::cast<het::CostedOpInterface>(parsed.get()).getCost();
}

TEST(Cost, Matmul) {
  het::OpCost cost =
      costOf("%x: tensor<2x5x8xf32>, %w: tensor<9x8xf32>",
             "%y = het.matmul %x, %w contract [2] [1] : (tensor<2x5x8xf32>, "
             "tensor<9x8xf32>) -> tensor<2x5x9xf32>");
  EXPECT_EQ(cost.matmulFlops, 2.0 * 10 * 9 * 8);
  EXPECT_EQ(cost.bytesRead, 4.0 * (80 + 72));
  EXPECT_EQ(cost.bytesWritten, 4.0 * 90);
}

TEST(Cost, CausalAttentionSkipsWhatItMasks) {
  auto flops = [](const std::string &causal) {
    return costOf("%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x5x4xf32>",
                  "%y:2 = het.attention %q, %k, %k {scale = 1.0 : f64, " +
                      causal +
                      "kv_heads = array<i64: 0>} : (tensor<1x1x3x4xf32>, "
                      "tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> "
                      "(tensor<1x1x3x4xf32>, tensor<1x1x3xf32>)")
        .matmulFlops;
  };
  EXPECT_EQ(flops(""), 2.0 * 15 * 8);
  EXPECT_EQ(flops("causal, "), 2.0 * (3 + 4 + 5) * 8);
}

TEST(Cost, ViewsAreFreeAndTablesAreNotRead) {
  het::OpCost view =
      costOf("%x: tensor<2x3xf32>", "%y = het.reshape %x to [6] : "
                                    "(tensor<2x3xf32>) -> tensor<6xf32>");
  EXPECT_EQ(view.bytesRead + view.bytesWritten + view.otherFlops, 0);
  het::OpCost rows = costOf(
      "%t: tensor<101x48xf32>, %i: tensor<2xi64>",
      "%y = het.embedding %t, %i : (tensor<101x48xf32>, tensor<2xi64>) -> "
      "tensor<2x48xf32>");
  EXPECT_EQ(rows.bytesRead, 2 * 48 * 4 + 2 * 8);
}

TEST(Cost, BooleansAreBytes) {
  het::OpCost cost =
      costOf("%a: tensor<8xf32>",
             "%y = het.is_nan %a : (tensor<8xf32>) -> tensor<8xi1>");
  EXPECT_EQ(cost.bytesRead, 32);
  EXPECT_EQ(cost.bytesWritten, 8);
}

//===- ShardingTest.cpp - factors of het ops --------------------------------===//
//
// A rule in text: factors in letters with their sizes, then each tensor's dims.
//
//===----------------------------------------------------------------------===//

#include "ParseOp.h"

#include "gtest/gtest.h"

using namespace autohet;

static std::string ruleOf(const std::string &arguments,
                          const std::string &text) {
  test::ParsedOp parsed(arguments, text);
  if (!parsed.get())
    return "does not parse";
  std::string rule;
  llvm::raw_string_ostream os(rule);
  os << llvm::cast<het::ShardableOpInterface>(parsed.get()).getShardingRule();
  return rule;
}

TEST(Sharding, Matmul) {
  EXPECT_EQ(
      ruleOf("%x: tensor<2x5x8xf32>, %w: tensor<9x8xf32>",
             "%y = het.matmul %x, %w contract [2] [1] : (tensor<2x5x8xf32>, "
             "tensor<9x8xf32>) -> tensor<2x5x9xf32>"),
      "a=2 b=5 c=9 reduction d=8: [a b d] [c d] -> [a b c]");
  EXPECT_EQ(
      ruleOf(
          "%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>",
          "%y = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3] : "
          "(tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>"),
      "a=2 b=4 c=5 d=7 reduction e=8: [a b c e] [a b d e] -> [a b c d]");
}

TEST(Sharding, Elementwise) {
  EXPECT_EQ(
      ruleOf("%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>",
             "%y = het.add %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> "
             "tensor<2x3x4xf32>"),
      "a=2 b=3 c=4: [a 1 c] [b 1] -> [a b c], linear in 0 1");
  EXPECT_EQ(ruleOf("%a: tensor<1x4xf32>",
                   "%y = het.broadcast %a to [3, 1, 4] : (tensor<1x4xf32>) -> "
                   "tensor<3x1x4xf32>"),
            "a=3 b=4: [1 b] -> [a 1 b], linear in 0");
}

TEST(Sharding, Reduce) {
  std::string arguments = "%x: tensor<2x3x4xf32>";
  EXPECT_EQ(ruleOf(arguments, "%y = het.reduce sum %x dims [0, 1] keep : "
                              "(tensor<2x3x4xf32>) -> tensor<1x1x4xf32>"),
            "reduction a=2 reduction b=3 c=4: [a b c] -> [1 1 c], linear in 0");
  EXPECT_EQ(ruleOf(arguments, "%y = het.reduce mean %x dims [1] : "
                              "(tensor<2x3x4xf32>) -> tensor<2x4xf32>"),
            "a=2 blocked b=3 c=4: [a b c] -> [a c], linear in 0");
}

TEST(Sharding, Norms) {
  EXPECT_EQ(
      ruleOf("%x: tensor<2x3x8xf32>, %g: tensor<8xf32>",
             "%y:3 = het.layer_norm %x, %g, %g {epsilon = 1.0e-5 : f64} : "
             "(tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> "
             "(tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)"),
      "a=2 b=3 blocked c=8: [a b c] [c] [c] -> [a b c] [a b] [a b]");
  // Of one row dim, rows and vectors have one rank: they must not be confused.
  EXPECT_EQ(
      ruleOf("%x: tensor<2x8xf32>, %g: tensor<8xf32>, %r: tensor<2xf32>",
             "%y:2 = het.rms_norm_backward %x, %g, %r, %x : (tensor<2x8xf32>, "
             "tensor<8xf32>, tensor<2xf32>, tensor<2x8xf32>) -> "
             "(tensor<2x8xf32>, tensor<8xf32>)"),
      "a=2 blocked b=8: [a b] [b] [a] [a b] -> [a b] [b]");
}

TEST(Sharding, Attention) {
  auto attention = [](const std::string &map, int kvHeads) {
    std::string kv = "tensor<2x" + std::to_string(kvHeads) + "x5x16xf32>";
    return ruleOf(
        "%q: tensor<2x4x3x16xf32>, %k: " + kv + ", %m: tensor<4x1x5xf32>",
        "%y:2 = het.attention %q, %k, %k, %m {scale = 1.0 : f64, kv_heads = "
        "array<i64: " +
            map + ">} : (tensor<2x4x3x16xf32>, " + kv + ", " + kv +
            ", tensor<4x1x5xf32>) -> (tensor<2x4x3x16xf32>, "
            "tensor<2x4x3xf32>)");
  };
  EXPECT_EQ(attention("0, 1, 2, 3", 4),
            "a=2 b=4 blocked c=3 blocked d=5 blocked e=16 blocked f=16: "
            "[a b c e] [a b d e] [a b d f] [b 1 d] -> [a b c f] [a b c]");
  EXPECT_EQ(
      attention("0, 0, 1, 1", 2),
      "a=2 b=4 blocked c=2 blocked d=3 blocked e=5 blocked f=16 blocked g=16: "
      "[a b d f] [a c e f] [a c e g] [b 1 e] -> [a b d g] [a b d]");
}

TEST(Sharding, Vocabulary) {
  EXPECT_EQ(
      ruleOf(
          "%t: tensor<101x48xf32>, %i: tensor<2x12xi64>",
          "%y = het.embedding %t, %i : (tensor<101x48xf32>, tensor<2x12xi64>) "
          "-> tensor<2x12x48xf32>"),
      "a=2 b=12 c=48 reduction d=101: [d c] [a b] -> [a b c]");
  EXPECT_EQ(
      ruleOf("%i: tensor<2x12xi64>, %g: tensor<2x12x48xf32>",
             "%y = het.embedding_backward %i, %g {rows = 101 : i64} : "
             "(tensor<2x12xi64>, tensor<2x12x48xf32>) -> tensor<101x48xf32>"),
      "reduction a=2 reduction b=12 c=48 d=101: [a b] [a b c] -> [d c]");
  EXPECT_EQ(
      ruleOf("%x: tensor<2x12x101xf32>, %l: tensor<2x12xi64>",
             "%y:2 = het.cross_entropy %x, %l {ignore_index = -100 : i64} : "
             "(tensor<2x12x101xf32>, tensor<2x12xi64>) -> (tensor<f32>, "
             "tensor<2x12xf32>)"),
      "a=2 b=12 blocked c=101: [a b c] [a b] -> [] [a b]");
}

TEST(Sharding, Reshape) {
  auto reshape = [](const std::string &from, const std::string &shape,
                    const std::string &to) {
    return ruleOf("%x: tensor<" + from + "xf32>",
                  "%y = het.reshape %x to [" + shape + "] : (tensor<" + from +
                      "xf32>) -> tensor<" + to + "xf32>");
  };
  // Fused QKV: 3 x heads x head_dim.
  EXPECT_EQ(reshape("2x5x24", "2, 5, 3, 2, 4", "2x5x3x2x4"),
            "a=2 b=5 c=3 d=2 e=4: [a b (c d e)] -> [a b c d e], linear in 0");
  EXPECT_EQ(reshape("2x5x2x4", "10, 8", "10x8"),
            "a=2 b=5 c=2 d=4: [a b c d] -> [(a b) (c d)], linear in 0");
  EXPECT_EQ(reshape("6x4", "2, 12", "2x12"),
            "a=2 b=3 c=4: [(a b) c] -> [a (b c)], linear in 0");
  EXPECT_EQ(reshape("1x6x1", "6, 1, 1", "6x1x1"),
            "a=6: [1 a 1] -> [a 1 1], linear in 0");
  // No factor in common, then dims that agree again.
  EXPECT_EQ(reshape("4x6x5", "6, 4, 5", "6x4x5"),
            "blocked a=4 blocked b=6 blocked c=6 blocked d=4 e=5: [a b e] -> "
            "[c d e], linear in 0");
}

TEST(Sharding, Views) {
  EXPECT_EQ(
      ruleOf("%x: tensor<2x3x4xf32>",
             "%y = het.transpose %x by [2, 0, 1] : (tensor<2x3x4xf32>) -> "
             "tensor<4x2x3xf32>"),
      "a=4 b=2 c=3: [b c a] -> [a b c], linear in 0");
  EXPECT_EQ(
      ruleOf("%x: tensor<2x4xf32>",
             "%y = het.slice %x offsets [0, 2] sizes [2, 2] strides [1, 1] : "
             "(tensor<2x4xf32>) -> tensor<2x2xf32>"),
      "a=2 blocked b=4 blocked c=2: [a b] -> [a c], linear in 0");
  EXPECT_EQ(ruleOf("%x: tensor<2x3xf32>, %z: tensor<2x2xf32>",
                   "%y = het.concat %x, %z {dim = 1 : i64} : (tensor<2x3xf32>, "
                   "tensor<2x2xf32>) -> tensor<2x5xf32>"),
            "a=2 blocked b=5 blocked c=3 blocked d=2: [a c] [a d] -> [a b], "
            "linear in 0 1");
}

TEST(Sharding, Gathers) {
  EXPECT_EQ(
      ruleOf("%x: tensor<2x9x4xf32>, %i: tensor<3xi64>",
             "%y = het.gather %x, %i {dim = 1 : i64} : (tensor<2x9x4xf32>, "
             "tensor<3xi64>) -> tensor<2x3x4xf32>"),
      "a=2 blocked b=9 c=3 d=4: [a b d] [c] -> [a c d]");
  EXPECT_EQ(
      ruleOf("%x: tensor<2x9x4xf32>, %i: tensor<2x3x1xi64>",
             "%y = het.gather_nd %x, %i {batch_dims = 1 : i64} : "
             "(tensor<2x9x4xf32>, tensor<2x3x1xi64>) -> tensor<2x3x4xf32>"),
      "a=2 b=3 blocked c=9 d=4: [a c d] [a b 1] -> [a b d]");
}

//===- AdjointTest.cpp - every adjoint against central differences ----------===//
//
// Shapes are small, odd and unequal, so that a dim taken for another one shows.
// Ranges keep away from points where no derivative exists.
//
//===----------------------------------------------------------------------===//

#include "FiniteDifferences.h"

#include <gtest/gtest.h>

using autohet::test::Argument;
using autohet::test::checkAdjoint;

static const Argument kMatrix{"tensor<3x5xf32>"};

namespace {
struct Unary {
  const char *op;
  double low, high;
};
class UnaryAdjoint : public testing::TestWithParam<Unary> {};
} // namespace

TEST_P(UnaryAdjoint, Matches) {
  const Unary &unary = GetParam();
  checkAdjoint(
      {{"tensor<3x5xf32>", Argument::Differentiated, unary.low, unary.high}},
      std::string("%y = het.") + unary.op +
          " %a0 : (tensor<3x5xf32>) -> tensor<3x5xf32>",
      "tensor<3x5xf32>");
}
INSTANTIATE_TEST_SUITE_P(
    All, UnaryAdjoint,
    testing::Values(
        Unary{"neg", -1, 1}, Unary{"abs", 0.1, 1}, Unary{"abs", -1, -0.1},
        Unary{"exp", -1, 1}, Unary{"log", 0.5, 2}, Unary{"sqrt", 0.5, 2},
        Unary{"rsqrt", 0.5, 2}, Unary{"reciprocal", 0.7, 2},
        Unary{"tanh", -2, 2}, Unary{"erf", -2, 2}, Unary{"sigmoid", -3, 3},
        Unary{"silu", -3, 3}, Unary{"relu", 0.1, 1}, Unary{"relu", -1, -0.1},
        Unary{"sin", -3, 3}, Unary{"cos", -3, 3}, Unary{"gelu erf", -3, 3},
        Unary{"gelu tanh", -3, 3}, Unary{"softmax", -2, 2}));

namespace {
struct Binary {
  const char *op;
  double lhsLow, lhsHigh, rhsLow, rhsHigh;
};
class BinaryAdjoint : public testing::TestWithParam<Binary> {};
} // namespace

// Both operands broadcast: lhs along the last dim, rhs along a leading one.
TEST_P(BinaryAdjoint, Matches) {
  const Binary &b = GetParam();
  checkAdjoint(
      {{"tensor<2x3x1xf32>", Argument::Differentiated, b.lhsLow, b.lhsHigh},
       {"tensor<3x5xf32>", Argument::Differentiated, b.rhsLow, b.rhsHigh}},
      std::string("%y = het.") + b.op +
          " %a0, %a1 : (tensor<2x3x1xf32>, tensor<3x5xf32>) -> "
          "tensor<2x3x5xf32>",
      "tensor<2x3x5xf32>");
}
INSTANTIATE_TEST_SUITE_P(
    All, BinaryAdjoint,
    testing::Values(Binary{"add", -1, 1, -1, 1}, Binary{"sub", -1, 1, -1, 1},
                    Binary{"mul", -1, 1, -1, 1}, Binary{"div", -1, 1, 0.7, 2},
                    Binary{"pow", 0.5, 2, -1, 2}, Binary{"max", -1, 0, 0.1, 1},
                    Binary{"max", 0.1, 1, -1, 0}, Binary{"min", -1, 0, 0.1, 1},
                    Binary{"min", 0.1, 1, -1, 0}));

// A constant exponent: bases may be negative where it is whole.
TEST(Adjoint, PowerOfConstant) {
  for (const char *exponent : {"1.0", "2.0", "3.0", "4.0", "-1.0"})
    checkAdjoint(
        {{"tensor<3x5xf32>", Argument::Differentiated, -2, -0.7}},
        std::string("%e = het.constant dense<") + exponent +
            "> : tensor<f32>\n%y = het.pow %a0, %e : (tensor<3x5xf32>, "
            "tensor<f32>) -> tensor<3x5xf32>",
        "tensor<3x5xf32>");
  for (const char *exponent : {"0.0", "0.5", "2.5"})
    checkAdjoint(
        {{"tensor<3x5xf32>", Argument::Differentiated, 0.7, 2}},
        std::string("%e = het.constant dense<") + exponent +
            "> : tensor<f32>\n%y = het.pow %a0, %e : (tensor<3x5xf32>, "
            "tensor<f32>) -> tensor<3x5xf32>",
        "tensor<3x5xf32>");
}

TEST(Adjoint, Mod) {
  checkAdjoint({{"tensor<3x5xf32>", Argument::Differentiated, 0.1, 0.9},
                {"tensor<f32>", Argument::Fixed, 1, 1.5}},
               "%y = het.mod %a0, %a1 : (tensor<3x5xf32>, tensor<f32>) -> "
               "tensor<3x5xf32>",
               "tensor<3x5xf32>");
}

TEST(Adjoint, Select) {
  checkAdjoint(
      {{"tensor<3x1xi1>", Argument::Booleans}, kMatrix, {"tensor<5xf32>"}},
      "%y = het.select %a0, %a1, %a2 : (tensor<3x1xi1>, tensor<3x5xf32>, "
      "tensor<5xf32>) -> tensor<3x5xf32>",
      "tensor<3x5xf32>");
}

TEST(Adjoint, Dropout) {
  checkAdjoint({{"tensor<8x16xf32>"}},
               "%y = het.dropout %a0 {p = 0.3 : f64, op_id = 7 : i64} : "
               "(tensor<8x16xf32>) -> tensor<8x16xf32>",
               "tensor<8x16xf32>");
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

TEST(Adjoint, MatmulOfBothLayouts) {
  checkAdjoint(
      {{"tensor<2x3x4xf32>"}, {"tensor<5x4xf32>"}},
      "%y = het.matmul %a0, %a1 contract [2] [1] : (tensor<2x3x4xf32>, "
      "tensor<5x4xf32>) -> tensor<2x3x5xf32>",
      "tensor<2x3x5xf32>");
  checkAdjoint(
      {{"tensor<2x3x4xf32>"}, {"tensor<4x5xf32>"}},
      "%y = het.matmul %a0, %a1 contract [2] [0] : (tensor<2x3x4xf32>, "
      "tensor<4x5xf32>) -> tensor<2x3x5xf32>",
      "tensor<2x3x5xf32>");
}

TEST(Adjoint, MatmulOfBatches) {
  checkAdjoint(
      {{"tensor<2x3x4x5xf32>"}, {"tensor<2x3x6x5xf32>"}},
      "%y = het.matmul %a0, %a1 batch [0, 1] [0, 1] contract [3] [3] : "
      "(tensor<2x3x4x5xf32>, tensor<2x3x6x5xf32>) -> tensor<2x3x4x6xf32>",
      "tensor<2x3x4x6xf32>");
  // Heads are not dim 1: gradients need their dims put in order.
  checkAdjoint(
      {{"tensor<2x4x3x5xf32>"}, {"tensor<2x6x3x5xf32>"}},
      "%y = het.matmul %a0, %a1 batch [2, 0] [2, 0] contract [3] [3] : "
      "(tensor<2x4x3x5xf32>, tensor<2x6x3x5xf32>) -> tensor<3x2x4x6xf32>",
      "tensor<3x2x4x6xf32>");
}

TEST(Adjoint, MatmulOfManyContractedDims) {
  checkAdjoint(
      {{"tensor<2x3x4xf32>"}, {"tensor<4x3x5xf32>"}},
      "%y = het.matmul %a0, %a1 contract [1, 2] [1, 0] : (tensor<2x3x4xf32>, "
      "tensor<4x3x5xf32>) -> tensor<2x5xf32>",
      "tensor<2x5xf32>");
  checkAdjoint({{"tensor<2x3xf32>"}, {"tensor<3xf32>"}},
               "%y = het.matmul %a0, %a1 contract [1] [0] : (tensor<2x3xf32>, "
               "tensor<3xf32>) -> tensor<2xf32>",
               "tensor<2xf32>");
}

// ONNX's Gemm as it is imported, in all its forms: either side transposed or
// not, C a number, a row or absent, both with their factors.
TEST(Adjoint, Gemm) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (const char *c : {"", "tensor<f32>", "tensor<5xf32>"}) {
        std::string a = transA ? "tensor<4x3xf32>" : "tensor<3x4xf32>",
                    b = transB ? "tensor<5x4xf32>" : "tensor<4x5xf32>",
                    type = "tensor<3x5xf32>";
        std::vector<Argument> arguments = {{a}, {b}};
        std::string body = "%alpha = het.constant dense<0.7> : tensor<f32>\n"
                           "%p = het.matmul %a0, %a1 contract [" +
                           std::to_string(transA ? 0 : 1) + "] [" +
                           std::to_string(transB ? 1 : 0) + "] : (" + a + ", " +
                           b + ") -> " + type + "\n%" + (*c ? "s" : "y") +
                           " = het.mul %p, %alpha : (" + type +
                           ", tensor<f32>) -> " + type;
        if (*c) {
          arguments.push_back({c});
          body += "\n%beta = het.constant dense<1.3> : tensor<f32>\n"
                  "%c = het.mul %a2, %beta : (" +
                  std::string(c) + ", tensor<f32>) -> " + c +
                  "\n%y = het.add %s, %c : (" + type + ", " + c + ") -> " +
                  type;
        }
        checkAdjoint(arguments, body, type);
      }
}

TEST(Adjoint, Reduce) {
  for (const char *kind : {"sum", "mean", "max", "min"}) {
    checkAdjoint({{"tensor<2x3x4xf32>", Argument::Differentiated, -8, 8}},
                 std::string("%y = het.reduce ") + kind +
                     " %a0 dims [1] : (tensor<2x3x4xf32>) -> tensor<2x4xf32>",
                 "tensor<2x4xf32>");
    checkAdjoint(
        {{"tensor<2x3x4xf32>", Argument::Differentiated, -8, 8}},
        std::string("%y = het.reduce ") + kind +
            " %a0 dims [0, 2] keep : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>",
        "tensor<1x3x1xf32>");
  }
}

//===----------------------------------------------------------------------===//
// Norms and attention
//===----------------------------------------------------------------------===//

TEST(Adjoint, LayerNorm) {
  checkAdjoint(
      {{"tensor<2x3x7xf32>"}, {"tensor<7xf32>"}, {"tensor<7xf32>"}},
      "%y, %m, %r = het.layer_norm %a0, %a1, %a2 {epsilon = 1.0e-5 : f64} : "
      "(tensor<2x3x7xf32>, tensor<7xf32>, tensor<7xf32>) -> "
      "(tensor<2x3x7xf32>, tensor<2x3xf32>, tensor<2x3xf32>)",
      "tensor<2x3x7xf32>");
}

TEST(Adjoint, RmsNorm) {
  checkAdjoint({{"tensor<2x3x7xf32>"}, {"tensor<7xf32>"}},
               "%y, %r = het.rms_norm %a0, %a1 {epsilon = 1.0e-6 : f64} : "
               "(tensor<2x3x7xf32>, tensor<7xf32>) -> (tensor<2x3x7xf32>, "
               "tensor<2x3xf32>)",
               "tensor<2x3x7xf32>");
}

/// `mask` is the type of a fixed mask, and `constant` its elements; without
/// them the elements are drawn.
static void checkAttention(const std::string &attributes,
                           const std::string &mask = "",
                           const std::string &constant = "") {
  std::vector<Argument> arguments = {{"tensor<2x3x4x5xf32>"},
                                     {"tensor<2x2x4x5xf32>"},
                                     {"tensor<2x2x4x6xf32>"}};
  std::string body;
  if (!constant.empty())
    body = "%a3 = het.constant dense<" + constant + "> : " + mask + "\n";
  else if (!mask.empty())
    arguments.push_back({mask, Argument::Fixed});
  // The head map is no grouping: heads 0 and 2 share key/value head 1.
  body += std::string("%y, %l = het.attention %a0, %a1, %a2") +
          (mask.empty() ? "" : ", %a3") + " {scale = 0.4 : f64, " + attributes +
          "kv_heads = array<i64: 1, 0, 1>} : (tensor<2x3x4x5xf32>, "
          "tensor<2x2x4x5xf32>, tensor<2x2x4x6xf32>" +
          (mask.empty() ? "" : ", " + mask) +
          ") -> (tensor<2x3x4x6xf32>, tensor<2x3x4xf32>)";
  checkAdjoint(arguments, body, "tensor<2x3x4x6xf32>");
}
TEST(Adjoint, Attention) { checkAttention(""); }
TEST(Adjoint, AttentionCausal) { checkAttention("causal, "); }
TEST(Adjoint, AttentionMasked) { checkAttention("", "tensor<2x1x1x4xf32>"); }
TEST(Adjoint, AttentionEmptyRows) {
  checkAttention("zero_empty_rows, ", "tensor<4x4xi1>",
                 "[[true, false, true, true], [false, false, false, false], "
                 "[false, true, false, false], [true, true, true, true]]");
}
// Numbers that hide a whole row leave the mean of all values, or nearly: too
// low for log_sum_exp to hold how many they are. What scores do then is lost in
// the rounding, so that only values are moved.
TEST(Adjoint, AttentionHiddenRows) {
  for (const char *low : {"-3.4e38", "-1.0e9", "-1.0e4"})
    checkAdjoint(
        {{"tensor<2x3x4x5xf32>", Argument::Fixed, -0.01, 0.01},
         {"tensor<2x3x4x5xf32>", Argument::Fixed, -0.01, 0.01},
         {"tensor<2x3x4x6xf32>"}},
        std::string("%m = het.constant dense<[[0.0], [") + low + "], [" + low +
            "], [0.0]]> : tensor<4x1xf32>\n"
            "%y, %l = het.attention %a0, %a1, %a2, %m {scale = 0.4 : f64, "
            "kv_heads = array<i64: 0, 1, 2>} : (tensor<2x3x4x5xf32>, "
            "tensor<2x3x4x5xf32>, tensor<2x3x4x6xf32>, tensor<4x1xf32>) -> "
            "(tensor<2x3x4x6xf32>, tensor<2x3x4xf32>)",
        "tensor<2x3x4x6xf32>");
}
TEST(Adjoint, AttentionDropout) {
  checkAttention("dropout_p = 0.25 : f64, dropout_op_id = 3 : i64, ");
}

TEST(Adjoint, Rotary) {
  for (const char *attributes : {"", "{interleaved} ", "{inverse} "})
    checkAdjoint(
        {{"tensor<2x3x4x6xf32>"},
         {"tensor<4x2xf32>", Argument::Fixed},
         {"tensor<4x2xf32>", Argument::Fixed}},
        std::string("%y = het.rotary %a0, %a1, %a2 ") + attributes +
            ": (tensor<2x3x4x6xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> "
            "tensor<2x3x4x6xf32>",
        "tensor<2x3x4x6xf32>");
}

//===----------------------------------------------------------------------===//
// Index, shape, loss
//===----------------------------------------------------------------------===//

TEST(Adjoint, Embedding) {
  checkAdjoint(
      {{"tensor<5x3xf32>"}, {"tensor<2x4xi64>", Argument::Integers, 0, 5}},
      "%y = het.embedding %a0, %a1 : (tensor<5x3xf32>, tensor<2x4xi64>) -> "
      "tensor<2x4x3xf32>",
      "tensor<2x4x3xf32>");
  // A box of a larger table: rows 2 to 4 of 6.
  checkAdjoint(
      {{"tensor<3x3xf32>"}, {"tensor<2x4xi64>", Argument::Integers, 0, 6}},
      "%y = het.embedding %a0, %a1 {first_row = 2 : i64, all_rows = 6 : i64} : "
      "(tensor<3x3xf32>, tensor<2x4xi64>) -> tensor<2x4x3xf32>",
      "tensor<2x4x3xf32>");
}

// Rows along any dim; indices that count from the end, and repeated ones.
TEST(Adjoint, Gather) {
  checkAdjoint(
      {{"tensor<5x3x2xf32>"}, {"tensor<2x4xi64>", Argument::Integers, -5, 5}},
      "%y = het.gather %a0, %a1 {dim = 0 : i64} : (tensor<5x3x2xf32>, "
      "tensor<2x4xi64>) -> tensor<2x4x3x2xf32>",
      "tensor<2x4x3x2xf32>");
  checkAdjoint(
      {{"tensor<2x3x5x4xf32>"}, {"tensor<7xi64>", Argument::Integers, -5, 5}},
      "%y = het.gather %a0, %a1 {dim = 2 : i64} : (tensor<2x3x5x4xf32>, "
      "tensor<7xi64>) -> tensor<2x3x7x4xf32>",
      "tensor<2x3x7x4xf32>");
  checkAdjoint({{"tensor<2x5xf32>"}, {"tensor<i64>", Argument::Integers, 0, 5}},
               "%y = het.gather %a0, %a1 {dim = 1 : i64} : (tensor<2x5xf32>, "
               "tensor<i64>) -> tensor<2xf32>",
               "tensor<2xf32>");
}

TEST(Adjoint, GatherNd) {
  checkAdjoint(
      {{"tensor<3x4x2xf32>"}, {"tensor<6x2xi64>", Argument::Integers, -3, 3}},
      "%y = het.gather_nd %a0, %a1 {batch_dims = 0 : i64} : "
      "(tensor<3x4x2xf32>, tensor<6x2xi64>) -> tensor<6x2xf32>",
      "tensor<6x2xf32>");
  // Paired rows: of each sample the token that data names.
  checkAdjoint(
      {{"tensor<3x4x2xf32>"}, {"tensor<3x5x1xi64>", Argument::Integers, 0, 4}},
      "%y = het.gather_nd %a0, %a1 {batch_dims = 1 : i64} : "
      "(tensor<3x4x2xf32>, tensor<3x5x1xi64>) -> tensor<3x5x2xf32>",
      "tensor<3x5x2xf32>");
}

// Of six tuples into 3 x 4 some meet, and negative ones count from the end.
// Rows that are drawn from four meet for certain: the last one stays.
TEST(Adjoint, ScatterNd) {
  for (const char *kind : {"add", "replace"}) {
    checkAdjoint({{"tensor<3x4x2xf32>"},
                  {"tensor<6x2xi64>", Argument::Integers, -3, 3},
                  {"tensor<6x2xf32>"}},
                 std::string("%y = het.scatter_nd ") + kind +
                     " %a0, %a1, %a2 : (tensor<3x4x2xf32>, tensor<6x2xi64>, "
                     "tensor<6x2xf32>) -> tensor<3x4x2xf32>",
                 "tensor<3x4x2xf32>");
    checkAdjoint({{"tensor<4x3xf32>"},
                  {"tensor<2x3x1xi64>", Argument::Integers, 0, 4},
                  {"tensor<2x3x3xf32>"}},
                 std::string("%y = het.scatter_nd ") + kind +
                     " %a0, %a1, %a2 : (tensor<4x3xf32>, tensor<2x3x1xi64>, "
                     "tensor<2x3x3xf32>) -> tensor<4x3xf32>",
                 "tensor<4x3xf32>");
  }
}

// Elements are further apart than a step of the differences.
TEST(Adjoint, TopK) {
  for (const char *largest : {"", ", largest"})
    checkAdjoint(
        {{"tensor<2x3x7xf32>"}},
        std::string("%c = het.constant dense<[9.0, 0.0, 3.0, 12.0, 6.0, 18.0, "
                    "15.0]> : tensor<7xf32>\n"
                    "%x = het.add %a0, %c : (tensor<2x3x7xf32>, tensor<7xf32>) "
                    "-> tensor<2x3x7xf32>\n"
                    "%y, %i = het.top_k %x {k = 3 : i64") +
            largest +
            "} : (tensor<2x3x7xf32>) -> (tensor<2x3x3xf32>, "
            "tensor<2x3x3xi64>)",
        "tensor<2x3x3xf32>");
}

TEST(Adjoint, Views) {
  checkAdjoint(
      {{"tensor<2x3x4xf32>"}},
      "%y = het.reshape %a0 to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>",
      "tensor<6x4xf32>");
  checkAdjoint({{"tensor<2x3x4xf32>"}},
               "%y = het.transpose %a0 by [2, 0, 1] : (tensor<2x3x4xf32>) -> "
               "tensor<4x2x3xf32>",
               "tensor<4x2x3xf32>");
  checkAdjoint({{"tensor<1x4xf32>"}},
               "%y = het.broadcast %a0 to [2, 3, 4] : (tensor<1x4xf32>) -> "
               "tensor<2x3x4xf32>",
               "tensor<2x3x4xf32>");
  checkAdjoint(
      {{"tensor<4x7xf32>"}},
      "%y = het.slice %a0 offsets [3, 1] sizes [2, 3] strides [-2, 2] : "
      "(tensor<4x7xf32>) -> tensor<2x3xf32>",
      "tensor<2x3xf32>");
  checkAdjoint(
      {{"tensor<2x3xf32>"}, {"tensor<2x1xf32>"}, {"tensor<2x2xf32>"}},
      "%y = het.concat %a0, %a1, %a2 {dim = 1 : i64} : (tensor<2x3xf32>, "
      "tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>",
      "tensor<2x6xf32>");
}

// Label 4 is ignored.
TEST(Adjoint, CrossEntropy) {
  checkAdjoint(
      {{"tensor<2x6x5xf32>"}, {"tensor<2x6xi64>", Argument::Integers, 0, 5}},
      "%y, %l = het.cross_entropy %a0, %a1 {ignore_index = 4 : i64} : "
      "(tensor<2x6x5xf32>, tensor<2x6xi64>) -> (tensor<f32>, tensor<2x6xf32>)",
      "tensor<f32>");
}

// Several uses of one value, and of one parameter.
TEST(Adjoint, SumsOverUses) {
  checkAdjoint({kMatrix},
               "%0 = het.tanh %a0 : (tensor<3x5xf32>) -> tensor<3x5xf32>\n"
               "%1 = het.mul %0, %a0 : (tensor<3x5xf32>, tensor<3x5xf32>) -> "
               "tensor<3x5xf32>\n"
               "%2 = het.exp %0 : (tensor<3x5xf32>) -> tensor<3x5xf32>\n"
               "%y = het.add %1, %2 : (tensor<3x5xf32>, tensor<3x5xf32>) -> "
               "tensor<3x5xf32>",
               "tensor<3x5xf32>");
}

//===- IndexTest.cpp - embedding, gather, iota ----------------------------===//

#include "KernelHarness.h"

using namespace autohet::test;

namespace {

const char *const kEmbedding = R"(
  func.func @k(%t: tensor<101x37xf32>, %i: tensor<2x9xi64>) -> tensor<2x9x37xf32> {
    %y = het.embedding %t, %i : (tensor<101x37xf32>, tensor<2x9xi64>) -> tensor<2x9x37xf32>
    return %y : tensor<2x9x37xf32>
  })";

TEST(Embedding, CopiesRows) {
  Kernel kernel(kEmbedding);
  Floats table = random(101 * 37, 1), y(18 * 37);
  Longs ids = randomIntegers(18, 2, 0, 101);
  ASSERT_EQ(kernel({table, ids, y}), 0);
  expectNear(y, [&](size_t e) { return table[ids[e / 37] * 37 + e % 37]; }, 0);
}

TEST(Embedding, NamesABadId) {
  Kernel kernel(kEmbedding);
  Floats table = random(101 * 37, 1), y(18 * 37);
  for (int64_t bad : {int64_t(101), int64_t(-1), int64_t(1) << 40}) {
    Longs ids = randomIntegers(18, 2, 0, 101);
    ids[11] = bad;
    ah_kernel_context context = {};
    EXPECT_EQ(kernel({table, ids, y}, &context), 1);
    EXPECT_EQ(context.error_index, 11);
    EXPECT_EQ(context.error_value, bad);
  }
}

TEST(Embedding, BoxOfALargerTable) {
  Kernel kernel(R"(
    func.func @k(%t: tensor<50x37xf32>, %i: tensor<18xi64>) -> tensor<18x37xf32> {
      %y = het.embedding %t, %i {first_row = 30 : i64, all_rows = 101 : i64} : (tensor<50x37xf32>, tensor<18xi64>) -> tensor<18x37xf32>
      return %y : tensor<18x37xf32>
    })");
  Floats table = random(50 * 37, 1), y(18 * 37);
  Longs ids = randomIntegers(18, 2, 0, 101);
  ids[0] = 30;
  ids[1] = 79;
  ids[2] = 80;
  ids[3] = 29;
  ASSERT_EQ(kernel({table, ids, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        int64_t row = ids[e / 37] - 30;
        return row >= 0 && row < 50 ? table[row * 37 + e % 37] : 0;
      },
      0);
  // Beyond the larger table, too, there is nothing.
  ids[7] = 101;
  ah_kernel_context context = {};
  EXPECT_EQ(kernel({table, ids, y}, &context), 1);
  EXPECT_EQ(context.error_index, 7);
  EXPECT_EQ(context.error_value, 101);
}

TEST(EmbeddingBackward, SumsRowsThatMeet) {
  for (bool box : {false, true}) {
    std::string attributes =
        box ? "{rows = 20 : i64, first_row = 5 : i64}" : "{rows = 31 : i64}";
    int64_t rows = box ? 20 : 31, first = box ? 5 : 0;
    std::string type = tensorType({rows, 37});
    Kernel kernel("func.func @k(%i: tensor<6x9xi64>, %g: tensor<6x9x37xf32>) "
                  "-> " +
                  type + " {\n %y = het.embedding_backward %i, %g " +
                  attributes + " : (tensor<6x9xi64>, tensor<6x9x37xf32>) -> " +
                  type + "\n return %y : " + type + "\n}");
    Longs ids = randomIntegers(54, 2, 0, 31);
    Floats g = random(54 * 37, 3), y(rows * 37);
    ASSERT_EQ(kernel({ids, g, y}), 0);
    expectNear(
        y,
        [&](size_t e) {
          double sum = 0;
          for (int64_t i = 0; i < 54; ++i)
            if (ids[i] == first + int64_t(e / 37))
              sum += g[i * 37 + e % 37];
          return sum;
        },
        1e-6);
  }
}

TEST(Gather, MiddleDimWithNegativeIndices) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<3x5x7xf32>, %i: tensor<2x2xi64>) -> tensor<3x2x2x7xf32> {
      %y = het.gather %x, %i {dim = 1 : i64} : (tensor<3x5x7xf32>, tensor<2x2xi64>) -> tensor<3x2x2x7xf32>
      return %y : tensor<3x2x2x7xf32>
    })");
  Floats x = random(105, 1), y(84);
  Longs i(4);
  i[0] = 4;
  i[1] = -1;
  i[2] = 0;
  i[3] = -5;
  ASSERT_EQ(kernel({x, i, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        int64_t index = i[e / 7 % 4];
        return x[(e / 28 * 5 + (index + 5) % 5) * 7 + e % 7];
      },
      0);
  i[3] = -6;
  ah_kernel_context context = {};
  EXPECT_EQ(kernel({x, i, y}, &context), 1);
  EXPECT_EQ(context.error_index, 3);
  EXPECT_EQ(context.error_value, -6);
}

TEST(GatherNd, TuplesOfTwo) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<3x5x7xf32>, %i: tensor<4x2xi64>) -> tensor<4x7xf32> {
      %y = het.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<3x5x7xf32>, tensor<4x2xi64>) -> tensor<4x7xf32>
      return %y : tensor<4x7xf32>
    })");
  Floats x = random(105, 1), y(28);
  Longs i(8);
  for (size_t k = 0; k < 4; ++k) {
    i[2 * k] = int64_t(k) % 3;
    i[2 * k + 1] = int64_t(k * 3) % 5;
  }
  ASSERT_EQ(kernel({x, i, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        size_t k = e / 7;
        return x[(i[2 * k] * 5 + i[2 * k + 1]) * 7 + e % 7];
      },
      0);
}

TEST(Iota, CountsUpAndDown) {
  Kernel kernel(R"(
    func.func @k() -> (tensor<12xi64>, tensor<12xf32>) {
      %i = het.iota {start = 3 : i64, step = -2 : i64, count = 12 : i64, element = i64} : () -> tensor<12xi64>
      %f = het.iota {start = 0 : i64, step = 1 : i64, count = 12 : i64, element = f32} : () -> tensor<12xf32>
      return %i, %f : tensor<12xi64>, tensor<12xf32>
    })");
  Longs i(12);
  Floats f(12);
  ASSERT_EQ(kernel({i, f}), 0);
  for (int64_t k = 0; k < 12; ++k) {
    EXPECT_EQ(i[k], 3 - 2 * k);
    EXPECT_EQ(f[k], float(k));
  }
}

} // namespace

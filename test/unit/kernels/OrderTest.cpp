//===- OrderTest.cpp - order, running sums, scattered updates -------------===//

#include "KernelHarness.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace autohet::test;

namespace {

// 7 rows of 13 with repeated elements, so that ties matter.
Floats coarse() {
  Floats x = random(7 * 13, 1);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(int(x[i] * 2));
  return x;
}

TEST(ArgReduce, FirstAndLastOfEqual) {
  for (bool last : {false, true}) {
    Kernel kernel(std::string(R"(
      func.func @k(%x: tensor<7x13xf32>) -> tensor<7xi64> {
        %i = het.arg_reduce max %x dim 1 )") +
                  (last ? "last" : "") +
                  R"(: (tensor<7x13xf32>) -> tensor<7xi64>
        return %i : tensor<7xi64>
      })");
    Floats x = coarse();
    Longs places(7);
    ASSERT_EQ(kernel({x, places}), 0);
    for (int64_t row = 0; row < 7; ++row) {
      int64_t best = 0;
      for (int64_t i = 0; i < 13; ++i)
        if (x[row * 13 + i] > x[row * 13 + best] ||
            (last && x[row * 13 + i] == x[row * 13 + best]))
          best = i;
      EXPECT_EQ(places[row], best) << row;
    }
  }
}

TEST(TopK, StableOrder) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<7x13xf32>) -> (tensor<7x5xf32>, tensor<7x5xi64>) {
      %v, %i = het.top_k %x {k = 5 : i64, largest} : (tensor<7x13xf32>) -> (tensor<7x5xf32>, tensor<7x5xi64>)
      return %v, %i : tensor<7x5xf32>, tensor<7x5xi64>
    })");
  Floats x = coarse(), values(7 * 5);
  Longs places(7 * 5);
  ASSERT_EQ(kernel({x, values, places}), 0);
  for (int64_t row = 0; row < 7; ++row) {
    std::vector<int64_t> order(13);
    for (int64_t i = 0; i < 13; ++i)
      order[i] = i;
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      float left = x[row * 13 + a], right = x[row * 13 + b];
      return left > right || (left == right && a < b);
    });
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_EQ(places[row * 5 + j], order[j]) << row << " " << j;
      EXPECT_EQ(values[row * 5 + j], x[row * 13 + order[j]]);
    }
  }
}

TEST(CumulativeSum, AllFour) {
  for (bool exclusive : {false, true})
    for (bool reverse : {false, true}) {
      Kernel kernel(std::string(R"(
        func.func @k(%x: tensor<5x3x11xf32>) -> tensor<5x3x11xf32> {
          %y = het.cumulative_sum %x dim 1 )") +
                    (exclusive ? "exclusive " : "") +
                    (reverse ? "reverse " : "") +
                    R"( : (tensor<5x3x11xf32>) -> tensor<5x3x11xf32>
          return %y : tensor<5x3x11xf32>
        })");
      Floats x = random(5 * 3 * 11, 2), y(5 * 3 * 11);
      ASSERT_EQ(kernel({x, y}), 0);
      expectNear(
          y,
          [&](size_t e) {
            int64_t at = e / 11 % 3;
            double sum = 0;
            for (int64_t i = 0; i < 3; ++i)
              if (i == at ? !exclusive : (i < at) != reverse)
                sum += x[e - at * 11 + i * 11];
            return sum;
          },
          1e-6);
    }
}

TEST(ScatterNd, AddsSlicesInOrder) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<9x4xf32>, %i: tensor<20x1xi64>, %u: tensor<20x4xf32>) -> tensor<9x4xf32> {
      %y = het.scatter_nd add %x, %i, %u : (tensor<9x4xf32>, tensor<20x1xi64>, tensor<20x4xf32>) -> tensor<9x4xf32>
      return %y : tensor<9x4xf32>
    })");
  Floats x = random(36, 3), u = random(80, 4), y(36);
  Longs places = randomIntegers(20, 5, -9, 9);
  ASSERT_EQ(kernel({x, places, u, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        double sum = x[e];
        for (int64_t t = 0; t < 20; ++t)
          if ((places[t] + 9) % 9 == int64_t(e / 4))
            sum += u[t * 4 + e % 4];
        return sum;
      },
      1e-6);
  places[7] = 9;
  ah_kernel_context context = {};
  EXPECT_EQ(kernel({x, places, u, y}, &context), 1);
  EXPECT_EQ(context.error_index, 7);
  EXPECT_EQ(context.error_value, 9);
}

TEST(Types, HalvesAreRoundedAfterEachOp) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<33xf32>) -> tensor<33xf32> {
      %h = het.cast %x {to = bf16} : (tensor<33xf32>) -> tensor<33xbf16>
      %s = het.mul %h, %h : (tensor<33xbf16>, tensor<33xbf16>) -> tensor<33xbf16>
      %y = het.cast %s {to = f32} : (tensor<33xbf16>) -> tensor<33xf32>
      return %y : tensor<33xf32>
    })");
  auto rounded = [](float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&value, &bits, 4);
    return value;
  };
  Floats x = random(33, 6), y(33);
  ASSERT_EQ(kernel({x, y}), 0);
  expectNear(
      y, [&](size_t e) { return rounded(rounded(x[e]) * rounded(x[e])); }, 0);
}

TEST(Types, UnsignedIntegersCompareAndDivide) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<19xui8>, %y: tensor<19xui8>) -> (tensor<19xui8>, tensor<19xui8>) {
      %q = het.div %x, %y : (tensor<19xui8>, tensor<19xui8>) -> tensor<19xui8>
      %m = het.max %x, %y : (tensor<19xui8>, tensor<19xui8>) -> tensor<19xui8>
      return %q, %m : tensor<19xui8>, tensor<19xui8>
    })");
  Bools x(19), y(19), q(19), m(19);
  for (size_t i = 0; i < 19; ++i)
    x[i] = uint8_t(250 - 13 * i), y[i] = uint8_t(3 + 12 * i);
  ASSERT_EQ(kernel({x, y, q, m}), 0);
  for (size_t i = 0; i < 19; ++i) {
    EXPECT_EQ(q[i], x[i] / y[i]) << i;
    EXPECT_EQ(m[i], std::max(x[i], y[i])) << i;
  }
}

TEST(Types, SmallFloatsRoundToTheirNeighbours) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<257xf32>) -> tensor<257xf32> {
      %h = het.cast %x {to = f8E4M3FN} : (tensor<257xf32>) -> tensor<257xf8E4M3FN>
      %y = het.cast %h {to = f32} : (tensor<257xf8E4M3FN>) -> tensor<257xf32>
      return %y : tensor<257xf32>
    })");
  Floats x = random(257, 7, -20, 20), y(257);
  x[0] = 0.01f, x[1] = 448, x[2] = -0.5f;
  ASSERT_EQ(kernel({x, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        // Three bits of mantissa above 2^-6, steps of 2^-9 below.
        double size = std::fabs(x[e]);
        double step = std::ldexp(1, std::max(-9, std::ilogb(size) - 3));
        return std::copysign(std::nearbyint(size / step) * step, x[e]);
      },
      0);
}

} // namespace

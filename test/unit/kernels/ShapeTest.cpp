//===- ShapeTest.cpp - kernels that move elements, rotary, products -------===//

#include "KernelHarness.h"

using namespace autohet::test;

namespace {

TEST(Shape, TransposeHeads) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<2x5x3x7xf32>) -> tensor<2x3x5x7xf32> {
      %y = het.transpose %x by [0, 2, 1, 3] : (tensor<2x5x3x7xf32>) -> tensor<2x3x5x7xf32>
      return %y : tensor<2x3x5x7xf32>
    })");
  Floats x = random(210, 1), y(210);
  ASSERT_EQ(kernel({x, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        size_t d = e % 7, s = e / 7 % 5, h = e / 35 % 3, b = e / 105;
        return x[((b * 5 + s) * 3 + h) * 7 + d];
      },
      0);
}

TEST(Shape, TransposeRotatesDims) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<2x5x3xf32>) -> tensor<3x2x5xf32> {
      %y = het.transpose %x by [2, 0, 1] : (tensor<2x5x3xf32>) -> tensor<3x2x5xf32>
      return %y : tensor<3x2x5xf32>
    })");
  Floats x = random(30, 1), y(30);
  ASSERT_EQ(kernel({x, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        size_t j = e % 5, i = e / 5 % 2, k = e / 10;
        return x[(i * 5 + j) * 3 + k];
      },
      0);
}

TEST(Shape, ReshapeWithoutCommonGroups) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<4x6xf32>) -> tensor<3x8xf32> {
      %0 = het.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
      %y = het.reshape %0 to [3, 8] : (tensor<4x6xf32>) -> tensor<3x8xf32>
      return %y : tensor<3x8xf32>
    })");
  Floats x = random(24, 1), y(24);
  ASSERT_EQ(kernel({x, y}), 0);
  expectNear(y, [&](size_t e) { return std::exp(double(x[e])); }, 1e-6);
}

TEST(Shape, BroadcastAndCopy) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<3x1xf32>) -> (tensor<2x3x4xf32>, tensor<3x1xf32>) {
      %y = het.broadcast %x to [2, 3, 4] : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
      return %y, %x : tensor<2x3x4xf32>, tensor<3x1xf32>
    })");
  Floats x = random(3, 1), y(24), z(3);
  ASSERT_EQ(kernel({x, y, z}), 0);
  expectNear(y, [&](size_t e) { return x[e / 4 % 3]; }, 0);
  expectNear(z, [&](size_t e) { return x[e]; }, 0);
}

// What a product reads of a constant.
TEST(Shape, ConstantAlone) {
  Kernel kernel(R"(
    func.func @k() -> tensor<2x3xf32> {
      %c = het.constant dense<[[1.0, -2.0, 3.0], [4.0, 5.0, 0.5]]> : tensor<2x3xf32>
      return %c : tensor<2x3xf32>
    })");
  Floats y(6);
  ASSERT_EQ(kernel({y}), 0);
  const float expected[] = {1, -2, 3, 4, 5, 0.5f};
  expectNear(y, [&](size_t e) { return expected[e]; }, 0);
}

TEST(Shape, SlicesForwardAndBackward) {
  Kernel forward(R"(
    func.func @k(%x: tensor<5x11xf32>) -> tensor<2x4xf32> {
      %y = het.slice %x offsets [1, 10] sizes [2, 4] strides [2, -3] : (tensor<5x11xf32>) -> tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    })");
  Floats x = random(55, 1), y(8);
  ASSERT_EQ(forward({x, y}), 0);
  auto source = [](size_t e) {
    return (1 + e / 4 * 2) * 11 + (10 - e % 4 * 3);
  };
  expectNear(y, [&](size_t e) { return x[source(e)]; }, 0);

  Kernel backward(R"(
    func.func @k(%g: tensor<2x4xf32>) -> tensor<5x11xf32> {
      %y = het.slice_backward %g offsets [1, 10] strides [2, -3] shape [5, 11] : (tensor<2x4xf32>) -> tensor<5x11xf32>
      return %y : tensor<5x11xf32>
    })");
  Floats g = random(8, 2), dx(55);
  ASSERT_EQ(backward({g, dx}), 0);
  expectNear(
      dx,
      [&](size_t e) {
        for (size_t i = 0; i < 8; ++i)
          if (source(i) == e)
            return double(g[i]);
        return 0.0;
      },
      0);
}

TEST(Shape, Concat) {
  Kernel kernel(R"(
    func.func @k(%a: tensor<3x2xf32>, %b: tensor<3x5xf32>) -> tensor<3x9xf32> {
      %0 = het.neg %a : (tensor<3x2xf32>) -> tensor<3x2xf32>
      %y = het.concat %0, %b, %a {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x5xf32>, tensor<3x2xf32>) -> tensor<3x9xf32>
      return %y : tensor<3x9xf32>
    })");
  Floats a = random(6, 1), b = random(15, 2), y(27);
  ASSERT_EQ(kernel({a, b, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        size_t i = e / 9, j = e % 9;
        return j < 2   ? -a[i * 2 + j]
               : j < 7 ? b[i * 5 + j - 2]
                       : a[i * 2 + j - 7];
      },
      0);
}

TEST(Rotary, HalvesAndNeighbours) {
  for (bool interleaved : {false, true})
    for (bool inverse : {false, true}) {
      std::string attributes = std::string("{") +
                               (interleaved ? "interleaved" : "") +
                               (interleaved && inverse ? ", " : "") +
                               (inverse ? "inverse" : "") + "}";
      Kernel kernel("func.func @k(%x: tensor<2x3x5x10xf32>, %c: "
                    "tensor<1x1x5x4xf32>, %s: tensor<1x1x5x4xf32>) -> "
                    "tensor<2x3x5x10xf32> {\n %y = het.rotary %x, %c, %s " +
                    attributes +
                    " : (tensor<2x3x5x10xf32>, tensor<1x1x5x4xf32>, "
                    "tensor<1x1x5x4xf32>) -> tensor<2x3x5x10xf32>\n return %y "
                    ": tensor<2x3x5x10xf32>\n}");
      Floats x = random(300, 1), c = random(20, 2), s = random(20, 3), y(300);
      ASSERT_EQ(kernel({x, c, s, y}), 0);
      expectNear(
          y,
          [&](size_t e) {
            size_t d = e % 10, row = e / 10, position = row % 5;
            if (d >= 8)
              return double(x[e]);
            size_t pair = interleaved ? d / 2 : d % 4;
            bool second = interleaved ? d % 2 : d >= 4;
            double x1 = x[row * 10 + (interleaved ? 2 * pair : pair)];
            double x2 = x[row * 10 + (interleaved ? 2 * pair + 1 : pair + 4)];
            double cosine = c[position * 4 + pair];
            double sine = (inverse ? -1.0 : 1.0) * s[position * 4 + pair];
            return second ? x2 * cosine + x1 * sine : x1 * cosine - x2 * sine;
          },
          1e-6);
    }
}

TEST(Matmul, EveryLayout) {
  // x [B, S, K] with w [N, K]: one product of [B*S, K].
  Kernel linear(R"(
    func.func @k(%x: tensor<2x5x8xf32>, %w: tensor<9x8xf32>) -> tensor<2x5x9xf32> {
      %y = het.matmul %x, %w contract [2] [1] : (tensor<2x5x8xf32>, tensor<9x8xf32>) -> tensor<2x5x9xf32>
      return %y : tensor<2x5x9xf32>
    })");
  Floats x = random(80, 1), w = random(72, 2), y(90);
  ASSERT_EQ(linear({x, w, y}), 0);
  expectNear(
      y,
      [&](size_t e) {
        double sum = 0;
        for (size_t k = 0; k < 8; ++k)
          sum += double(x[e / 9 * 8 + k]) * w[e % 9 * 8 + k];
        return sum;
      },
      1e-6);
  // Its weight gradient: two contracted dims, both merged.
  Kernel weight(R"(
    func.func @k(%g: tensor<2x5x9xf32>, %x: tensor<2x5x8xf32>) -> tensor<9x8xf32> {
      %y = het.matmul %g, %x contract [0, 1] [0, 1] : (tensor<2x5x9xf32>, tensor<2x5x8xf32>) -> tensor<9x8xf32>
      return %y : tensor<9x8xf32>
    })");
  Floats g = random(90, 3), dw(72);
  ASSERT_EQ(weight({g, x, dw}), 0);
  expectNear(
      dw,
      [&](size_t e) {
        double sum = 0;
        for (size_t r = 0; r < 10; ++r)
          sum += double(g[r * 9 + e / 8]) * x[r * 8 + e % 8];
        return sum;
      },
      1e-6);
  // Heads not split off: batch dims with strides, and a broken layout.
  Kernel heads(R"(
    func.func @k(%q: tensor<2x5x3x8xf32>, %k: tensor<2x5x3x8xf32>) -> tensor<2x3x5x5xf32> {
      %y = het.matmul %q, %k batch [0, 2] [0, 2] contract [3] [3] : (tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>) -> tensor<2x3x5x5xf32>
      return %y : tensor<2x3x5x5xf32>
    })");
  Floats q = random(240, 4), k = random(240, 5), s(150);
  ASSERT_EQ(heads({q, k, s}), 0);
  expectNear(
      s,
      [&](size_t e) {
        size_t j = e % 5, i = e / 5 % 5, h = e / 25 % 3, b = e / 75;
        double sum = 0;
        for (size_t d = 0; d < 8; ++d)
          sum += double(q[((b * 5 + i) * 3 + h) * 8 + d]) *
                 k[((b * 5 + j) * 3 + h) * 8 + d];
        return sum;
      },
      1e-6);
  // No unit stride that a library could use: plain loops.
  Kernel strided(R"(
    func.func @k(%a: tensor<3x4x2xf32>, %b: tensor<3x5x2xf32>) -> tensor<2x4x5xf32> {
      %y = het.matmul %a, %b batch [2] [2] contract [0] [0] : (tensor<3x4x2xf32>, tensor<3x5x2xf32>) -> tensor<2x4x5xf32>
      return %y : tensor<2x4x5xf32>
    })");
  Floats a = random(24, 6), c = random(30, 7), z(40);
  ASSERT_EQ(strided({a, c, z}), 0);
  expectNear(
      z,
      [&](size_t e) {
        size_t j = e % 5, i = e / 5 % 4, b = e / 20;
        double sum = 0;
        for (size_t l = 0; l < 3; ++l)
          sum += double(a[(l * 4 + i) * 2 + b]) * c[(l * 5 + j) * 2 + b];
        return sum;
      },
      1e-6);
}

TEST(Kernels, WithoutLoweringAreRefused) {
  expectCompileError(R"(
    func.func @k() -> tensor<2xf32> {
      %y = het.parameter "w" : tensor<2xf32>
      return %y : tensor<2xf32>
    })",
                     "has no lowering to kernels");
}

} // namespace

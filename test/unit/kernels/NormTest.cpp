//===- NormTest.cpp - norms and softmax, forward and backward -------------===//

#include "KernelHarness.h"

using namespace autohet::test;

namespace {

struct Extents {
  int64_t rows, columns;
};

class RowKernels : public testing::TestWithParam<Extents> {
protected:
  int64_t rows = GetParam().rows, columns = GetParam().columns;
  // Two row dims, so that loops over both are tried.
  std::string matrix = tensorType({1, rows, columns});
  std::string perRow = tensorType({1, rows});
  std::string perColumn = tensorType({columns});

  double meanOf(const Floats &x, int64_t row) const {
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j)
      sum += x[row * columns + j];
    return sum / double(columns);
  }
  double rstdOf(const Floats &x, int64_t row, double mean, double eps) const {
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j)
      sum += (x[row * columns + j] - mean) * (x[row * columns + j] - mean);
    return 1 / std::sqrt(sum / double(columns) + eps);
  }
};

TEST_P(RowKernels, LayerNormOfASum) {
  Kernel kernel("func.func @k(%x: " + matrix + ", %r: " + matrix +
                ", %g: " + perColumn + ", %b: " + perColumn + ") -> (" +
                matrix + ", " + matrix + ", " + perRow + ", " + perRow + R"() {
    %h = het.add %x, %r : ()" +
                matrix + ", " + matrix + ") -> " + matrix + R"(
    %y, %m, %s = het.layer_norm %h, %g, %b {epsilon = 1.0e-5 : f64} : ()" +
                matrix + ", " + perColumn + ", " + perColumn + ") -> (" +
                matrix + ", " + perRow + ", " + perRow + R"()
    return %h, %y, %m, %s : )" +
                matrix + ", " + matrix + ", " + perRow + ", " + perRow + "\n}");
  Floats x = random(rows * columns, 1), r = random(rows * columns, 2, 3, 5);
  Floats g = random(columns, 3), b = random(columns, 4);
  Floats h(rows * columns), y(rows * columns), m(rows), s(rows);
  ASSERT_EQ(kernel({x, r, g, b, h, y, m, s}), 0);
  expectNear(h, [&](size_t i) { return x[i] + r[i]; }, 1e-7, "sum");
  expectNear(m, [&](size_t i) { return meanOf(h, i); }, 1e-6, "mean");
  expectNear(
      s, [&](size_t i) { return rstdOf(h, i, meanOf(h, i), 1e-5); }, 1e-5,
      "rstd");
  expectNear(
      y,
      [&](size_t i) {
        return (h[i] - double(m[i / columns])) * s[i / columns] *
                   g[i % columns] +
               b[i % columns];
      },
      1e-5, "result");
}

TEST_P(RowKernels, LayerNormBackward) {
  Kernel kernel("func.func @k(%x: " + matrix + ", %g: " + perColumn +
                ", %m: " + perRow + ", %s: " + perRow + ", %dy: " + matrix +
                ") -> (" + matrix + ", " + perColumn + ", " + perColumn + R"() {
    %dx, %dg, %db = het.layer_norm_backward %x, %g, %m, %s, %dy : ()" +
                matrix + ", " + perColumn + ", " + perRow + ", " + perRow +
                ", " + matrix + ") -> (" + matrix + ", " + perColumn + ", " +
                perColumn + R"()
    return %dx, %dg, %db : )" +
                matrix + ", " + perColumn + ", " + perColumn + "\n}");
  Floats x = random(rows * columns, 1), dy = random(rows * columns, 2);
  Floats g = random(columns, 3), m(rows), s(rows);
  for (int64_t i = 0; i < rows; ++i) {
    m[i] = float(meanOf(x, i));
    s[i] = float(rstdOf(x, i, m[i], 1e-5));
  }
  Floats dx(rows * columns), dg(columns), db(columns);
  ASSERT_EQ(kernel({x, g, m, s, dy, dx, dg, db}), 0);
  auto normal = [&](int64_t i, int64_t j) {
    return (x[i * columns + j] - double(m[i])) * s[i];
  };
  std::vector<double> sumG(rows), sumGN(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double v = double(dy[i * columns + j]) * g[j];
      sumG[i] += v;
      sumGN[i] += v * normal(i, j);
    }
  expectNear(
      dx,
      [&](size_t e) {
        int64_t i = e / columns, j = e % columns;
        return s[i] * (double(dy[e]) * g[j] - sumG[i] / columns -
                       normal(i, j) * sumGN[i] / columns);
      },
      2e-5, "dx");
  expectNear(
      dg,
      [&](size_t j) {
        double sum = 0;
        for (int64_t i = 0; i < rows; ++i)
          sum += dy[i * columns + j] * normal(i, j);
        return sum;
      },
      2e-5, "dscale");
  expectNear(
      db,
      [&](size_t j) {
        double sum = 0;
        for (int64_t i = 0; i < rows; ++i)
          sum += dy[i * columns + j];
        return sum;
      },
      2e-5, "dbias");
}

TEST_P(RowKernels, RmsNorm) {
  Kernel kernel("func.func @k(%x: " + matrix + ", %g: " + perColumn + ") -> (" +
                matrix + ", " + perRow + R"() {
    %y, %s = het.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : ()" +
                matrix + ", " + perColumn + ") -> (" + matrix + ", " + perRow +
                R"()
    return %y, %s : )" +
                matrix + ", " + perRow + "\n}");
  Floats x = random(rows * columns, 1), g = random(columns, 3);
  Floats y(rows * columns), s(rows);
  ASSERT_EQ(kernel({x, g, y, s}), 0);
  expectNear(s, [&](size_t i) { return rstdOf(x, i, 0, 1e-6); }, 1e-5, "rstd");
  expectNear(
      y,
      [&](size_t i) { return double(x[i]) * s[i / columns] * g[i % columns]; },
      1e-5, "result");
}

TEST_P(RowKernels, RmsNormBackward) {
  Kernel kernel("func.func @k(%x: " + matrix + ", %g: " + perColumn +
                ", %s: " + perRow + ", %dy: " + matrix + ") -> (" + matrix +
                ", " + perColumn + R"() {
    %dx, %dg = het.rms_norm_backward %x, %g, %s, %dy : ()" +
                matrix + ", " + perColumn + ", " + perRow + ", " + matrix +
                ") -> (" + matrix + ", " + perColumn + R"()
    return %dx, %dg : )" +
                matrix + ", " + perColumn + "\n}");
  Floats x = random(rows * columns, 1), dy = random(rows * columns, 2);
  Floats g = random(columns, 3), s(rows);
  for (int64_t i = 0; i < rows; ++i)
    s[i] = float(rstdOf(x, i, 0, 1e-6));
  Floats dx(rows * columns), dg(columns);
  ASSERT_EQ(kernel({x, g, s, dy, dx, dg}), 0);
  std::vector<double> total(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      total[i] +=
          double(dy[i * columns + j]) * g[j] * x[i * columns + j] * s[i];
  expectNear(
      dx,
      [&](size_t e) {
        int64_t i = e / columns, j = e % columns;
        return s[i] * (double(dy[e]) * g[j] -
                       double(x[e]) * s[i] * total[i] / columns);
      },
      2e-5, "dx");
  expectNear(
      dg,
      [&](size_t j) {
        double sum = 0;
        for (int64_t i = 0; i < rows; ++i)
          sum += double(dy[i * columns + j]) * x[i * columns + j] * s[i];
        return sum;
      },
      2e-5, "dscale");
}

TEST_P(RowKernels, Softmax) {
  Kernel kernel("func.func @k(%x: " + matrix + ") -> " + matrix + R"( {
    %y = het.softmax %x : ()" +
                matrix + ") -> " + matrix + R"(
    return %y : )" +
                matrix + "\n}");
  Floats x = random(rows * columns, 1, -20, 20), y(rows * columns);
  ASSERT_EQ(kernel({x, y}), 0);
  std::vector<double> largest(rows, -1e30), sums(rows);
  for (int64_t e = 0; e < rows * columns; ++e)
    largest[e / columns] = std::max(largest[e / columns], double(x[e]));
  for (int64_t e = 0; e < rows * columns; ++e)
    sums[e / columns] += std::exp(x[e] - largest[e / columns]);
  expectNear(
      y,
      [&](size_t e) {
        return std::exp(x[e] - largest[e / columns]) / sums[e / columns];
      },
      1e-6);
}

TEST_P(RowKernels, SoftmaxBackward) {
  Kernel kernel("func.func @k(%y: " + matrix + ", %dy: " + matrix + ") -> " +
                matrix + R"( {
    %dx = het.softmax_backward %y, %dy : ()" +
                matrix + ", " + matrix + ") -> " + matrix + R"(
    return %dx : )" +
                matrix + "\n}");
  Floats y = random(rows * columns, 1, 0, 1), dy = random(rows * columns, 2);
  Floats dx(rows * columns);
  ASSERT_EQ(kernel({y, dy, dx}), 0);
  std::vector<double> dots(rows);
  for (int64_t e = 0; e < rows * columns; ++e)
    dots[e / columns] += double(y[e]) * dy[e];
  expectNear(
      dx, [&](size_t e) { return y[e] * (dy[e] - dots[e / columns]); }, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RowKernels,
                         testing::Values(Extents{3, 771}, Extents{1, 64},
                                         Extents{64, 768}, Extents{5, 1},
                                         Extents{2, 17}));

TEST(Softmax, EmptyRows) {
  const float inf = INFINITY;
  for (bool zero : {false, true}) {
    Kernel kernel(std::string("func.func @k(%x: tensor<2x3xf32>) -> "
                              "tensor<2x3xf32> {\n %y = het.softmax %x ") +
                  (zero ? "{zero_empty_rows} " : "") +
                  ": (tensor<2x3xf32>) -> tensor<2x3xf32>\n return %y : "
                  "tensor<2x3xf32>\n}");
    Floats x(6), y(6);
    for (size_t i = 0; i < 6; ++i)
      x[i] = i < 3 ? -inf : i == 3 ? -inf : 0;
    ASSERT_EQ(kernel({x, y}), 0);
    expectNear(y, [&](size_t i) {
      return i < 3 ? (zero ? 0.0 : double(NAN)) : i == 3 ? 0.0 : 0.5;
    });
  }
}

} // namespace

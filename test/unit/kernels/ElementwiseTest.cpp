//===- ElementwiseTest.cpp - elementwise kernels, reductions, dropout -----===//

#include "KernelHarness.h"

#include "autohet/runtime/random.h"

using namespace autohet::test;

namespace {

constexpr int64_t kCount = 3 * 771;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct UnaryCase {
  const char *op;
  double (*reference)(double);
  float low, high;
  double tolerance;
};

class Unary : public testing::TestWithParam<UnaryCase> {};

TEST_P(Unary, MatchesReference) {
  std::string type = tensorType({3, 771});
  std::string op = GetParam().op;
  Kernel kernel("func.func @k(%x: " + type + ") -> " + type + " {\n %y = het." +
                op + " %x : (" + type + ") -> " + type +
                "\n return %y : " + type + "\n}");
  Floats x = random(kCount, 1, GetParam().low, GetParam().high), y(kCount);
  ASSERT_EQ(kernel({x, y}), 0);
  expectNear(
      y, [&](size_t i) { return GetParam().reference(x[i]); },
      GetParam().tolerance, GetParam().op);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Unary,
    testing::Values(
        UnaryCase{"neg", [](double x) { return -x; }, -2, 2, 0},
        UnaryCase{"abs", [](double x) { return std::abs(x); }, -2, 2, 0},
        UnaryCase{"exp", [](double x) { return std::exp(x); }, -80, 10, 3e-7},
        UnaryCase{"log", [](double x) { return std::log(x); }, 1e-6f, 90, 3e-7},
        UnaryCase{"sqrt", [](double x) { return std::sqrt(x); }, 0, 9, 1e-7},
        UnaryCase{"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.01f, 9,
                  3e-7},
        UnaryCase{"reciprocal", [](double x) { return 1 / x; }, 0.1f, 9, 1e-7},
        UnaryCase{"tanh", [](double x) { return std::tanh(x); }, -12, 12, 6e-7},
        UnaryCase{"erf", [](double x) { return std::erf(x); }, -5, 5, 6e-7},
        UnaryCase{"sigmoid", sigmoid, -90, 90, 3e-7},
        UnaryCase{"silu", [](double x) { return x * sigmoid(x); }, -90, 90,
                  3e-7},
        UnaryCase{"relu", [](double x) { return std::max(x, 0.0); }, -2, 2, 0},
        UnaryCase{"sin", [](double x) { return std::sin(x); }, -500, 500, 3e-7},
        UnaryCase{"cos", [](double x) { return std::cos(x); }, -500, 500, 3e-7},
        UnaryCase{
            "gelu erf",
            [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); },
            -8, 8, 1e-6},
        UnaryCase{"gelu tanh",
                  [](double x) {
                    double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
                    return x / 2 * (1 + std::tanh(u));
                  },
                  -8, 8, 1e-6}));

TEST(Elementwise, BroadcastChainIsRight) {
  Kernel kernel(R"(
    func.func @k(%x: tensor<4x5x771xf32>, %b: tensor<771xf32>, %s: tensor<4x1x1xf32>,
                 %m: tensor<5x1xi1>) -> tensor<4x5x771xf32> {
      %0 = het.add %x, %b : (tensor<4x5x771xf32>, tensor<771xf32>) -> tensor<4x5x771xf32>
      %1 = het.silu %0 : (tensor<4x5x771xf32>) -> tensor<4x5x771xf32>
      %2 = het.mul %1, %s : (tensor<4x5x771xf32>, tensor<4x1x1xf32>) -> tensor<4x5x771xf32>
      %z = het.constant dense<0.5> : tensor<f32>
      %3 = het.select %m, %2, %z : (tensor<5x1xi1>, tensor<4x5x771xf32>, tensor<f32>) -> tensor<4x5x771xf32>
      return %3 : tensor<4x5x771xf32>
    })");
  Floats x = random(4 * 5 * 771, 1), b = random(771, 2), s = random(4, 3);
  Bools m(5);
  for (size_t i = 0; i < 5; ++i)
    m[i] = i % 2;
  Floats y(4 * 5 * 771);
  ASSERT_EQ(kernel({x, b, s, m, y}), 0);
  EXPECT_EQ(kernel.scratchBytes(), 0);
  expectNear(
      y,
      [&](size_t e) {
        double v = double(x[e]) + b[e % 771];
        return m[e / 771 % 5] ? v * sigmoid(v) * s[e / (5 * 771)] : 0.5;
      },
      1e-6);
}

TEST(Elementwise, GeluBackward) {
  for (std::string form : {"erf", "tanh"}) {
    std::string type = tensorType({3, 771});
    Kernel kernel("func.func @k(%x: " + type + ", %g: " + type + ") -> " +
                  type + " {\n %y = het.gelu_backward " + form + " %x, %g : (" +
                  type + ", " + type + ") -> " + type +
                  "\n return %y : " + type + "\n}");
    Floats x = random(kCount, 1, -6, 6), g = random(kCount, 2), y(kCount);
    ASSERT_EQ(kernel({x, g, y}), 0);
    auto forward = [&](double v) {
      if (form == "erf")
        return v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
      double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      return v / 2 * (1 + std::tanh(u));
    };
    expectNear(
        y,
        [&](size_t i) {
          double h = 1e-5, v = x[i];
          return g[i] * (forward(v + h) - forward(v - h)) / (2 * h);
        },
        2e-6, form.c_str());
  }
}

TEST(Elementwise, BooleansAndCasts) {
  Kernel kernel(R"(
    func.func @k(%a: tensor<37xi64>, %b: tensor<37xi64>) -> (tensor<37xf32>, tensor<37xi1>) {
      %0 = het.compare le %a, %b : (tensor<37xi64>, tensor<37xi64>) -> tensor<37xi1>
      %1 = het.cast %0 {to = f32} : (tensor<37xi1>) -> tensor<37xf32>
      %2 = het.not %0 : (tensor<37xi1>) -> tensor<37xi1>
      return %1, %2 : tensor<37xf32>, tensor<37xi1>
    })");
  Longs a = randomIntegers(37, 1, -5, 5), b = randomIntegers(37, 2, -5, 5);
  Floats y(37);
  Bools n(37);
  ASSERT_EQ(kernel({a, b, y, n}), 0);
  for (size_t i = 0; i < 37; ++i) {
    EXPECT_EQ(y[i], a[i] <= b[i] ? 1 : 0);
    EXPECT_EQ(n[i], a[i] <= b[i] ? 0 : 1);
  }
}

TEST(Reduce, EveryKindOverRowsAndColumns) {
  struct Kind {
    const char *name;
    double start;
    double (*combine)(double, double);
  } kinds[] = {
      {"sum", 0, [](double a, double b) { return a + b; }},
      {"mean", 0, [](double a, double b) { return a + b; }},
      {"max", -1e30, [](double a, double b) { return std::max(a, b); }},
      {"min", 1e30, [](double a, double b) { return std::min(a, b); }},
      {"prod", 1, [](double a, double b) { return a * b; }}};
  const int64_t rows = 7, columns = 131;
  Floats x = random(2 * rows * columns, 5, 0.9f, 1.1f);
  for (const Kind &kind : kinds) {
    std::string k = kind.name;
    Kernel overColumns("func.func @k(%x: tensor<2x7x131xf32>) -> "
                       "tensor<2x7x1xf32> {\n %y = het.reduce " +
                       k +
                       " %x dims [2] keep : (tensor<2x7x131xf32>) -> "
                       "tensor<2x7x1xf32>\n return %y : tensor<2x7x1xf32>\n}");
    Kernel overRows("func.func @k(%x: tensor<2x7x131xf32>) -> tensor<131xf32> "
                    "{\n %y = het.reduce " +
                    k +
                    " %x dims [0, 1] : (tensor<2x7x131xf32>) -> "
                    "tensor<131xf32>\n return %y : tensor<131xf32>\n}");
    Floats perRow(2 * rows), perColumn(columns);
    ASSERT_EQ(overColumns({x, perRow}), 0);
    ASSERT_EQ(overRows({x, perColumn}), 0);
    bool mean = k == "mean";
    expectNear(
        perRow,
        [&](size_t i) {
          double value = kind.start;
          for (int64_t j = 0; j < columns; ++j)
            value = kind.combine(value, x[i * columns + j]);
          return mean ? value / columns : value;
        },
        1e-5, kind.name);
    expectNear(
        perColumn,
        [&](size_t j) {
          double value = kind.start;
          for (int64_t i = 0; i < 2 * rows; ++i)
            value = kind.combine(value, x[i * columns + j]);
          return mean ? value / (2 * rows) : value;
        },
        1e-5, kind.name);
  }
}

TEST(Dropout, DrawsTheRuntimesMask) {
  // A box of a [.., 6, 100] tensor, of samples 40 and on.
  Kernel kernel(R"(
    func.func @k(%x: tensor<2x3x77xf32>) -> tensor<2x3x77xf32> {
      %y = het.dropout %x {p = 3.0e-1 : f64, op_id = 7 : i64, offsets = array<i64: 1, 2, 23>,
                           global_shape = array<i64: 4, 6, 100>} : (tensor<2x3x77xf32>) -> tensor<2x3x77xf32>
      return %y : tensor<2x3x77xf32>
    })");
  Floats x = random(2 * 3 * 77, 1, 1, 2), y(2 * 3 * 77);
  ah_kernel_context context = {};
  context.seed = 0x123456789abcdef0;
  context.step = 17;
  context.first_sample = 40;
  ASSERT_EQ(kernel({x, y}, &context), 0);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 77; ++k) {
        uint64_t element = ((40 + 1 + i) * 6 + 2 + j) * 100 + 23 + k;
        size_t e = (i * 3 + j) * 77 + k;
        bool keeps =
            ah_dropout_keeps(context.seed, context.step, 7, element, 0.3f);
        EXPECT_EQ(y[e], keeps ? x[e] * float(1 / 0.7) : 0.0f) << element;
      }
}

} // namespace

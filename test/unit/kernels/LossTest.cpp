//===- LossTest.cpp - cross entropy ---------------------------------------===//

#include "KernelHarness.h"

using namespace autohet::test;

namespace {

struct Extents {
  int64_t rows, classes;
};

class CrossEntropy : public testing::TestWithParam<Extents> {
protected:
  int64_t rows = GetParam().rows, classes = GetParam().classes;
  std::string logitsType = tensorType({1, rows, classes});
  std::string labelsType = tensorType({1, rows}, "i64");
  std::string rowType = tensorType({1, rows});
  Floats logits = random(rows * classes, 1, -8, 8);
  Longs labels = randomIntegers(rows, 2, 0, classes);

  double logSumExp(int64_t row) const {
    double largest = -1e30, sum = 0;
    for (int64_t j = 0; j < classes; ++j)
      largest = std::max(largest, double(logits[row * classes + j]));
    for (int64_t j = 0; j < classes; ++j)
      sum += std::exp(logits[row * classes + j] - largest);
    return largest + std::log(sum);
  }
};

TEST_P(CrossEntropy, SumsCountedRows) {
  Kernel kernel("func.func @k(%x: " + logitsType + ", %l: " + labelsType +
                ") -> (tensor<f32>, " + rowType + R"() {
    %s, %e = het.cross_entropy %x, %l {ignore_index = -100 : i64} : ()" +
                logitsType + ", " + labelsType + ") -> (tensor<f32>, " +
                rowType + R"()
    return %s, %e : tensor<f32>, )" +
                rowType + "\n}");
  labels[rows / 2] = -100;
  Floats loss(1), lse(rows);
  ASSERT_EQ(kernel({logits, labels, loss, lse}), 0);
  std::vector<double> expected(rows);
  double total = 0;
  for (int64_t i = 0; i < rows; ++i) {
    expected[i] = logSumExp(i);
    if (labels[i] != -100)
      total += expected[i] - logits[i * classes + labels[i]];
  }
  expectNear(lse, [&](size_t i) { return expected[i]; }, 3e-7, "log_sum_exp");
  expectNear(loss, [&](size_t) { return total; }, 3e-7, "loss");

  labels[0] = classes;
  ah_kernel_context context = {};
  EXPECT_EQ(kernel({logits, labels, loss, lse}, &context), 1);
  EXPECT_EQ(context.error_index, 0);
  EXPECT_EQ(context.error_value, classes);
}

TEST_P(CrossEntropy, PartOfTheClasses) {
  const int64_t first = 3;
  Kernel kernel("func.func @k(%x: " + logitsType + ", %l: " + labelsType +
                ") -> (" + rowType + ", " + rowType + R"() {
    %e, %p = het.cross_entropy_part %x, %l {first_class = 3 : i64, classes = )" +
                std::to_string(classes + 5) +
                R"( : i64, ignore_index = -100 : i64} : ()" + logitsType +
                ", " + labelsType + ") -> (" + rowType + ", " + rowType + R"()
    return %e, %p : )" +
                rowType + ", " + rowType + "\n}");
  // Below the box, its two ends, above it, ignored.
  int64_t interesting[] = {first - 1, first, first + classes - 1,
                           first + classes, -100};
  for (int64_t i = 0; i < rows; ++i)
    labels[i] = interesting[i % 5];
  Floats lse(rows), picked(rows);
  ASSERT_EQ(kernel({logits, labels, lse, picked}), 0);
  expectNear(lse, [&](size_t i) { return logSumExp(i); }, 3e-7, "log_sum_exp");
  for (int64_t i = 0; i < rows; ++i) {
    int64_t index = labels[i] - first;
    bool isHere = index >= 0 && index < classes;
    EXPECT_EQ(picked[i], isHere ? logits[i * classes + index] : 0)
        << "label " << labels[i];
  }
  // A class that no rank has.
  labels[rows - 1] = classes + 5;
  ah_kernel_context context = {};
  EXPECT_EQ(kernel({logits, labels, lse, picked}, &context), 1);
  EXPECT_EQ(context.error_index, rows - 1);
  EXPECT_EQ(context.error_value, classes + 5);
}

TEST_P(CrossEntropy, Backward) {
  for (int64_t first : {int64_t(0), int64_t(3)}) {
    std::string box =
        first ? ", first_class = " + std::to_string(first) + " : i64" : "";
    Kernel kernel("func.func @k(%x: " + logitsType + ", %l: " + labelsType +
                  ", %e: " + rowType + ", %g: tensor<f32>) -> " + logitsType +
                  R"( {
    %d = het.cross_entropy_backward %x, %l, %e, %g {ignore_index = -100 : i64)" +
                  box + "} : (" + logitsType + ", " + labelsType + ", " +
                  rowType + ", tensor<f32>) -> " + logitsType + R"(
    return %d : )" +
                  logitsType + "\n}");
    labels[rows / 2] = -100;
    Floats lse(rows), g(1), d(rows * classes);
    g[0] = 0.125f;
    for (int64_t i = 0; i < rows; ++i)
      lse[i] = float(logSumExp(i));
    ASSERT_EQ(kernel({logits, labels, lse, g, d}), 0);
    expectNear(
        d,
        [&](size_t e) {
          int64_t i = e / classes, j = e % classes;
          if (labels[i] == -100)
            return 0.0;
          double p = std::exp(logits[e] - double(lse[i]));
          return 0.125 * (p - (labels[i] == j + first ? 1 : 0));
        },
        1e-7, "gradient");
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CrossEntropy,
                         testing::Values(Extents{24, 101}, Extents{1, 17},
                                         Extents{3, 50257}));

} // namespace

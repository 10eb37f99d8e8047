//===- OptimizerTest.cpp - update rules against their formulas --------------===//

#include "autohet/runtime/optimizer.h"
#include "device/cpu/Numerics.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using namespace autohet::runtime;

namespace {
struct State {
  std::vector<float> parameter, gradient, mean, square;
  explicit State(int64_t elements)
      : parameter(elements), gradient(elements), mean(elements),
        square(elements) {
    for (int64_t i = 0; i < elements; ++i) {
      parameter[i] = std::sin(0.37 * i);
      gradient[i] = std::cos(0.91 * i) * std::pow(10.0, i % 7 - 5);
    }
  }
  void update(const ah_update &update, int64_t begin, int64_t end) {
    float *states[2] = {mean.data() + begin, square.data() + begin};
    cpu::update(update, parameter.data() + begin, gradient.data() + begin,
                states, end - begin);
  }
};

ah_update numbers(ah_optimizer kind) {
  ah_update u = {};
  u.kind = kind;
  u.learning_rate = 1e-3;
  u.beta1 = 0.9;
  u.beta2 = 0.999;
  u.epsilon = 1e-8;
  u.clip = 1;
  return u;
}
} // namespace

TEST(Optimizer, SgdIsPyTorchs) {
  State state(37), before = state;
  ah_update u = numbers(AH_SGD);
  u.weight_decay = 0.1;
  state.update(u, 0, 37);
  for (int i = 0; i < 37; ++i) {
    float g = before.gradient[i] + float(0.1) * before.parameter[i];
    EXPECT_EQ(state.parameter[i], before.parameter[i] + float(-1e-3) * g);
  }
}

// torch.optim._functional's single-tensor form, one operation a line.
static void reference(State &s, const ah_update &u, bool decoupled) {
  for (size_t i = 0; i < s.parameter.size(); ++i) {
    float p = s.parameter[i], g = s.gradient[i];
    if (decoupled)
      p = p * float(1 - u.learning_rate * u.weight_decay);
    else if (u.weight_decay != 0)
      g = g + float(u.weight_decay) * p;
    float difference = g - s.mean[i];
    s.mean[i] = s.mean[i] + float(1 - u.beta1) * difference;
    float square = s.square[i] * float(u.beta2);
    float scaled = float(1 - u.beta2) * g;
    s.square[i] = square + scaled * g;
    double correction1 = 1 - std::pow(u.beta1, double(u.updates));
    double correction2 = 1 - std::pow(u.beta2, double(u.updates));
    float denominator = std::sqrt(s.square[i]) / float(std::sqrt(correction2));
    denominator = denominator + float(u.epsilon);
    float numerator = float(-(u.learning_rate / correction1)) * s.mean[i];
    s.parameter[i] = p + numerator / denominator;
  }
}

TEST(Optimizer, AdamAndAdamWArePyTorchs) {
  for (ah_optimizer kind : {AH_ADAM, AH_ADAMW}) {
    State state(1003), expected = state;
    ah_update u = numbers(kind);
    u.weight_decay = 0.01;
    for (u.updates = 1; u.updates <= 5; ++u.updates) {
      state.update(u, 0, 1003);
      reference(expected, u, kind == AH_ADAMW);
      EXPECT_EQ(state.parameter, expected.parameter);
      EXPECT_EQ(state.mean, expected.mean);
      EXPECT_EQ(state.square, expected.square);
    }
  }
}

// Slices start anywhere, so a vector loop's tail must give its body's bits.
TEST(Optimizer, SlicesGiveTheSameBits) {
  for (ah_optimizer kind : {AH_SGD, AH_ADAM, AH_ADAMW}) {
    State whole(257), sliced = whole;
    ah_update u = numbers(kind);
    u.weight_decay = 0.01;
    u.clips = 1;
    u.clip = 0.3f;
    u.updates = 1;
    whole.update(u, 0, 257);
    for (int64_t begin = 0; begin < 257; begin += 13)
      sliced.update(u, begin, std::min<int64_t>(begin + 13, 257));
    EXPECT_EQ(whole.parameter, sliced.parameter);
    EXPECT_EQ(whole.square, sliced.square);
  }
}

TEST(Optimizer, SchedulesAreFunctionsOfTheStep) {
  ah_optimizer_settings s;
  ah_optimizer_defaults(AH_ADAMW, &s);
  EXPECT_EQ(s.weight_decay, 0.01);
  s.learning_rate = 1;
  EXPECT_EQ(ah_learning_rate(&s, 1000), 1);
  s.warmup_steps = 10;
  s.total_steps = 110;
  EXPECT_EQ(ah_learning_rate(&s, 0), 0);
  EXPECT_EQ(ah_learning_rate(&s, 5), 0.5);
  s.schedule = AH_LINEAR;
  EXPECT_EQ(ah_learning_rate(&s, 10), 1);
  EXPECT_DOUBLE_EQ(ah_learning_rate(&s, 60), 0.5);
  EXPECT_EQ(ah_learning_rate(&s, 110), 0);
  EXPECT_EQ(ah_learning_rate(&s, 200), 0);
  s.schedule = AH_COSINE;
  EXPECT_NEAR(ah_learning_rate(&s, 35), 0.5 * (1 + std::cos(M_PI / 4)), 1e-15);
}

TEST(Optimizer, ClippingIsPyTorchs) {
  ah_optimizer_settings s;
  ah_optimizer_defaults(AH_SGD, &s);
  EXPECT_EQ(ah_clip_factor(&s, 100), 1);
  s.clip_norm = 1;
  EXPECT_EQ(ah_clip_factor(&s, 100), 1.0f / (10.0f + 1e-6f));
  EXPECT_EQ(ah_clip_factor(&s, 0.25), 1);
}

TEST(Numerics, ReduceAddsLeftToRightAndMayWorkInPlace) {
  std::vector<float> a(5000), b(5000), c(5000);
  for (int i = 0; i < 5000; ++i) {
    a[i] = 1e8f + i;
    b[i] = -1e8f;
    c[i] = 0.25f * i;
  }
  std::vector<float> expected(5000);
  for (int i = 0; i < 5000; ++i)
    expected[i] = a[i] + b[i] + c[i];
  for (int target = 0; target < 3; ++target) {
    std::vector<float> copies[3] = {a, b, c};
    const float *from[3] = {copies[0].data(), copies[1].data(),
                            copies[2].data()};
    cpu::reduce(copies[target].data(), from, 3, 5000);
    EXPECT_EQ(copies[target], expected);
  }
}

TEST(Numerics, SumOfSquaresIsAccurate) {
  std::vector<float> values(100003, 1e-3f);
  EXPECT_NEAR(cpu::sumOfSquares(values.data(), values.size()), 100003e-6, 1e-8);
  EXPECT_EQ(cpu::sumOfSquares(values.data(), 0), 0);
}

TEST(Gemm, EqualsTheDefinitionForAllFormsAndSizes) {
  for (int64_t size : {1, 3, 17, 40})
    for (int form = 0; form < 8; ++form) {
      bool transposeA = form & 1, transposeB = form & 2;
      float beta = form & 4 ? 1 : 0;
      int64_t m = size, n = size + 2, k = size + 5;
      std::vector<float> a(m * k), b(k * n), c(m * n, beta ? 0.5f : NAN);
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = std::sin(double(i));
      for (size_t i = 0; i < b.size(); ++i)
        b[i] = std::cos(double(i));
      autohet_sgemm(transposeA, transposeB, m, n, k, 2, a.data(),
                    transposeA ? m : k, b.data(), transposeB ? k : n, beta,
                    c.data(), n);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += double(transposeA ? a[l * m + i] : a[i * k + l]) *
                   double(transposeB ? b[j * k + l] : b[l * n + j]);
          ASSERT_NEAR(c[i * n + j], 2 * sum + 0.5 * beta, 1e-4)
              << size << " form " << form;
        }
    }
}

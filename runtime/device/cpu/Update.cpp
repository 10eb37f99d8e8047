//===- Update.cpp - optimizers on the CPU -----------------------------------===//
//
// PyTorch's formulas in PyTorch's order of operations, in float; scalars are
// combined in double first, as Python does. Compiled without contraction and
// without reassociation, so every vector width gives the same bits: owners on
// unlike machines agree, and a slice may move between them.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Numerics.h"

#include <cmath>

#if defined(__x86_64__) && defined(__linux__)
#define AUTOHET_CLONES                                                         \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define AUTOHET_CLONES
#endif

namespace autohet::runtime::cpu {

AUTOHET_CLONES static void sgd(float *__restrict parameter,
                               const float *__restrict gradient,
                               int64_t elements, float clip, float weightDecay,
                               float negativeRate) {
  for (int64_t i = 0; i < elements; ++i) {
    float g = gradient[i] * clip;
    g = g + weightDecay * parameter[i];
    parameter[i] = parameter[i] + negativeRate * g;
  }
}

namespace {
struct AdamNumbers {
  float clip, coupledDecay, keep; // keep: what decoupled decay leaves
  float weight1;                  // 1 - beta1
  float beta2, weight2;           // weight2: 1 - beta2
  float correction2Root, epsilon;
  float negativeStepSize;
  bool towardsEnd; // how torch.lerp is evaluated, for accuracy
  float complement1;
};
} // namespace

AUTOHET_CLONES static void adam(float *__restrict parameter,
                                const float *__restrict gradient,
                                float *__restrict mean,
                                float *__restrict square, int64_t elements,
                                const AdamNumbers n) {
  for (int64_t i = 0; i < elements; ++i) {
    float p = parameter[i] * n.keep;
    float g = gradient[i] * n.clip;
    g = g + n.coupledDecay * p;
    float difference = g - mean[i];
    float m = n.towardsEnd ? g - difference * n.complement1
                           : mean[i] + n.weight1 * difference;
    float v = square[i] * n.beta2;
    v = v + n.weight2 * g * g;
    float denominator = __builtin_sqrtf(v) / n.correction2Root + n.epsilon;
    mean[i] = m;
    square[i] = v;
    parameter[i] = p + n.negativeStepSize * m / denominator;
  }
}

void update(const ah_update &u, float *parameter, const float *gradient,
            float *const *states, int64_t elements) {
  // A factor of one changes no bits, an added zero times a parameter neither.
  float clip = u.clips ? u.clip : 1.0f;
  if (u.kind == AH_SGD) {
    sgd(parameter, gradient, elements, clip, static_cast<float>(u.weight_decay),
        static_cast<float>(-u.learning_rate));
    return;
  }
  bool decoupled = u.kind == AH_ADAMW;
  double correction1 = 1 - std::pow(u.beta1, double(u.updates));
  double correction2 = 1 - std::pow(u.beta2, double(u.updates));
  AdamNumbers n;
  n.clip = clip;
  n.coupledDecay = decoupled ? 0.0f : static_cast<float>(u.weight_decay);
  n.keep = decoupled ? static_cast<float>(1 - u.learning_rate * u.weight_decay)
                     : 1.0f;
  n.weight1 = static_cast<float>(1 - u.beta1);
  n.towardsEnd = n.weight1 >= 0.5f;
  n.complement1 = 1 - n.weight1;
  n.beta2 = static_cast<float>(u.beta2);
  n.weight2 = static_cast<float>(1 - u.beta2);
  n.correction2Root = static_cast<float>(std::sqrt(correction2));
  n.epsilon = static_cast<float>(u.epsilon);
  n.negativeStepSize = static_cast<float>(-(u.learning_rate / correction1));
  adam(parameter, gradient, states[0], states[1], elements, n);
}

AUTOHET_CLONES static void addInto(float *to, const float *left,
                                   const float *right, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    to[i] = left[i] + right[i];
}

void reduce(float *to, const float *const *from, uint32_t count,
            int64_t elements) {
  // In blocks, so that `to` may be any of the operands: it is written only when
  // all of a block's operands have been read.
  constexpr int64_t block = 2048;
  alignas(64) float sum[block];
  for (int64_t start = 0; start < elements; start += block) {
    int64_t size = elements - start < block ? elements - start : block;
    if (count == 1) {
      __builtin_memmove(to + start, from[0] + start, size * sizeof(float));
      continue;
    }
    const float *left = from[0] + start;
    for (uint32_t operand = 1; operand < count; ++operand) {
      float *target = operand + 1 == count ? to + start : sum;
      addInto(target, left, from[operand] + start, size);
      left = sum;
    }
  }
}

AUTOHET_CLONES double sumOfSquares(const float *from, int64_t elements) {
  // Sixteen lanes whatever the machine's vectors are, so that the order of the
  // additions is the same everywhere.
  double lanes[16] = {};
  int64_t i = 0;
  for (; i + 16 <= elements; i += 16)
    for (int lane = 0; lane < 16; ++lane)
      lanes[lane] += double(from[i + lane]) * double(from[i + lane]);
  for (int lane = 0; i < elements; ++i, ++lane)
    lanes[lane] += double(from[i]) * double(from[i]);
  double sum = 0;
  for (double lane : lanes)
    sum += lane;
  return sum;
}

} // namespace autohet::runtime::cpu

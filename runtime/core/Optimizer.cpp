//===- Optimizer.cpp - the numbers of a step --------------------------------===//

#include "autohet/runtime/optimizer.h"

#include <algorithm>
#include <cmath>

void ah_optimizer_defaults(ah_optimizer kind, ah_optimizer_settings *settings) {
  *settings = ah_optimizer_settings{};
  settings->struct_bytes = sizeof *settings;
  settings->version = AH_OPTIMIZER_VERSION;
  settings->learning_rate = 1e-3;
  settings->beta1 = 0.9;
  settings->beta2 = 0.999;
  settings->epsilon = 1e-8;
  settings->weight_decay = kind == AH_ADAMW ? 0.01 : 0;
}

double ah_learning_rate(const ah_optimizer_settings *settings, int64_t step) {
  double factor = 1;
  int64_t warmup = settings->warmup_steps, total = settings->total_steps;
  if (step < warmup) {
    factor = double(step) / double(warmup);
  } else if (settings->schedule != AH_CONSTANT) {
    double progress =
        double(step - warmup) / double(std::max<int64_t>(1, total - warmup));
    progress = std::min(progress, 1.0);
    factor = settings->schedule == AH_LINEAR
                 ? 1 - progress
                 : 0.5 * (1 + std::cos(3.14159265358979323846 * progress));
  }
  return settings->learning_rate * factor;
}

float ah_clip_factor(const ah_optimizer_settings *settings,
                     double squared_norm) {
  if (settings->clip_norm <= 0)
    return 1;
  // In float, as PyTorch's norm is a float tensor.
  float norm = static_cast<float>(std::sqrt(squared_norm));
  return std::min(static_cast<float>(settings->clip_norm) / (norm + 1e-6f),
                  1.0f);
}

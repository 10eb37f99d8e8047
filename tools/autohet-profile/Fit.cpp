//===- Fit.cpp - rates of a device from measured units --------------------===//
//
// Three unknowns: every choice of those that are not 0 is solved, and the best
// one without a negative number taken.
//
//===----------------------------------------------------------------------===//

#include "Fit.h"

#include "llvm/ADT/STLExtras.h"
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>

namespace autohet {

using Vector = std::array<double, 3>; // overhead, 1 / rate, 1 / bandwidth

static Vector factors(const Observation &of) {
  return {of.overheads, of.flops, of.bytes};
}

static double errorOf(llvm::ArrayRef<Observation> observations,
                      const Vector &x) {
  double sum = 0;
  for (const Observation &one : observations) {
    Vector f = factors(one);
    double difference = f[0] * x[0] + f[1] * x[1] + f[2] * x[2] - one.seconds;
    sum += one.weight * difference * difference;
  }
  return sum;
}

/// The unknowns of `active`, the others 0; none if these are not determined.
static std::optional<Vector> solve(llvm::ArrayRef<Observation> observations,
                                   unsigned active) {
  // Scaled, since flops are 1e9 times overheads.
  Vector scale = {};
  for (const Observation &one : observations)
    for (auto [largest, f] : llvm::zip_equal(scale, factors(one)))
      largest = std::max(largest, std::fabs(f));
  std::array<std::array<double, 4>, 3> m = {};
  for (unsigned i = 0; i < 3; ++i) {
    if (!(active >> i & 1) || scale[i] == 0) {
      m[i][i] = 1;
      continue;
    }
    for (const Observation &one : observations) {
      Vector f = factors(one);
      for (unsigned j = 0; j < 3; ++j)
        if ((active >> j & 1) && scale[j] > 0)
          m[i][j] += one.weight * f[i] / scale[i] * f[j] / scale[j];
      m[i][3] += one.weight * f[i] / scale[i] * one.seconds;
    }
  }
  for (unsigned pivot = 0; pivot < 3; ++pivot) {
    if (std::fabs(m[pivot][pivot]) < 1e-12)
      return std::nullopt;
    for (unsigned row = 0; row < 3; ++row) {
      if (row == pivot)
        continue;
      double factor = m[row][pivot] / m[pivot][pivot];
      for (unsigned column = pivot; column < 4; ++column)
        m[row][column] -= factor * m[pivot][column];
    }
  }
  Vector x;
  for (unsigned i = 0; i < 3; ++i)
    x[i] = scale[i] > 0 ? m[i][3] / m[i][i] / scale[i] : 0;
  return x;
}

double FittedRates::seconds(const Observation &of) const {
  double time = of.overheads * overhead_s + of.flops / flops_per_s;
  if (bandwidth_bytes_per_s > 0)
    time += of.bytes / bandwidth_bytes_per_s;
  return time;
}

FittedRates fitRates(llvm::ArrayRef<Observation> observations) {
  constexpr unsigned rate = 2; // always there: a device computes
  Vector best = {};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned active = 0; active < 8; ++active) {
    if (!(active & rate))
      continue;
    std::optional<Vector> x = solve(observations, active);
    if (!x || (*x)[1] <= 0 || (*x)[0] < 0 || (*x)[2] < 0)
      continue;
    if (double error = errorOf(observations, *x); error < least) {
      least = error;
      best = *x;
    }
  }
  assert(best[1] > 0 && "no observation has flops");
  return {best[0], 1 / best[1], best[2] > 0 ? 1 / best[2] : 0};
}

} // namespace autohet

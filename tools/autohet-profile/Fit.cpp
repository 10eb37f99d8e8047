//===- Fit.cpp - rates of a device from measured commands -----------------===//
//
// Five unknowns: every choice of those that stand for themselves is solved, and
// the best one without a negative number taken.
//
//===----------------------------------------------------------------------===//

#include "Fit.h"

#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>

namespace autohet {
namespace {

/// What each quantity of work takes, in seconds.
enum Unknown { Products, Overhead, Attention, Elementwise, Traffic };
constexpr unsigned count = 5;
using Vector = std::array<double, count>;

bool has(unsigned active, unsigned unknown) { return active >> unknown & 1; }

/// By how much each unknown counts; arithmetic without an own one is products'.
Vector factors(const Work &work, unsigned active) {
  Vector f = {work.flops, work.commands, work.attention_flops,
              work.elementwise_flops, work.traffic_bytes};
  for (unsigned i = Overhead; i < count; ++i) {
    if (has(active, i))
      continue;
    if (i == Attention || i == Elementwise)
      f[Products] += f[i];
    f[i] = 0;
  }
  return f;
}

double dot(const Vector &a, const Vector &b) {
  double sum = 0;
  for (unsigned i = 0; i < count; ++i)
    sum += a[i] * b[i];
  return sum;
}

double errorOf(llvm::ArrayRef<Observation> observations, unsigned active,
               const Vector &x) {
  double sum = 0;
  for (const Observation &one : observations) {
    double difference = dot(factors(one.work, active), x) - one.seconds;
    sum += one.weight * difference * difference;
  }
  return sum;
}

/// The normal equations; none if they do not determine what is active.
std::optional<Vector> solve(llvm::ArrayRef<Observation> observations,
                            unsigned active) {
  // Scaled, since flops are 1e9 times commands.
  Vector scale = {};
  for (const Observation &one : observations)
    for (auto [largest, f] : llvm::zip_equal(scale, factors(one.work, active)))
      largest = std::max(largest, std::fabs(f));
  std::array<std::array<double, count + 1>, count> m = {};
  for (unsigned i = 0; i < count; ++i) {
    if (!has(active, i)) {
      m[i][i] = 1;
      continue;
    }
    if (scale[i] == 0)
      return std::nullopt;
    for (const Observation &one : observations) {
      Vector f = factors(one.work, active);
      for (unsigned j = 0; j < count; ++j)
        if (scale[j] > 0)
          m[i][j] += one.weight * f[i] / scale[i] * f[j] / scale[j];
      m[i][count] += one.weight * f[i] / scale[i] * one.seconds;
    }
  }
  for (unsigned pivot = 0; pivot < count; ++pivot) {
    if (std::fabs(m[pivot][pivot]) < 1e-12)
      return std::nullopt;
    for (unsigned row = 0; row < count; ++row) {
      if (row == pivot)
        continue;
      double factor = m[row][pivot] / m[pivot][pivot];
      for (unsigned column = pivot; column <= count; ++column)
        m[row][column] -= factor * m[pivot][column];
    }
  }
  Vector x = {};
  for (unsigned i = 0; i < count; ++i)
    if (has(active, i))
      x[i] = m[i][count] / m[i][i] / scale[i];
  return x;
}

} // namespace

void fitRates(llvm::ArrayRef<Observation> observations, DeviceKind &kind) {
  Vector best = {};
  double least = std::numeric_limits<double>::infinity();
  // A device computes: products always stand for themselves.
  for (unsigned active = 1; active < 1u << count; active += 2) {
    std::optional<Vector> x = solve(observations, active);
    if (!x)
      continue;
    bool isLegal = true;
    for (unsigned i = 0; i < count; ++i)
      isLegal &= !has(active, i) || (*x)[i] > 0;
    if (!isLegal)
      continue;
    if (double error = errorOf(observations, active, *x); error < least) {
      least = error;
      best = *x;
    }
  }
  assert(best[Products] > 0 && "no observation has products");
  auto rate = [&](Unknown of) { return best[of] > 0 ? 1 / best[of] : 0; };
  kind.flops_per_s = rate(Products);
  kind.attention_flops_per_s = rate(Attention);
  kind.elementwise_flops_per_s = rate(Elementwise);
  kind.memory_bandwidth_bytes_per_s = rate(Traffic);
  kind.overhead_s = best[Overhead];
}

std::vector<std::string> findImplausible(const DeviceKind &kind) {
  struct Figure {
    const char *name;
    double value;
    Dimension dimension;
    double low, high;
  };
  // From the slowest emulated share of a core to the fastest card.
  const Figure figures[] = {
      {"flops", kind.flops_per_s, Dimension::FlopsPerSecond, 1e7, 1e16},
      {"attention_flops", kind.attention_flops_per_s, Dimension::FlopsPerSecond,
       1e6, 1e16},
      {"elementwise_flops", kind.elementwise_flops_per_s,
       Dimension::FlopsPerSecond, 1e6, 1e15},
      {"memory_bandwidth", kind.memory_bandwidth_bytes_per_s,
       Dimension::BytesPerSecond, 1e7, 2e13},
      {"overhead", kind.overhead_s, Dimension::Seconds, 0, 1e-3}};
  std::vector<std::string> found;
  for (const Figure &figure : figures)
    // 0: it explains nothing and is not counted.
    if (figure.value > 0 &&
        (figure.value < figure.low || figure.value > figure.high))
      found.push_back(std::string(figure.name) + ": " +
                      formatQuantity(figure.value, figure.dimension));
  return found;
}

} // namespace autohet

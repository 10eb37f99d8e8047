//===- Statistics.cpp - how far estimates are from measurements -----------===//

#include "Statistics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace autohet {

static double meanError(const std::vector<Comparison> &comparisons) {
  double sum = 0;
  for (const Comparison &comparison : comparisons)
    sum += std::abs(comparison.error());
  return sum / static_cast<double>(comparisons.size());
}

std::string summarise(const std::vector<Comparison> &comparisons) {
  std::vector<double> errors;
  for (const Comparison &comparison : comparisons)
    errors.push_back(std::abs(comparison.error()));
  llvm::sort(errors);
  size_t middle = errors.size() / 2;
  double median = errors.size() % 2 ? errors[middle]
                                    : (errors[middle - 1] + errors[middle]) / 2;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format("mean %5.2f %%, median %5.2f %%, worst %5.1f %%",
                     100 * meanError(comparisons), 100 * median,
                     100 * errors.back());
  return text;
}

static std::vector<double>
ranksOf(const std::vector<Comparison> &comparisons,
        llvm::function_ref<double(const Comparison &)> value) {
  std::vector<size_t> order(comparisons.size());
  for (size_t index = 0; index < order.size(); ++index)
    order[index] = index;
  llvm::sort(order, [&](size_t one, size_t other) {
    return value(comparisons[one]) < value(comparisons[other]);
  });
  std::vector<double> ranks(order.size());
  for (size_t begin = 0; begin < order.size();) {
    // Equal values share the mean of their ranks.
    size_t end = begin + 1;
    while (end < order.size() &&
           value(comparisons[order[end]]) == value(comparisons[order[begin]]))
      ++end;
    for (size_t index = begin; index < end; ++index)
      ranks[order[index]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return ranks;
}

double rankCorrelation(const std::vector<Comparison> &comparisons) {
  std::vector<double> x = ranksOf(
      comparisons, [](const Comparison &entry) { return entry.estimated; });
  std::vector<double> y = ranksOf(
      comparisons, [](const Comparison &entry) { return entry.measured; });
  double mean = static_cast<double>(x.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (auto [rankX, rankY] : llvm::zip_equal(x, y)) {
    xy += (rankX - mean) * (rankY - mean);
    xx += (rankX - mean) * (rankX - mean);
    yy += (rankY - mean) * (rankY - mean);
  }
  return xy / std::sqrt(xx * yy);
}

void fitConstants(std::vector<double *> constants,
                  llvm::function_ref<std::vector<Comparison>()> compare) {
  double best = meanError(compare());
  for (double step = 0.2; step > 1e-3;) {
    bool isBetter = false;
    for (double *constant : constants)
      for (double factor : {1 + step, 1 / (1 + step)}) {
        double before = *constant;
        *constant *= factor;
        double error = meanError(compare());
        if (error < best) {
          best = error;
          isBetter = true;
        } else {
          *constant = before;
        }
      }
    if (!isBetter)
      step /= 2;
  }
}

} // namespace autohet

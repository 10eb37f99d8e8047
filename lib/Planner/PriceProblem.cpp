//===- PriceProblem.cpp - the prices that bound a step best ---------------===//
//
// The dual: weights w of the planes, which sum to 1, and the longest time t:
//
//   min t + Σ_c constant_c w_c   where  Σ_c slope_cr w_c + s_r = t  for all r
//
// with slacks s ≥ 0. Its basis has one row more than there are resources, so a
// dense inverse is cheap and is computed afresh in each step.
//
//===----------------------------------------------------------------------===//

#include "PriceProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace autohet {

double PriceProblem::Plane::at(llvm::ArrayRef<double> prices) const {
  double value = constant;
  for (auto [slope, price] : llvm::zip_equal(slopes, prices))
    value += slope * price;
  return value;
}

std::string PriceProblem::check() const {
  if (resource_count == 0 || planes.empty())
    return "no resources or no planes";
  for (const Plane &plane : planes) {
    if (plane.slopes.size() != resource_count || !std::isfinite(plane.constant))
      return "a plane does not match the resources";
    for (double slope : plane.slopes)
      if (!std::isfinite(slope) || slope < 0)
        return "a slope is negative or not finite";
  }
  return "";
}

double PriceProblem::objective(llvm::ArrayRef<double> prices) const {
  double lowest = std::numeric_limits<double>::infinity();
  for (const Plane &plane : planes)
    lowest = std::min(lowest, plane.at(prices));
  return lowest;
}

namespace {

// Dantzig's rule until here, then Bland's, which cannot cycle.
constexpr unsigned maxGreedySteps = 2000;
constexpr unsigned maxSteps = 20000;
constexpr double epsilon = 1e-11;

/// Columns: the planes, then t, then the slacks. Rows: Σ w = 1, then resources.
class Simplex {
public:
  explicit Simplex(const PriceProblem &problem)
      : problem(problem), rows(problem.resource_count + 1),
        time(problem.planes.size()) {
    for (const PriceProblem::Plane &plane : problem.planes) {
      scale = std::max(scale, std::abs(plane.constant));
      for (double slope : plane.slopes)
        scale = std::max(scale, slope);
    }
    // The first plane alone, held up by its scarcest resource.
    const std::vector<double> &slopes = problem.planes[0].slopes;
    unsigned scarcest =
        std::max_element(slopes.begin(), slopes.end()) - slopes.begin();
    basis = {0, time};
    for (unsigned resource = 0; resource < problem.resource_count; ++resource)
      if (resource != scarcest)
        basis.push_back(time + 1 + resource);
  }

  PriceSolution run() {
    for (unsigned step = 0; step < maxSteps; ++step) {
      invert();
      std::vector<double> duals = dualsOfBasis();
      std::optional<unsigned> entering =
          choose(duals, /*isGreedy=*/step < maxGreedySteps);
      if (!entering)
        return solution(duals);
      if (!pivot(*entering))
        return solution(duals);
    }
    return solution(dualsOfBasis());
  }

private:
  unsigned columnCount() const { return time + rows; }

  double cost(unsigned column) const {
    if (column < time)
      return problem.planes[column].constant / scale;
    return column == time ? 1 : 0;
  }
  double entry(unsigned row, unsigned column) const {
    if (column < time)
      return row == 0 ? 1 : problem.planes[column].slopes[row - 1] / scale;
    if (column == time)
      return row == 0 ? 0 : -1;
    return row == column - time;
  }

  // Gauss and Jordan with the largest pivot.
  void invert() {
    std::vector<double> work(rows * rows);
    inverse.assign(rows * rows, 0);
    for (unsigned row = 0; row < rows; ++row) {
      inverse[row * rows + row] = 1;
      for (unsigned column = 0; column < rows; ++column)
        work[row * rows + column] = entry(row, basis[column]);
    }
    for (unsigned column = 0; column < rows; ++column) {
      unsigned pivotRow = column;
      for (unsigned row = column + 1; row < rows; ++row)
        if (std::abs(work[row * rows + column]) >
            std::abs(work[pivotRow * rows + column]))
          pivotRow = row;
      for (unsigned i = 0; i < rows; ++i) {
        std::swap(work[column * rows + i], work[pivotRow * rows + i]);
        std::swap(inverse[column * rows + i], inverse[pivotRow * rows + i]);
      }
      double pivot = work[column * rows + column];
      for (unsigned i = 0; i < rows; ++i) {
        work[column * rows + i] /= pivot;
        inverse[column * rows + i] /= pivot;
      }
      for (unsigned row = 0; row < rows; ++row) {
        double factor = work[row * rows + column];
        if (row == column || factor == 0)
          continue;
        for (unsigned i = 0; i < rows; ++i) {
          work[row * rows + i] -= factor * work[column * rows + i];
          inverse[row * rows + i] -= factor * inverse[column * rows + i];
        }
      }
    }
  }

  std::vector<double> dualsOfBasis() const {
    std::vector<double> duals(rows);
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned i = 0; i < rows; ++i)
        duals[row] += cost(basis[i]) * inverse[i * rows + row];
    return duals;
  }

  std::optional<unsigned> choose(llvm::ArrayRef<double> duals,
                                 bool isGreedy) const {
    std::optional<unsigned> chosen;
    double least = -epsilon;
    for (unsigned column = 0; column < columnCount(); ++column) {
      double reduced = cost(column);
      for (unsigned row = 0; row < rows; ++row)
        reduced -= duals[row] * entry(row, column);
      if (reduced >= least)
        continue;
      chosen = column;
      if (!isGreedy)
        return chosen;
      least = reduced;
    }
    return chosen;
  }

  bool pivot(unsigned entering) {
    std::optional<unsigned> leaving;
    double shortest = 0;
    for (unsigned i = 0; i < rows; ++i) {
      double change = 0;
      for (unsigned row = 0; row < rows; ++row)
        change += inverse[i * rows + row] * entry(row, entering);
      if (change <= epsilon)
        continue;
      double length = std::max(0.0, inverse[i * rows]) / change;
      if (!leaving || length < shortest ||
          (length == shortest && basis[i] < basis[*leaving])) {
        leaving = i;
        shortest = length;
      }
    }
    if (!leaving)
      return false; // only by rounding: the objective is bounded
    basis[*leaving] = entering;
    return true;
  }

  PriceSolution solution(llvm::ArrayRef<double> duals) const {
    PriceSolution result;
    result.weights.assign(problem.planes.size(), 0);
    // The right-hand side is 1 in the first row only.
    for (unsigned i = 0; i < rows; ++i)
      if (basis[i] < time)
        result.weights[basis[i]] = std::max(0.0, inverse[i * rows]);
    double sum = 0;
    for (double dual : duals.drop_front())
      sum += result.prices.emplace_back(std::max(0.0, -dual));
    for (double &price : result.prices)
      price = sum > 0 ? price / sum : 1.0 / problem.resource_count;
    result.objective = problem.objective(result.prices);
    return result;
  }

  const PriceProblem &problem;
  unsigned rows, time;
  double scale = 1e-300;
  std::vector<unsigned> basis;
  std::vector<double> inverse;
};

} // namespace

PriceSolution solvePrices(const PriceProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  return Simplex(problem).run();
}

} // namespace autohet

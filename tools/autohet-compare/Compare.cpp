//===- Compare.cpp - differences between two sets of tensors
//---------------===//
//
// For each tensor the place where it differs most, in numbers that let one see
// whether that is rounding: absolute, and of the tensor's largest element.
//
//===----------------------------------------------------------------------===//

#include "Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

using namespace autohet::compare;

namespace {

/// Two NaNs are not equal, and whatever is no number differs infinitely.
double difference(double left, double right) {
  if (left == right)
    return 0;
  double result = std::fabs(left - right);
  return std::isnan(result) ? INFINITY : result;
}

void measure(Row &row) {
  const std::vector<double> &left = row.left->values,
                            &right = row.right->values;
  for (size_t i = 0; i < right.size(); ++i) {
    row.largest = std::max(row.largest, std::fabs(right[i]));
    double absolute = difference(left[i], right[i]);
    if (absolute > row.absolute.difference)
      row.absolute = {absolute, i};
    double relative = absolute == 0 ? 0 : absolute / std::fabs(right[i]);
    if (relative > row.relative.difference)
      row.relative = {relative, i};
  }
}

/// 0 / 0 is no difference; something of nothing is an infinite one.
double ratio(double part, double whole) { return part == 0 ? 0 : part / whole; }

std::string exceeds(const char *measure, double found,
                    const std::optional<double> &allowed) {
  if (!allowed || found <= *allowed)
    return "";
  char text[128];
  std::snprintf(text, sizeof(text), "%s %.3g, allowed %.3g", measure, found,
                *allowed);
  return text;
}

std::string judge(const Row &row, double largestOfAll, const Options &options) {
  if (!row.sameShape)
    return "shapes differ";
  double absolute = row.absolute.difference;
  for (const auto &[pattern, allowed] : options.absoluteFor)
    if (std::regex_search(row.right->name, pattern))
      return exceeds("absolute", absolute, allowed);
  for (const std::string &failure :
       {exceeds("absolute", absolute, options.absolute),
        exceeds("relative", row.relative.difference, options.relative),
        exceeds("of the tensor's largest", ratio(absolute, row.largest),
                options.relativeToMax),
        exceeds("of all tensors' largest", ratio(absolute, largestOfAll),
                options.relativeToAll)})
    if (!failure.empty())
      return failure;
  return "";
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

/// [3,7] for element 31 of [*,8].
std::string placeText(size_t index, const std::vector<int64_t> &shape) {
  std::vector<int64_t> place(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    place[i] = shape[i] ? index % shape[i] : 0;
    index = shape[i] ? index / shape[i] : 0;
  }
  return shapeText(place);
}

bool selected(const std::string &name, const Options &options) {
  return (!options.only || std::regex_search(name, *options.only)) &&
         (!options.ignore || !std::regex_search(name, *options.ignore));
}

void printRow(const Row &row) {
  if (!row.sameShape) {
    std::printf("%-44s %s against %s\n", row.right->name.c_str(),
                shapeText(row.left->shape).c_str(),
                shapeText(row.right->shape).c_str());
    return;
  }
  size_t at = row.absolute.index;
  bool any = !row.right->values.empty();
  std::printf(
      "%-44s %-14s %10.3g %10.3g  %-12s %16.9g %16.9g%s%s%s\n",
      row.right->name.c_str(), shapeText(row.right->shape).c_str(),
      row.absolute.difference, ratio(row.absolute.difference, row.largest),
      any ? placeText(at, row.right->shape).c_str() : "-",
      any ? row.left->values[at] : 0.0, any ? row.right->values[at] : 0.0,
      row.failure.empty() ? "" : "  <- ", row.failure.c_str(),
      row.left->dtype == row.right->dtype ? "" : "  (types differ)");
}

} // namespace

bool Result::failed(const Options &options) const {
  bool missing =
      !options.allowMissing && (!onlyLeft.empty() || !onlyRight.empty());
  if (options.hasTolerance() && missing)
    return true;
  return std::any_of(rows.begin(), rows.end(),
                     [](const Row &row) { return !row.failure.empty(); });
}

Result autohet::compare::compare(const std::vector<Series> &left,
                                 const std::vector<Series> &right,
                                 const Options &options) {
  Result result;
  std::map<std::string, const Series *> byName;
  for (const Series &series : left) {
    std::string name = series.name;
    for (const auto &[from, to] : options.renames)
      name = std::regex_replace(name, from, to,
                                std::regex_constants::format_first_only);
    if (selected(name, options))
      byName[name] = &series;
  }
  for (const Series &series : right) {
    if (!selected(series.name, options))
      continue;
    auto found = byName.find(series.name);
    if (found == byName.end()) {
      result.onlyRight.push_back(series.name);
      continue;
    }
    Row row{found->second, &series, {}, {}, 0, true, ""};
    byName.erase(found);
    row.sameShape = row.left->shape == row.right->shape;
    if (row.sameShape)
      measure(row);
    result.largestOfAll = std::max(result.largestOfAll, row.largest);
    result.rows.push_back(std::move(row));
  }
  for (const auto &[name, series] : byName)
    result.onlyLeft.push_back(name);
  for (Row &row : result.rows)
    row.failure = judge(row, result.largestOfAll, options);
  return result;
}

void autohet::compare::print(const Result &result, const Options &options) {
  std::vector<const Row *> rows;
  for (const Row &row : result.rows)
    rows.push_back(&row);
  // What fails comes first, then what differs most for its size.
  std::sort(rows.begin(), rows.end(), [](const Row *a, const Row *b) {
    if (a->failure.empty() != b->failure.empty())
      return b->failure.empty();
    double left = ratio(a->absolute.difference, a->largest);
    double right = ratio(b->absolute.difference, b->largest);
    return left != right ? left > right : a->right->name < b->right->name;
  });
  if (!rows.empty())
    std::printf("%-44s %-14s %10s %10s  %-12s %16s %16s\n", "tensor", "shape",
                "difference", "of largest", "at", "left", "right");
  for (size_t i = 0; i < rows.size() && i < options.rows; ++i)
    printRow(*rows[i]);
  if (rows.size() > options.rows)
    std::printf("... and %zu more that differ less (--rows)\n",
                rows.size() - options.rows);
  for (const std::string &name : result.onlyLeft)
    std::printf("only in %s: %s\n", options.left.c_str(), name.c_str());
  for (const std::string &name : result.onlyRight)
    std::printf("only in %s: %s\n", options.right.c_str(), name.c_str());

  double worst = 0, worstOfMax = 0;
  size_t failures = 0;
  for (const Row &row : result.rows) {
    worst = std::max(worst, row.absolute.difference);
    worstOfMax =
        std::max(worstOfMax, ratio(row.absolute.difference, row.largest));
    failures += !row.failure.empty();
  }
  std::printf("%zu tensors compared, largest difference %.3g, %.3g of its "
              "tensor's largest element; "
              "%zu only on one side",
              result.rows.size(), worst, worstOfMax,
              result.onlyLeft.size() + result.onlyRight.size());
  if (options.hasTolerance() || failures)
    std::printf("; %zu outside the tolerance", failures);
  std::printf("\n");
}

//===- Compare.h - differences between two sets of tensors ------*- C++ -*-===//
//
// Two files become two lists of named series of numbers, whatever their format,
// so that one comparison serves weights, gradients and losses alike.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_COMPARE_COMPARE_H
#define AUTOHET_TOOLS_COMPARE_COMPARE_H

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace autohet::compare {

/// One tensor, or one column of a log.
struct Series {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<double> values;
};

struct Options {
  std::string left, right;
  /// Each that is given has to hold. Against the right file's values:
  std::optional<double> absolute;      // |a - b|
  std::optional<double> relative;      // of the element
  std::optional<double> relativeToMax; // of its tensor's largest element
  std::optional<double> relativeToAll; // of the largest element of all tensors
  /// Tensors that are only compared absolutely: gradients that are zero but for
  /// rounding.
  std::vector<std::pair<std::regex, double>> absoluteFor;
  std::optional<std::regex> only, ignore;
  std::vector<std::pair<std::regex, std::string>> renames; // of the left file
  bool allowMissing = false;
  size_t rows = 20; // printed, worst first

  bool hasTolerance() const {
    return absolute || relative || relativeToMax || relativeToAll ||
           !absoluteFor.empty();
  }
};

/// Where two tensors differ most, by one measure.
struct Worst {
  double difference = 0;
  size_t index = 0;
};

struct Row {
  const Series *left, *right;
  Worst absolute, relative;
  double largest = 0; // |element| of the right tensor
  bool sameShape = true;
  std::string failure; // empty: within all tolerances
};

struct Result {
  std::vector<Row> rows; // in the right file's order
  std::vector<std::string> onlyLeft, onlyRight;
  double largestOfAll = 0;
  bool failed(const Options &options) const;
};

/// Reads .safetensors, or .jsonl (one object a line; each numeric field but
/// `step` is a series, rows without the field are left out). Throws
/// runtime::Error.
std::vector<Series> readSeries(const std::string &path);

/// Compares what the options select. Keeps pointers into `left` and `right`.
Result compare(const std::vector<Series> &left,
               const std::vector<Series> &right, const Options &options);

void print(const Result &result, const Options &options);

} // namespace autohet::compare

#endif

//===- VTrain.cpp - measured training steps of vTrain ---------------------===//

#include "autohet/Profiles/VTrain.h"
#include "autohet/Support/Tree.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

namespace autohet {
namespace {

/// A file of comma-separated numbers below a line of names.
class NumberTable {
public:
  NumberTable(llvm::StringRef text, llvm::StringRef file) : file(file.str()) {
    text.consume_front("\xEF\xBB\xBF"); // a byte order mark
    llvm::SmallVector<llvm::StringRef> lines;
    text.split(lines, '\n');
    for (llvm::StringRef line : lines) {
      llvm::SmallVector<llvm::StringRef> cells;
      line.trim().split(cells, ',');
      rows.push_back(std::move(cells));
    }
    while (!rows.empty() && rows.back().size() == 1 && rows.back()[0].empty())
      rows.pop_back();
  }

  size_t rowCount() const { return rows.empty() ? 0 : rows.size() - 1; }

  /// The number of row `row` in the first column of this name.
  llvm::Expected<double> number(size_t row, llvm::StringRef name) const {
    auto error = [&](unsigned line, const llvm::Twine &message) {
      return makeError(file, {line, 1}, message);
    };
    size_t column = 0;
    while (column < rows[0].size() && rows[0][column].trim() != name)
      ++column;
    if (column == rows[0].size())
      return error(1, "no column '" + name + "'");
    const llvm::SmallVector<llvm::StringRef> &cells = rows[row + 1];
    unsigned line = static_cast<unsigned>(row + 2);
    double value = 0;
    if (column >= cells.size())
      return error(line, "the line ends before column '" + name + "'");
    if (cells[column].trim().getAsDouble(value) || !std::isfinite(value) ||
        value <= 0)
      return error(line, "column '" + name + "' must be above 0, found '" +
                             cells[column] + "'");
    return value;
  }

private:
  std::string file;
  std::vector<llvm::SmallVector<llvm::StringRef>> rows;
};

} // namespace

llvm::Expected<std::vector<MeasuredStep>>
parseMeasuredSteps(llvm::StringRef text, llvm::StringRef file) {
  NumberTable table(text, file);
  std::vector<MeasuredStep> steps;
  for (size_t row = 0; row < table.rowCount(); ++row) {
    MeasuredStep step;
    const std::pair<const char *, int64_t *> columns[] = {
        {"hidden size", &step.shape.hidden},
        {"attention heads", &step.shape.heads},
        {"# layers", &step.shape.layers},
        {"sequence length", &step.shape.sequence},
        {"tensor parallelism", &step.plan.tensor},
        {"data parallelism", &step.plan.data},
        {"pipeline parallelism", &step.plan.pipeline},
        {"micro batch", &step.plan.microbatch_size},
        {"global batch", &step.plan.global_batch}};
    for (auto [name, target] : columns) {
      auto value = table.number(row, name);
      if (!value)
        return value.takeError();
      *target = static_cast<int64_t>(*value);
    }
    auto measured = table.number(row, "iteration time (ms)");
    if (!measured)
      return measured.takeError();
    step.measured_s = *measured * 1e-3;
    steps.push_back(step);
  }
  if (steps.empty())
    return makeError(file, {}, "no rows");
  return steps;
}

llvm::Expected<AllReduceTable> parseAllReduceTable(llvm::StringRef text,
                                                   llvm::StringRef file) {
  NumberTable table(text, file);
  AllReduceTable result;
  for (size_t row = 0; row < table.rowCount(); ++row) {
    auto bytes = table.number(row, "size(B)");
    if (!bytes)
      return bytes.takeError();
    // The first such column: out of place.
    auto nanoseconds = table.number(row, "time(ns)");
    if (!nanoseconds)
      return nanoseconds.takeError();
    if (!result.bytes_and_seconds.empty() &&
        *bytes <= result.bytes_and_seconds.back().first)
      return makeError(file, {static_cast<unsigned>(row + 2), 1},
                       "sizes must ascend");
    result.bytes_and_seconds.push_back({*bytes, *nanoseconds * 1e-9});
  }
  if (result.bytes_and_seconds.empty())
    return makeError(file, {}, "no rows");
  return result;
}

llvm::Expected<VTrainData> loadVTrainData(llvm::StringRef folder) {
  VTrainData data;
  for (auto [name, rows] : {std::pair("ground_truth_single.csv", &data.single),
                            std::pair("ground_truth_multi.csv", &data.multi)}) {
    std::string path = (folder + "/" + name).str();
    auto text = readTextFile(path);
    if (!text)
      return text.takeError();
    auto steps = parseMeasuredSteps(*text, path);
    if (!steps)
      return steps.takeError();
    *rows = std::move(*steps);
  }
  for (int64_t gpus = 2; gpus <= 8; ++gpus) {
    std::string path =
        (folder + "/trace/a100/AR_GPU" + std::to_string(gpus) + "_1M_1024M_LUT")
            .str();
    auto text = readTextFile(path);
    if (!text)
      return text.takeError();
    auto table = parseAllReduceTable(*text, path);
    if (!table)
      return table.takeError();
    data.all_reduce[gpus] = std::move(*table);
  }
  return data;
}

} // namespace autohet

//===- Read.cpp - files as named series of numbers
//-------------------------===//
//
// Values become double, which holds every value of every type here but the
// largest 64-bit integers.
//
//===----------------------------------------------------------------------===//

#include "Compare.h"

#include "autohet/runtime/program.h"
#include "core/Error.h"
#include "core/Json.h"
#include "data/Mapped.h"
#include "data/TensorFile.h"

#include <cstring>
#include <sstream>

using namespace autohet;
using namespace autohet::compare;

namespace {

std::vector<double> widen(const runtime::TensorInfo &tensor, const char *data,
                          const std::string &path) {
  if (tensor.dtype == runtime::foreignDtype)
    runtime::fail(AH_ERROR_INPUT,
                  "%s: tensor '%s' has dtype %s, which cannot be compared",
                  path.c_str(), tensor.name.c_str(), tensor.dtypeText.c_str());
  return runtime::toDoubles(tensor.dtype, data, tensor.elements());
}

std::vector<Series> readTensors(const std::string &path) {
  runtime::SafetensorsFile file(path);
  std::vector<Series> series;
  for (const runtime::TensorInfo &tensor : file.tensors())
    series.push_back({tensor.name, tensor.dtypeText, tensor.shape,
                      widen(tensor, file.data(tensor), path)});
  return series;
}

std::vector<Series> readLines(const std::string &path) {
  runtime::MappedFile bytes(path);
  std::istringstream file(std::string(bytes.data(), bytes.size()));
  std::vector<Series> series;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    runtime::Json object;
    std::string error;
    if (!runtime::parseJson(line, object, error))
      runtime::fail(AH_ERROR_INPUT, "%s:%zu: %s", path.c_str(), number,
                    error.c_str());
    if (object.kind != runtime::Json::Object)
      runtime::fail(AH_ERROR_INPUT,
                    "%s:%zu: found %s, wanted one JSON object a line",
                    path.c_str(), number, runtime::Json::nameOf(object.kind));
    for (const auto &[name, value] : object.fields) {
      if (!value.isNumber() || name == "step")
        continue;
      auto found = series.begin();
      while (found != series.end() && found->name != name)
        ++found;
      if (found == series.end())
        found = series.insert(series.end(), {name, "number", {0}, {}});
      found->values.push_back(value.number);
      found->shape[0] = found->values.size();
    }
  }
  return series;
}

bool endsWith(const std::string &text, const char *end) {
  size_t length = std::strlen(end);
  return text.size() >= length &&
         !text.compare(text.size() - length, length, end);
}

} // namespace

std::vector<Series> compare::readSeries(const std::string &path) {
  if (endsWith(path, ".safetensors"))
    return readTensors(path);
  if (endsWith(path, ".jsonl"))
    return readLines(path);
  runtime::fail(
      AH_ERROR_INPUT,
      "%s: found a name without a known ending, wanted .safetensors or .jsonl",
      path.c_str());
}

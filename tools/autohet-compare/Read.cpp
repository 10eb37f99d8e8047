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
#include "data/Safetensors.h"

#include <cmath>
#include <cstring>
#include <fstream>

using namespace autohet;
using namespace autohet::compare;

namespace {

double fromHalf(uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                     : exponent == 31
                         ? (mantissa ? NAN : INFINITY)
                         : std::ldexp(mantissa + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double fromBrainFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

/// Copies, because a tensor in a file need not be aligned.
template <typename T, typename Convert>
std::vector<double> widen(const char *data, int64_t count, Convert convert) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    values[i] = convert(value);
  }
  return values;
}

template <typename T>
std::vector<double> widen(const char *data, int64_t count) {
  return widen<T>(data, count, [](T value) { return double(value); });
}

std::vector<double> widen(const runtime::TensorInfo &tensor, const char *data,
                          const std::string &path) {
  int64_t count = tensor.elements();
  switch (tensor.dtype) {
  case AH_F32:
    return widen<float>(data, count);
  case AH_F64:
    return widen<double>(data, count);
  case AH_F16:
    return widen<uint16_t>(data, count, fromHalf);
  case AH_BF16:
    return widen<uint16_t>(data, count, fromBrainFloat);
  case AH_I8:
    return widen<int8_t>(data, count);
  case AH_U8:
    return widen<uint8_t>(data, count);
  case AH_BOOL:
    return widen<uint8_t>(data, count);
  case AH_I16:
    return widen<int16_t>(data, count);
  case AH_U16:
    return widen<uint16_t>(data, count);
  case AH_I32:
    return widen<int32_t>(data, count);
  case AH_I64:
    return widen<int64_t>(data, count);
  }
  runtime::fail(AH_ERROR_INPUT,
                "%s: tensor '%s' has dtype %s, which cannot be compared",
                path.c_str(), tensor.name.c_str(), tensor.dtypeText.c_str());
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
  std::ifstream file(path);
  if (!file)
    runtime::fail(AH_ERROR_NOT_FOUND, "%s: %s", path.c_str(),
                  std::strerror(errno));
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

//===- WeightFiles.cpp - one model's tensors in one or several files --------===//

#include "data/WeightFiles.h"

#include "core/Fields.h"
#include "core/Program.h"

#include <cstring>
#include <filesystem>

namespace autohet::runtime {

WeightFiles::WeightFiles(const std::string &path) : name(path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    const SafetensorsFile &file = open(path);
    for (const TensorInfo &info : file.tensors())
      byName[info.name] = {&file, &info};
    return;
  }
  std::string folder = path.back() == '/' ? path : path + "/";
  std::string one = folder + "model.safetensors", index = one + ".index.json";
  bool hasOne = std::filesystem::exists(one, ignored),
       hasIndex = std::filesystem::exists(index, ignored);
  if (hasOne == hasIndex)
    fail(AH_ERROR_INPUT,
         "'%s' has %s of model.safetensors and model.safetensors.index.json, "
         "wanted one of them",
         path.c_str(), hasOne ? "both" : "none");
  if (hasIndex) {
    readIndex(folder, index);
    return;
  }
  const SafetensorsFile &file = open(one);
  for (const TensorInfo &info : file.tensors())
    byName[info.name] = {&file, &info};
}

const SafetensorsFile &WeightFiles::open(const std::string &path) {
  auto &file = files[path];
  if (!file)
    file = std::make_unique<SafetensorsFile>(path);
  return *file;
}

void WeightFiles::readIndex(const std::string &folder,
                            const std::string &index) {
  MappedFile text(index);
  std::string where = "'" + index + "'";
  Json json = parseJsonOrFail({text.data(), text.size()}, where);
  Fields fields(json, where);
  fields.allow({"metadata", "weight_map"});
  const Json &map = fields.child("weight_map");
  Fields entries(map, where + ": weight_map");
  for (auto &[tensor, unused] : map.fields) {
    const std::string &file = entries.string(tensor.c_str());
    if (file.empty() || file.find('/') != std::string::npos)
      entries.wrong("tensor '" + tensor + "' is in '" + file +
                    "', wanted a file of the same folder");
    const SafetensorsFile &opened = open(folder + file);
    const TensorInfo *info = opened.find(tensor);
    if (!info)
      entries.wrong("tensor '" + tensor + "' is not in '" + file + "'");
    byName[tensor] = {&opened, info};
  }
}

const WeightFiles::Tensor *WeightFiles::find(const std::string &tensor) const {
  auto found = byName.find(tensor);
  return found == byName.end() ? nullptr : &found->second;
}

void WeightFiles::failMissing(const std::string &tensor) const {
  std::string names;
  for (auto &[other, unused] : byName) {
    if (names.size() > 300) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + other;
  }
  fail(AH_ERROR_NOT_FOUND, "'%s' has no tensor '%s'; it has: %s", name.c_str(),
       tensor.c_str(), names.c_str());
}

bool widens(uint8_t from, uint8_t to) {
  return from == to || (to == AH_F32 && (from == AH_F16 || from == AH_BF16));
}

/// Sign, exponent and fraction of 1, 5 and 10 bits; all of them are exact in
/// float32.
static float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  float value;
  if (exponent == 0) {
    value =
        float(fraction) * 0x1p-24f; // zero, or less than the smallest normal
    return sign ? -value : value;
  }
  exponent = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  uint32_t bits = sign | exponent << 23 | fraction << 13;
  memcpy(&value, &bits, 4);
  return value;
}

std::vector<char> widened(uint8_t from, const char *values, uint64_t count) {
  std::vector<char> result(count * 4);
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t half;
    memcpy(&half, values + 2 * i, 2);
    uint32_t bits = uint32_t(half) << 16; // BF16 is the upper half of float32
    float value;
    memcpy(&value, &bits, 4);
    if (from == AH_F16)
      value = halfToFloat(half);
    memcpy(result.data() + 4 * i, &value, 4);
  }
  return result;
}

} // namespace autohet::runtime

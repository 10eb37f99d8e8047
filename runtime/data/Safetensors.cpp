//===- Safetensors.cpp - files of named tensors -----------------------------===//

#include "data/Safetensors.h"

#include "core/Fields.h"
#include "core/Program.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace autohet::runtime {

namespace {
struct NamedDtype {
  const char *name;
  unsigned bits;
  uint8_t dtype;
};
} // namespace

static const NamedDtype dtypes[] = {{"F32", 32, AH_F32},
                                    {"F16", 16, AH_F16},
                                    {"BF16", 16, AH_BF16},
                                    {"F64", 64, AH_F64},
                                    {"I8", 8, AH_I8},
                                    {"U8", 8, AH_U8},
                                    {"I16", 16, AH_I16},
                                    {"U16", 16, AH_U16},
                                    {"I32", 32, AH_I32},
                                    {"I64", 64, AH_I64},
                                    {"BOOL", 8, AH_BOOL},
                                    {"U32", 32, AH_U32},
                                    {"U64", 64, AH_U64},
                                    {"C64", 64, foreignDtype},
                                    {"F8_E4M3", 8, AH_F8_E4M3FN},
                                    {"F8_E5M2", 8, AH_F8_E5M2},
                                    {"F8_E8M0", 8, foreignDtype},
                                    {"F6_E2M3", 6, foreignDtype},
                                    {"F6_E3M2", 6, foreignDtype},
                                    {"F4", 4, foreignDtype}};

static const NamedDtype *findDtype(const std::string &name) {
  for (const NamedDtype &dtype : dtypes)
    if (name == dtype.name)
      return &dtype;
  return nullptr;
}

int64_t TensorInfo::elements() const {
  return elementCount(shape.data(), shape.size());
}

static TensorInfo readInfo(const std::string &path, const std::string &name,
                           const Json &entry, uint64_t dataStart) {
  Fields fields(entry, "'" + path + "': tensor '" + name + "'");
  fields.allow({"dtype", "shape", "data_offsets"});
  TensorInfo info;
  info.name = name;
  info.dtypeText = fields.string("dtype");
  const NamedDtype *dtype = findDtype(info.dtypeText);
  if (!dtype)
    fields.wrong("unknown dtype '" + info.dtypeText + "'");
  info.dtype = dtype->dtype;
  info.shape = fields.naturals("shape");
  uint64_t bits = dtype->bits;
  for (int64_t extent : info.shape)
    if (__builtin_mul_overflow(bits, uint64_t(extent), &bits))
      fields.wrong("shape is too large");
  std::vector<int64_t> offsets = fields.naturals("data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    fields.wrong("data_offsets are not a begin and an end");
  info.offset = dataStart + offsets[0];
  info.bytes = offsets[1] - offsets[0];
  if (bits % 8 != 0 || info.bytes != bits / 8)
    fields.wrong(format("%s of %s needs %llu bytes, data_offsets give %llu",
                        info.dtypeText.c_str(),
                        shapeText(info.shape.data(), info.shape.size()).c_str(),
                        (unsigned long long)(bits / 8),
                        (unsigned long long)info.bytes));
  return info;
}

static void readMetadata(const std::string &path, const Json &entry,
                         Metadata &metadata) {
  Fields fields(entry, "'" + path + "': __metadata__");
  for (auto &[key, value] : entry.fields)
    metadata[key] = fields.string(key.c_str());
}

SafetensorsFile::SafetensorsFile(const std::string &path) : file(path) {
  constexpr uint64_t maxHeader = 100'000'000;
  if (file.size() < 8)
    fail(AH_ERROR_INPUT, "'%s' is not a safetensors file: %llu bytes",
         path.c_str(), (unsigned long long)file.size());
  uint64_t headerBytes;
  memcpy(&headerBytes, file.data(), 8);
  if (headerBytes > maxHeader || headerBytes > file.size() - 8)
    fail(AH_ERROR_INPUT,
         "'%s' is not a safetensors file or is truncated: header of %llu bytes "
         "in a file "
         "of %llu",
         path.c_str(), (unsigned long long)headerBytes,
         (unsigned long long)file.size());
  const char *text = file.data() + 8;
  if (headerBytes == 0 || text[0] != '{')
    fail(AH_ERROR_INPUT,
         "'%s' is not a safetensors file: the header is no JSON object",
         path.c_str());
  Json header =
      parseJsonOrFail({text, headerBytes}, "'" + path + "': the header");
  uint64_t dataStart = 8 + headerBytes;
  for (auto &[name, entry] : header.fields) {
    if (name == "__metadata__")
      readMetadata(path, entry, meta);
    else
      infos.push_back(readInfo(path, name, entry, dataStart));
  }
  // Neither holes nor overlaps, and not a byte too few or too many.
  // (Empty tensors share an offset with their successor and come first.)
  std::sort(infos.begin(), infos.end(), [](const auto &a, const auto &b) {
    return std::tie(a.offset, a.bytes, a.name) <
           std::tie(b.offset, b.bytes, b.name);
  });
  uint64_t position = dataStart;
  for (size_t index = 0; index < infos.size(); ++index) {
    const TensorInfo &info = infos[index];
    if (info.offset != position)
      fail(AH_ERROR_INPUT,
           "'%s': tensor '%s' begins at byte %llu of the data, wanted %llu",
           path.c_str(), info.name.c_str(),
           (unsigned long long)(info.offset - dataStart),
           (unsigned long long)(position - dataStart));
    if (info.bytes > file.size() - position)
      fail(
          AH_ERROR_INPUT,
          "'%s' is truncated: tensor '%s' ends at byte %llu, the file has %llu",
          path.c_str(), info.name.c_str(),
          (unsigned long long)(position + info.bytes),
          (unsigned long long)file.size());
    position += info.bytes;
    byName[info.name] = index;
  }
  if (position != file.size())
    fail(AH_ERROR_INPUT, "'%s': %llu bytes after the last tensor", path.c_str(),
         (unsigned long long)(file.size() - position));
}

const TensorInfo *SafetensorsFile::find(const std::string &name) const {
  auto found = byName.find(name);
  return found == byName.end() ? nullptr : &infos[found->second];
}

const TensorInfo &SafetensorsFile::get(const std::string &name) const {
  if (const TensorInfo *info = find(name))
    return *info;
  std::string names;
  for (const TensorInfo &info : infos) {
    if (names.size() > 300) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + info.name;
  }
  fail(AH_ERROR_NOT_FOUND, "'%s' has no tensor '%s'; it has: %s",
       path().c_str(), name.c_str(), names.c_str());
}

void writeSafetensors(const std::string &path,
                      const std::vector<TensorSource> &tensors,
                      const Metadata &metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (auto &[key, value] : metadata)
      text += (text.back() == '{' ? "" : ",") + jsonQuoted(key) + ":" +
              jsonQuoted(value);
    text += "}";
  }
  uint64_t position = 0;
  for (const TensorSource &tensor : tensors) {
    const char *dtype = nullptr;
    for (const NamedDtype &candidate : dtypes)
      if (candidate.dtype == tensor.dtype)
        dtype = candidate.name;
    if (!dtype)
      fail(AH_ERROR_INPUT,
           "'%s': safetensors have no %s, of which tensor '%s' is",
           path.c_str(), dtypeName(tensor.dtype), tensor.name.c_str());
    uint64_t bytes =
        uint64_t(elementCount(tensor.shape.data(), tensor.shape.size())) *
        dtypeBytes(tensor.dtype);
    text +=
        (text.size() == 1 ? "" : ",") + jsonQuoted(tensor.name) +
        format(":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}",
               dtype,
               shapeText(tensor.shape.data(), tensor.shape.size()).c_str(),
               (unsigned long long)position,
               (unsigned long long)(position + bytes));
    position += bytes;
  }
  text += "}";
  // Data starts on a multiple of 8, so that a mapping is aligned.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  AtomicFile file(path);
  uint64_t headerBytes = text.size();
  file.write(&headerBytes, 8);
  file.write(text.data(), text.size());
  for (const TensorSource &tensor : tensors) {
    uint64_t bytes =
        uint64_t(elementCount(tensor.shape.data(), tensor.shape.size())) *
        dtypeBytes(tensor.dtype);
    if (bytes > 0)
      file.write(tensor.bytes(), bytes);
  }
  file.commit();
}

} // namespace autohet::runtime

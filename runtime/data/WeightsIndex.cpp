//===- WeightsIndex.cpp - reads weights.index -------------------------------===//

#include "core/Error.h"
#include "data/Checksum.h"
#include "data/Weights.h"

#include <nlohmann/json.hpp>

namespace autohet::runtime {

using Json = nlohmann::json;

namespace {
/// Reads one JSON object, naming what is wrong with it.
class Fields {
public:
  Fields(const Json &object, std::string where) : object(object), where(std::move(where)) {
    if (!object.is_object())
      wrong("not an object");
  }
  [[noreturn]] void wrong(const std::string &what) const {
    fail(AH_ERROR_INPUT, "%s: %s", where.c_str(), what.c_str());
  }
  void allow(std::initializer_list<const char *> known) const {
    for (auto &[key, value] : object.items()) {
      bool found = false;
      std::string names;
      for (const char *name : known) {
        found |= key == name;
        names += (names.empty() ? "" : ", ") + std::string(name);
      }
      if (!found)
        wrong("unknown key '" + key + "'; known: " + names);
    }
  }
  bool has(const char *key) const { return object.contains(key); }
  const Json &at(const char *key) const {
    auto found = object.find(key);
    if (found == object.end())
      wrong(std::string("key '") + key + "' is missing");
    return *found;
  }
  std::string string(const char *key) const {
    if (!at(key).is_string())
      wrong(std::string("'") + key + "' is not a string");
    return at(key).get<std::string>();
  }
  uint64_t natural(const char *key) const {
    if (!at(key).is_number_unsigned())
      wrong(std::string("'") + key + "' is not a natural number");
    return at(key).get<uint64_t>();
  }

private:
  const Json &object;
  std::string where;
};
} // namespace

static uint8_t readDtype(const Fields &fields) {
  std::string text = fields.string("dtype");
  for (uint8_t dtype = 0; dtype <= AH_BOOL; ++dtype)
    if (text == dtypeName(dtype))
      return dtype;
  fields.wrong("unknown dtype '" + text + "'");
}

static uint64_t readHash(const Fields &fields, const char *key, const std::string &prefix) {
  std::string text = fields.string(key);
  size_t end = 0;
  uint64_t value = 0;
  if (text.size() == prefix.size() + 16 && text.compare(0, prefix.size(), prefix) == 0) {
    try {
      value = std::stoull(text.substr(prefix.size()), &end, 16);
    } catch (const std::exception &) {
    }
  }
  if (end != 16)
    fields.wrong(std::string("'") + key + "' is '" + text + "', wanted '" + prefix +
                 "' and 16 hexadecimal digits");
  return value;
}

static StoredTensor readTensor(const Json &entry, const std::string &where) {
  Fields fields(entry, where);
  fields.allow({"name", "file", "offset", "bytes", "dtype", "shape", "transform", "trained",
                "checksum"});
  StoredTensor tensor;
  tensor.name = fields.string("name");
  Fields named(entry, where + " ('" + tensor.name + "')");
  tensor.file = named.string("file");
  tensor.offset = named.natural("offset");
  tensor.bytes = named.natural("bytes");
  tensor.dtype = readDtype(named);
  std::string transform = named.string("transform");
  if (transform != "none" && transform != "transpose")
    named.wrong("transform '" + transform + "'; known: none, transpose");
  tensor.transposed = transform == "transpose";
  if (named.has("trained")) {
    if (!named.at("trained").is_boolean())
      named.wrong("'trained' is not true or false");
    tensor.trained = named.at("trained").get<bool>();
  }
  if (named.has("checksum"))
    tensor.checksum = readHash(named, "checksum", "xxh64:");
  const Json &shape = named.at("shape");
  if (!shape.is_array() || shape.size() > AH_MAX_RANK)
    named.wrong("'shape' is not a list of at most 8 extents");
  uint64_t bytes = dtypeBytes(tensor.dtype);
  for (const Json &extent : shape) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX ||
        __builtin_mul_overflow(bytes, extent.get<uint64_t>(), &bytes))
      named.wrong("extent " + extent.dump() + " is not a natural number or is too large");
    tensor.shape.push_back(extent.get<int64_t>());
  }
  if (bytes != tensor.bytes)
    named.wrong(format("'bytes' is %llu, dtype and shape need %llu",
                       (unsigned long long)tensor.bytes, (unsigned long long)bytes));
  if (tensor.transposed && tensor.shape.size() < 2)
    named.wrong("a transposed tensor has at least two dims");
  return tensor;
}

WeightsIndex::WeightsIndex(const std::string &path) : indexPath(path) {
  size_t slash = path.rfind('/');
  folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  MappedFile file(path);
  Json root;
  try {
    root = Json::parse(file.data(), file.data() + file.size());
  } catch (const Json::exception &error) {
    fail(AH_ERROR_INPUT, "'%s' is not JSON: %s", path.c_str(), error.what());
  }
  Fields fields(root, "'" + path + "'");
  fields.allow({"format", "version", "structure_hash", "tensors", "aliases"});
  if (fields.string("format") != "autohet-weights" || fields.natural("version") != 1)
    fields.wrong("not a weights index of version 1");
  structure = readHash(fields, "structure_hash", "");
  if (!fields.at("tensors").is_array())
    fields.wrong("'tensors' is not a list");
  for (size_t index = 0; index < root["tensors"].size(); ++index) {
    StoredTensor tensor = readTensor(
        root["tensors"][index], "'" + path + "', tensor " + std::to_string(index));
    std::string name = tensor.name;
    if (!entries.emplace(name, std::move(tensor)).second)
      fields.wrong("tensor '" + name + "' is there twice");
  }
  if (fields.has("aliases"))
    for (auto &[name, target] : fields.at("aliases").items()) {
      if (!target.is_string() || !entries.count(target.get<std::string>()))
        fields.wrong("alias '" + name + "' of an unknown tensor");
      otherNames[name] = target.get<std::string>();
    }
}

const char *WeightsIndex::data(const StoredTensor &tensor) {
  if (tensor.bytes == 0)
    return "";
  auto found = files.find(tensor.file);
  if (found == files.end()) {
    std::string path = tensor.file[0] == '/' ? tensor.file : folder + tensor.file;
    found = files.emplace(tensor.file, MappedFile(path)).first;
  }
  const MappedFile &file = found->second;
  if (tensor.offset > file.size() || tensor.bytes > file.size() - tensor.offset)
    fail(AH_ERROR_INPUT,
         "'%s' is too short for '%s': it has %llu bytes, wanted %llu from %llu",
         file.path().c_str(), tensor.name.c_str(), (unsigned long long)file.size(),
         (unsigned long long)tensor.bytes, (unsigned long long)tensor.offset);
  return file.data() + tensor.offset;
}

void WeightsIndex::verify(const StoredTensor &tensor) {
  if (!tensor.checksum)
    return;
  uint64_t found = checksum64(data(tensor), tensor.bytes);
  if (found != *tensor.checksum)
    fail(AH_ERROR_INPUT, "'%s' has changed since it was compiled: '%s' is %s, wanted %s",
         tensor.file.c_str(), tensor.name.c_str(), checksumText(found).c_str(),
         checksumText(*tensor.checksum).c_str());
}

} // namespace autohet::runtime

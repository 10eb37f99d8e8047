//===- WeightsIndex.cpp - reads weights.index -------------------------------===//

#include "core/Fields.h"
#include "data/Checksum.h"
#include "data/Weights.h"

namespace autohet::runtime {

static uint8_t readDtype(const Fields &fields) {
  std::string text = fields.string("dtype");
  for (uint8_t dtype = 0; dtype <= AH_U64; ++dtype)
    if (text == dtypeName(dtype))
      return dtype;
  fields.wrong("unknown dtype '" + text + "'");
}

static StoredTensor readTensor(const Json &entry, const std::string &where) {
  Fields fields(entry, where);
  fields.allow({"name", "file", "offset", "bytes", "dtype", "shape",
                "transform", "trained", "frozen", "checksum"});
  StoredTensor tensor;
  tensor.name = fields.string("name");
  Fields named(entry, where + " ('" + tensor.name + "')");
  tensor.shape = named.naturals("shape");
  if (named.has("trained"))
    tensor.trained = named.boolean("trained");
  if (named.has("frozen"))
    tensor.frozen = named.boolean("frozen");
  if (tensor.frozen && tensor.trained)
    named.wrong("it is 'trained' and 'frozen'");
  // A model that was built from a config alone has no bytes anywhere.
  if (!named.has("file")) {
    tensor.dtype = readDtype(named);
    for (const char *key : {"offset", "bytes", "transform", "checksum"})
      if (named.has(key))
        named.wrong(format("has '%s', but no 'file'", key));
    return tensor;
  }
  tensor.file = named.string("file");
  tensor.offset = named.natural("offset");
  tensor.bytes = named.natural("bytes");
  tensor.dtype = readDtype(named);
  std::string transform = named.string("transform");
  if (transform != "none" && transform != "transpose")
    named.wrong("transform '" + transform + "'; known: none, transpose");
  tensor.transposed = transform == "transpose";
  if (named.has("checksum"))
    tensor.checksum = named.hash("checksum", "xxh64:");
  if (tensor.shape.size() > AH_MAX_RANK)
    named.wrong("'shape' has more than 8 extents");
  uint64_t bytes = dtypeBytes(tensor.dtype);
  for (int64_t extent : tensor.shape)
    if (__builtin_mul_overflow(bytes, uint64_t(extent), &bytes))
      named.wrong("'shape' is too large");
  if (bytes != tensor.bytes)
    named.wrong(format("'bytes' is %llu, dtype and shape need %llu",
                       (unsigned long long)tensor.bytes,
                       (unsigned long long)bytes));
  if (tensor.transposed && tensor.shape.size() < 2)
    named.wrong("a transposed tensor has at least two dims");
  return tensor;
}

WeightsIndex::WeightsIndex(const std::string &path) : indexPath(path) {
  size_t slash = path.rfind('/');
  folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  MappedFile file(path);
  Json root = parseJsonOrFail({file.data(), file.size()}, "'" + path + "'");
  Fields fields(root, "'" + path + "'");
  fields.allow({"format", "version", "structure_hash", "tensors", "aliases"});
  if (fields.string("format") != "autohet-weights" ||
      fields.natural("version") != 1)
    fields.wrong("not a weights index of version 1");
  structure = fields.hash("structure_hash");
  const std::vector<Json> &tensors = fields.list("tensors").items;
  for (size_t index = 0; index < tensors.size(); ++index) {
    StoredTensor tensor = readTensor(tensors[index], "'" + path + "', tensor " +
                                                         std::to_string(index));
    std::string name = tensor.name;
    if (!entries.emplace(name, std::move(tensor)).second)
      fields.wrong("tensor '" + name + "' is there twice");
  }
  if (!fields.has("aliases"))
    return;
  for (auto &[name, target] : fields.child("aliases").fields) {
    if (target.kind != Json::String || !entries.count(target.string))
      fields.wrong("alias '" + name + "' of an unknown tensor");
    if (entries.count(name))
      fields.wrong("alias '" + name + "' is a tensor's own name");
    otherNames[name] = target.string;
  }
}

std::set<std::string> WeightsIndex::frozen() const {
  std::set<std::string> names;
  for (auto &[name, tensor] : entries)
    if (tensor.frozen)
      names.insert(name);
  return names;
}

const char *WeightsIndex::data(const StoredTensor &tensor) {
  if (tensor.bytes == 0)
    return "";
  auto found = files.find(tensor.file);
  if (found == files.end()) {
    std::string path =
        tensor.file[0] == '/' ? tensor.file : folder + tensor.file;
    found = files.emplace(tensor.file, MappedFile(path)).first;
  }
  const MappedFile &file = found->second;
  if (tensor.offset > file.size() || tensor.bytes > file.size() - tensor.offset)
    fail(AH_ERROR_INPUT,
         "'%s' is too short for '%s': it has %llu bytes, wanted %llu from %llu",
         file.path().c_str(), tensor.name.c_str(),
         (unsigned long long)file.size(), (unsigned long long)tensor.bytes,
         (unsigned long long)tensor.offset);
  return file.data() + tensor.offset;
}

void WeightsIndex::release(const StoredTensor &tensor) {
  auto found = files.find(tensor.file);
  if (found != files.end())
    found->second.release(tensor.offset, tensor.bytes);
}

void WeightsIndex::verify(const StoredTensor &tensor) {
  if (!tensor.checksum)
    return;
  uint64_t found = checksum64(data(tensor), tensor.bytes);
  if (found != *tensor.checksum)
    fail(AH_ERROR_INPUT,
         "'%s' has changed since it was compiled: '%s' is %s, wanted %s",
         tensor.file.c_str(), tensor.name.c_str(), checksumText(found).c_str(),
         checksumText(*tensor.checksum).c_str());
}

} // namespace autohet::runtime

//===- Manifest.cpp - the manifest of a checkpoint --------------------------===//

#include "checkpoint/Checkpoint.h"
#include "core/Fields.h"
#include "core/Program.h"
#include "data/Checksum.h"

#include <iterator>
#include <set>

namespace autohet::runtime {

const char *const optimizerNames[] = {"sgd", "adam", "adamw", "none"};
static const char *const scheduleNames[] = {"constant", "linear", "cosine"};

const char *sliceKindName(SliceKind kind) {
  static const char *const names[] = {"parameter", "exp_avg", "exp_avg_sq"};
  return names[static_cast<int>(kind)];
}

std::optional<ah_optimizer> optimizerOfName(const std::string &name) {
  for (int kind = 0; kind < int(std::size(optimizerNames)); ++kind)
    if (name == optimizerNames[kind])
      return ah_optimizer(kind);
  return std::nullopt;
}

static std::string commaSeparated(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

std::string SliceRecord::key() const {
  return std::string(sliceKindName(kind)) + "/" + name + "/" +
         commaSeparated(box.offset);
}

std::string stepFolderName(uint64_t step) {
  return format("step-%08llu", (unsigned long long)step);
}

std::string recordsText(const std::vector<SliceRecord> &records) {
  std::string text = "[";
  for (const SliceRecord &r : records)
    text += (text.size() > 1 ? ",\n    " : "\n    ") +
            std::string("{\"name\":") + jsonQuoted(r.name) + ",\"kind\":\"" +
            sliceKindName(r.kind) + "\",\"dtype\":\"" + dtypeName(r.dtype) +
            "\",\"shape\":[" + commaSeparated(r.box.global) + "],\"offset\":[" +
            commaSeparated(r.box.offset) + "],\"size\":[" +
            commaSeparated(r.box.size) + "],\"file\":" + jsonQuoted(r.file) +
            ",\"checksum\":\"" + checksumText(r.checksum) + "\"}";
  return text + "]";
}

static int indexOf(const Fields &fields, const char *key,
                   std::initializer_list<const char *> names) {
  const std::string &text = fields.string(key);
  int index = 0;
  std::string known;
  for (const char *name : names) {
    if (text == name)
      return index;
    ++index;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  fields.wrong(std::string("'") + key + "' is '" + text + "'; known: " + known);
}

static SliceRecord readRecord(const Json &entry, const std::string &where) {
  Fields fields(entry, where);
  fields.allow(
      {"name", "kind", "dtype", "shape", "offset", "size", "file", "checksum"});
  SliceRecord record;
  record.name = fields.string("name");
  record.kind = SliceKind(
      indexOf(fields, "kind", {"parameter", "exp_avg", "exp_avg_sq"}));
  record.dtype =
      indexOf(fields, "dtype",
              {"float32", "float16", "bfloat16", "float64", "int8", "uint8",
               "int16", "uint16", "int32", "int64", "bool"});
  record.box = {fields.naturals("shape"), fields.naturals("offset"),
                fields.naturals("size")};
  size_t rank = record.box.global.size();
  if (rank > AH_MAX_RANK || record.box.offset.size() != rank ||
      record.box.size.size() != rank)
    fields.wrong("'shape', 'offset' and 'size' are not of one rank up to 8");
  for (size_t dim = 0; dim < rank; ++dim)
    if (record.box.offset[dim] > record.box.global[dim] ||
        record.box.size[dim] > record.box.global[dim] - record.box.offset[dim])
      fields.wrong("the box is outside of the tensor");
  record.file = fields.string("file");
  if (record.file.empty() || record.file.find('/') != std::string::npos)
    fields.wrong("'file' is not a name beside the manifest");
  record.checksum = fields.hash("checksum", "xxh64:");
  return record;
}

static std::vector<SliceRecord> readRecords(const Json &list,
                                            const std::string &where) {
  std::vector<SliceRecord> records;
  for (size_t index = 0; index < list.items.size(); ++index)
    records.push_back(readRecord(list.items[index],
                                 where + ", slice " + std::to_string(index)));
  return records;
}

std::vector<SliceRecord> parseRecords(const std::string &text,
                                      const std::string &where) {
  return readRecords(parseJsonOrFail(text, where), where);
}

static std::string settingsText(const ah_optimizer_settings &s,
                                const std::string &noDecay) {
  auto field = [](const char *key, double value) {
    return std::string("\"") + key + "\":" + jsonNumber(value) + ",";
  };
  return "{" + field("lr", s.learning_rate) + field("beta1", s.beta1) +
         field("beta2", s.beta2) + field("eps", s.epsilon) +
         field("weight_decay", s.weight_decay) +
         "\"no_decay\":" + jsonQuoted(noDecay) + "," +
         field("clip_norm", s.clip_norm) + "\"schedule\":\"" +
         scheduleNames[s.schedule] + "\"," +
         format("\"warmup_steps\":%lld,\"total_steps\":%lld}",
                (long long)s.warmup_steps, (long long)s.total_steps);
}

static ah_optimizer_settings readSettings(const Json &entry,
                                          const std::string &where) {
  Fields fields(entry, where + ", settings");
  fields.allow({"lr", "beta1", "beta2", "eps", "weight_decay", "no_decay",
                "clip_norm", "schedule", "warmup_steps", "total_steps"});
  ah_optimizer_settings s = {};
  s.struct_bytes = sizeof s;
  s.version = AH_OPTIMIZER_VERSION;
  s.learning_rate = fields.number("lr");
  s.beta1 = fields.number("beta1");
  s.beta2 = fields.number("beta2");
  s.epsilon = fields.number("eps");
  s.weight_decay = fields.number("weight_decay");
  s.clip_norm = fields.number("clip_norm");
  s.schedule = indexOf(fields, "schedule", {"constant", "linear", "cosine"});
  s.warmup_steps = fields.natural("warmup_steps");
  s.total_steps = fields.natural("total_steps");
  for (const char *key : {"lr", "eps", "weight_decay", "clip_norm"})
    if (fields.number(key) < 0)
      fields.wrong(std::string("'") + key + "' is negative");
  for (const char *key : {"beta1", "beta2"})
    if (!(fields.number(key) >= 0 && fields.number(key) < 1))
      fields.wrong(std::string("'") + key + "' is not from 0 to below 1");
  return s;
}

/// Before what comes the checksum of all before it: the last line but one.
static const char checksumKey[] = ",\n  \"checksum\": ";

std::string CheckpointManifest::text() const {
  std::string text = format(
      "{\n  \"format\": \"autohet-checkpoint\",\n  \"version\": 2,\n  "
      "\"step\": %llu,\n"
      "  \"updates\": %llu,\n  \"structure_hash\": \"%016llx\",\n  \"seed\": "
      "\"%016llx\",\n  \"global_batch\": %u,\n  \"optimizer\": \"%s\",\n",
      (unsigned long long)step, (unsigned long long)updates,
      (unsigned long long)structureHash, (unsigned long long)seed, globalBatch,
      optimizerNames[optimizer]);
  if (sequenceLength)
    text += format("  \"sequence_length\": %u,\n", sequenceLength);
  text += "  \"settings\": " + settingsText(settings, noDecay) +
          ",\n  \"aliases\": {";
  for (auto &[alias, name] : aliases)
    text += (text.back() == '{' ? "" : ",") + jsonQuoted(alias) + ":" +
            jsonQuoted(name);
  text += "},\n  \"files\": [";
  for (size_t index = 0; index < files.size(); ++index)
    text += format("%s\n    {\"name\":%s,\"bytes\":%llu}", index ? "," : "",
                   jsonQuoted(files[index].name).c_str(),
                   (unsigned long long)files[index].bytes);
  text += "],\n  \"slices\": " + recordsText(slices);
  return text + checksumKey + "\"" +
         checksumText(checksum64(text.data(), text.size())) + "\"\n}\n";
}

CheckpointManifest CheckpointManifest::read(const std::string &path) {
  MappedFile file(path);
  std::string where = "'" + path + "'";
  Json root = parseJsonOrFail({file.data(), file.size()}, where);
  Fields fields(root, where);
  fields.allow({"format", "version", "step", "updates", "structure_hash",
                "seed", "global_batch", "sequence_length", "optimizer",
                "settings", "aliases", "files", "slices", "checksum"});
  if (fields.string("format") != "autohet-checkpoint" ||
      fields.natural("version") != 2)
    fields.wrong("not a checkpoint manifest of version 2");
  CheckpointManifest manifest;
  manifest.step = fields.natural("step");
  manifest.updates = fields.natural("updates");
  if (manifest.updates > manifest.step)
    fields.wrong("more 'updates' than 'step' steps");
  manifest.structureHash = fields.hash("structure_hash");
  manifest.seed = fields.hash("seed");
  uint64_t globalBatch = fields.natural("global_batch");
  if (globalBatch == 0 || globalBatch > UINT32_MAX)
    fields.wrong("'global_batch' is no number of samples");
  manifest.globalBatch = globalBatch;
  if (fields.has("sequence_length")) {
    uint64_t length = fields.natural("sequence_length");
    if (length == 0 || length > UINT32_MAX)
      fields.wrong("'sequence_length' is no number of tokens");
    manifest.sequenceLength = length;
  }
  manifest.optimizer = ah_optimizer(
      indexOf(fields, "optimizer", {"sgd", "adam", "adamw", "none"}));
  manifest.settings = readSettings(fields.child("settings"), where);
  manifest.noDecay =
      Fields(fields.child("settings"), where + ", settings").string("no_decay");
  if (fields.has("aliases"))
    for (auto &[alias, name] : fields.child("aliases").fields)
      manifest.aliases[alias] =
          Fields(fields.child("aliases"), where + ", aliases")
              .string(alias.c_str());
  for (const Json &entry : fields.list("files").items) {
    Fields one(entry, where + ", files");
    one.allow({"name", "bytes"});
    manifest.files.push_back({one.string("name"), one.natural("bytes")});
    if (manifest.files.back().name.find('/') != std::string::npos)
      one.wrong("'name' is not a name beside the manifest");
  }
  manifest.slices = readRecords(fields.list("slices"), where);
  std::set<std::string> names;
  for (const SliceRecord &slice : manifest.slices)
    names.insert(slice.name);
  for (auto &[alias, name] : manifest.aliases)
    if (names.count(alias) || !names.count(name))
      fields.wrong("alias '" + alias + "' of '" + name + "': '" +
                   (names.count(alias) ? alias + "' is a slice's own name"
                                       : name + "' is no slice's name"));
  // Last: what is wrong by itself has been named.
  uint64_t wanted = fields.hash("checksum", "xxh64:");
  size_t size = std::string_view(file.data(), file.size()).rfind(checksumKey);
  uint64_t found = size < file.size() ? checksum64(file.data(), size) : ~wanted;
  if (found != wanted)
    fields.wrong("damaged: its checksum is " + checksumText(found) +
                 ", wanted " + checksumText(wanted));
  return manifest;
}

} // namespace autohet::runtime

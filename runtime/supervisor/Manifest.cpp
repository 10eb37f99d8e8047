//===- Manifest.cpp - nodes and ranks of a job ----------------------------===//
//
// Strict on purpose: a key that nobody reads is a setting that silently does
// nothing, so unknown ones are errors that list the known.
//
//===----------------------------------------------------------------------===//

#include "supervisor/Manifest.h"
#include "core/Json.h"

#include <fnmatch.h>
#include <map>
#include <set>

using namespace autohet::runtime;

bool autohet::runtime::isLoopbackName(std::string_view address) {
  return address == "localhost" || address == "::1" ||
         address.substr(0, 4) == "127.";
}

bool ManifestNode::isLocal() const {
  return address.empty() || isLoopbackName(address);
}

uint32_t Manifest::firstRank(uint32_t node) const {
  uint32_t rank = 0;
  while (rank < ranks.size() && ranks[rank].node != node)
    ++rank;
  return rank;
}

uint32_t Manifest::rankCount(uint32_t node) const {
  uint32_t count = 0;
  for (const ManifestRank &rank : ranks)
    count += rank.node == node;
  return count;
}

std::string Manifest::deviceName(uint32_t rank) const {
  return nodes[ranks[rank].node].name + "/" +
         std::to_string(ranks[rank].device);
}

std::string Manifest::describeRank(uint32_t rank) const {
  std::string text = "rank " + std::to_string(rank);
  return rank < ranks.size() ? text + " (" + deviceName(rank) + ")" : text;
}

ManifestLink Manifest::linkBetween(uint32_t from, uint32_t to) const {
  // A pattern without '/' means all devices of the nodes that it matches.
  auto matches = [&](const std::string &pattern, uint32_t rank) {
    bool isDevice = pattern.find('/') != std::string::npos;
    std::string name =
        isDevice ? deviceName(rank) : nodes[ranks[rank].node].name;
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  ManifestLink link =
      ranks[from].node == ranks[to].node ? intra_node : inter_node;
  for (const ManifestLinkOverride &one : overrides)
    if (matches(one.from, from) && matches(one.to, to))
      link = one.link;
  return link;
}

namespace {

/// Reads the fields of one object; the first mistake wins and is kept.
class Reader {
public:
  Reader(const Json &object, std::string where, std::string &error)
      : object(object), where(std::move(where)), error(error) {
    if (object.kind != Json::Object)
      wrong("", "an object", object);
  }

  Reader &text(const char *key, std::string &out, bool required = true) {
    if (const Json *value = get(key, Json::String, required))
      out = value->string;
    return *this;
  }

  template <typename T>
  Reader &count(const char *key, T &out, bool required = true) {
    if (const Json *value = get(key, Json::Integer, required)) {
      out = static_cast<T>(value->integer);
      if (value->integer < 0 || static_cast<int64_t>(out) != value->integer)
        fail(where + "." + key + ": " + std::to_string(value->integer) +
             " is out of range");
    }
    return *this;
  }

  Reader &number(const char *key, double &out, bool required = true) {
    known.insert(key);
    const Json *value = object.find(key);
    if (!value) {
      if (required)
        fail(where + ": the key \"" + key + "\" is missing");
      return *this;
    }
    if (!value->isNumber())
      wrong(std::string(".") + key, "a number", *value);
    else
      out = value->number;
    return *this;
  }

  const Json *get(const char *key, Json::Kind kind, bool required) {
    known.insert(key);
    const Json *value = object.find(key);
    if (!value) {
      if (required)
        fail(where + ": the key \"" + key + "\" is missing");
      return nullptr;
    }
    if (value->kind != kind) {
      wrong(std::string(".") + key, Json::nameOf(kind), *value);
      return nullptr;
    }
    return value;
  }

  /// Refuses keys that nobody asked for.
  bool finish() {
    for (const auto &field : object.fields)
      if (!known.count(field.first)) {
        std::string list;
        for (const std::string &key : known)
          list += (list.empty() ? "" : ", ") + key;
        fail(where + ": unknown key \"" + field.first + "\"; known are " +
             list);
      }
    return error.empty();
  }

private:
  const Json &object;
  std::string where;
  std::string &error;
  std::set<std::string> known;

  void fail(const std::string &what) {
    if (error.empty())
      error = what;
  }
  void wrong(const std::string &key, const char *wanted, const Json &found) {
    fail(where + key + ": expected " + wanted + ", found " +
         Json::nameOf(found.kind));
  }
};

} // namespace

static void readNode(const Json &json, const std::string &where,
                     ManifestNode &node, std::string &error) {
  Reader reader(json, where, error);
  reader.text("name", node.name)
      .text("executable", node.executable)
      .text("address", node.address, false);
  // The executables lie beside the manifest; it starts nothing else.
  if (error.empty() && (node.executable.empty() || node.executable[0] == '.' ||
                        node.executable.find('/') != std::string::npos))
    error = where +
            ".executable: expected the name of a file in this folder, "
            "found \"" +
            node.executable + "\"";
  // ssh would take it for an option.
  if (error.empty() && !node.address.empty() && node.address[0] == '-')
    error = where + ".address: expected a host, found \"" + node.address + "\"";
  if (const Json *target = reader.get("target", Json::Object, false)) {
    Reader inner(*target, where + ".target", error);
    inner.text("triple", node.triple, false);
    if (const Json *list = inner.get("features", Json::Array, false))
      for (const Json &feature : list->items)
        node.features.push_back(feature.string);
    inner.finish();
  }
  reader.finish();
}

static void readRank(const Json &json, const std::string &where,
                     ManifestRank &rank, std::string &error) {
  Reader(json, where, error)
      .count("node", rank.node)
      .count("device", rank.device)
      .text("kind", rank.kind, false)
      .count("threads", rank.threads, false)
      .count("replica", rank.replica, false)
      .count("stage", rank.stage, false)
      .count("memory_bytes", rank.memory_bytes, false)
      .number("relative_speed", rank.relative_speed, false)
      .finish();
}

static void readDevice(const Json &json, const std::string &where,
                       ManifestDevice &device, std::string &error) {
  Reader(json, where, error)
      .count("threads", device.threads)
      .number("relative_speed", device.relative_speed)
      .finish();
  if (error.empty() && !(device.relative_speed > 0))
    error = where + ".relative_speed: must be above 0";
}

static void readLink(Reader &reader, ManifestLink &link) {
  reader.number("bandwidth_bytes_per_s", link.bandwidth_bytes_per_s)
      .number("latency_s", link.latency_s);
}

static void readLinks(const Json &json, Manifest &manifest,
                      std::string &error) {
  Reader reader(json, "links", error);
  for (auto [key, link] : {std::pair("intra_node", &manifest.intra_node),
                           std::pair("inter_node", &manifest.inter_node)})
    if (const Json *value = reader.get(key, Json::Object, true)) {
      Reader inner(*value, std::string("links.") + key, error);
      readLink(inner, *link);
      inner.finish();
    }
  const Json *overrides = reader.get("overrides", Json::Array, false);
  for (size_t i = 0; overrides && i < overrides->items.size(); ++i) {
    ManifestLinkOverride one;
    Reader inner(overrides->items[i],
                 "links.overrides[" + std::to_string(i) + "]", error);
    inner.text("from", one.from).text("to", one.to);
    readLink(inner, one.link);
    inner.finish();
    manifest.overrides.push_back(one);
  }
  reader.finish();
}

/// What cannot be said a key at a time.
static std::string findContradiction(const Manifest &manifest) {
  if (manifest.nodes.empty() || manifest.ranks.empty())
    return "a job has at least one node and one rank";
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < manifest.nodes.size(); ++i)
    if (!names.emplace(manifest.nodes[i].name, i).second)
      return "nodes[" + std::to_string(i) + "]: the name \"" +
             manifest.nodes[i].name + "\" stands twice";
  for (uint32_t i = 0; i < manifest.ranks.size(); ++i) {
    const ManifestRank &rank = manifest.ranks[i];
    std::string where = "ranks[" + std::to_string(i) + "]";
    if (rank.node >= manifest.nodes.size())
      return where + ".node: " + std::to_string(rank.node) +
             ", but there are " + std::to_string(manifest.nodes.size()) +
             " nodes";
    if (i && rank.node < manifest.ranks[i - 1].node)
      return where + ".node: ranks are in the order of their nodes";
    if (i && rank.node == manifest.ranks[i - 1].node &&
        rank.device <= manifest.ranks[i - 1].device)
      return where + ".device: " + std::to_string(rank.device) + " after " +
             std::to_string(manifest.ranks[i - 1].device) +
             ", but devices ascend within a node";
  }
  for (uint32_t i = 0; i < manifest.nodes.size(); ++i)
    if (!manifest.rankCount(i))
      return "nodes[" + std::to_string(i) + "] (" + manifest.nodes[i].name +
             "): no rank is on it";
  return "";
}

bool autohet::runtime::parseManifest(std::string_view text, Manifest &manifest,
                                     std::string &error) {
  Json root;
  error.clear();
  if (!parseJson(text, root, error))
    return false;
  manifest = Manifest();
  Reader reader(root, "manifest", error);
  uint64_t format = 0;
  reader.count("format", format);
  if (error.empty() && format != 1)
    error = "manifest.format: found " + std::to_string(format) +
            ", this version reads 1";
  reader.text("name", manifest.name)
      .text("structure_hash", manifest.structure_hash)
      .text("plan_hash", manifest.plan_hash)
      .text("program_hash", manifest.program_hash)
      .text("weights_index", manifest.weights_index)
      .count("global_batch", manifest.global_batch, false)
      .text("optimizer", manifest.optimizer, false);
  auto list = [&](const char *key, bool required, auto &out, auto read) {
    const Json *values = reader.get(key, Json::Array, required);
    for (size_t i = 0; values && i < values->items.size(); ++i) {
      out.emplace_back();
      read(values->items[i], std::string(key) + "[" + std::to_string(i) + "]",
           out.back(), error);
    }
  };
  list("nodes", true, manifest.nodes, readNode);
  list("ranks", true, manifest.ranks, readRank);
  list("cluster_devices", false, manifest.clusterDevices, readDevice);
  if (const Json *links = reader.get("links", Json::Object, false))
    readLinks(*links, manifest, error);
  if (!reader.finish())
    return false;
  error = findContradiction(manifest);
  return error.empty();
}

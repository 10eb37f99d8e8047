//===- ClusterFile.cpp - reads cluster.yaml -------------------------------===//
//
// The schema is docs/formats/cluster.md. Zero, negative and endless numbers are
// errors here, so that nothing behind has to ask; legal numbers that are hardly
// meant are warnings that show how they were read.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/Names.h"
#include "autohet/Cluster/SailorCluster.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

namespace autohet {
namespace {

// Outside these a number is more likely a wrong unit than a machine.
struct PlausibleRange {
  Dimension dimension;
  double low, high;
};
const PlausibleRange plausibleMemory = {Dimension::Bytes, 0x1p20, 0x1p45};
const PlausibleRange plausibleFlops = {Dimension::FlopsPerSecond, 1e6, 1e17};
const PlausibleRange plausibleBandwidth = {Dimension::BytesPerSecond, 1e4,
                                           1e14};
const PlausibleRange plausibleTime = {Dimension::Seconds, 0, 1};
const PlausibleRange plausibleSpeed = {Dimension::None, 0.01, 1e4};
// So many times outside it is no machine's, whatever the unit: refused as 0 is.
// Planning divides by such numbers, and multiplies with them.
constexpr double impossibleFactor = 1e6;
// Files have given it for one of the model's units, which are some ten commands
// each.
constexpr double overheadOfUnits_s = 10e-6;
const PlausibleRange plausiblePrice = {Dimension::DollarsPerHour, 1e-3, 1e3};

// What a kind without `flops` computes at relative speed 1.
constexpr double defaultFlops = 100e9;

// Of one device.
constexpr int64_t mostThreads = 4096;

std::string assumedLink(llvm::StringRef file, llvm::StringRef key,
                        const Link &link, llvm::StringRef between) {
  return (file + ": remark: there is no 'links." + key + "': " +
          formatQuantity(link.bandwidth_bytes_per_s,
                         Dimension::BytesPerSecond) +
          " and " + formatQuantity(link.latency_s, Dimension::Seconds) +
          " are assumed between " + between)
      .str();
}

class ClusterReader {
public:
  ClusterReader(llvm::StringRef file, std::vector<std::string> &warnings)
      : file(file), errors(file), warnings(warnings) {}

  llvm::Expected<Cluster> read(const Tree &tree, bool kindsOnly) {
    MappingReader reader(tree, "a cluster file", errors);
    reader.requireFormat(1);
    if (const Tree *kinds = reader.get("kinds"))
      readKinds(*kinds);
    for (const Tree &node : reader.items("nodes", !kindsOnly))
      readNode(node);
    if (const Tree *links = reader.get("links"))
      readLinks(*links);
    reader.finish();
    setSpeeds();
    sayAssumedLinks(kindsOnly);
    if (errors.empty() && !kindsOnly && cluster.nodes.empty())
      errors.add(tree.location, "a cluster needs at least one node");
    if (llvm::Error error = errors.take())
      return error;
    return std::move(cluster);
  }

private:
  void readKinds(const Tree &tree) {
    if (tree.kind != Tree::Kind::Mapping)
      return errors.add(tree.location,
                        "'kinds' must map names to device kinds, found " +
                            tree.describe());
    for (const Tree::Entry &entry : tree.entries)
      readKind(entry);
  }

  void readKind(const Tree::Entry &entry) {
    std::optional<DeviceKind> known = findKnownKind(entry.key);
    if (std::string problem = findTextProblem(entry.key); !problem.empty())
      return errors.add(entry.location, "'" + entry.key +
                                            "' cannot name a device kind: it " +
                                            problem);
    DeviceKind kind = known.value_or(DeviceKind());
    kind.name = entry.key;
    std::string what = "device kind '" + entry.key + "'";
    MappingReader reader(entry.value, what, errors);
    positive(reader, "memory", kind.memory_bytes, plausibleMemory, !known,
             what);
    bool hasFlops = positive(reader, "flops", kind.flops_per_s, plausibleFlops,
                             false, what);
    if (hasFlops)
      kind.source.clear();
    positive(reader, "flops_bf16", kind.flops_bf16_per_s, plausibleFlops, false,
             what);
    positive(reader, "flops_fp16", kind.flops_fp16_per_s, plausibleFlops, false,
             what);
    positive(reader, "attention_flops", kind.attention_flops_per_s,
             plausibleFlops, false, what);
    positive(reader, "elementwise_flops", kind.elementwise_flops_per_s,
             plausibleFlops, false, what);
    positive(reader, "memory_bandwidth", kind.memory_bandwidth_bytes_per_s,
             plausibleBandwidth, false, what);
    positive(reader, "host_bandwidth", kind.host_bandwidth_bytes_per_s,
             plausibleBandwidth, false, what);
    positive(reader, "price", kind.usd_per_hour, plausiblePrice, false, what);
    if (reader.optional("overhead", kind.overhead_s, Dimension::Seconds) &&
        kind.overhead_s >= overheadOfUnits_s)
      warn(*entry.value.find("overhead"), "overhead", what,
           formatQuantity(kind.overhead_s, Dimension::Seconds) +
               " to start each kernel and each product: is it meant for a "
               "whole unit of the model?");
    if (positive(reader, "relative_speed", kind.relative_speed, plausibleSpeed,
                 false, what))
      withSpeed.insert(kind.name);
    if (reader.optional("threads", kind.threads, 1) &&
        kind.threads > mostThreads)
      errors.add(entry.value.find("threads")->location,
                 "'threads' of " + what + " must be at most " +
                     llvm::Twine(mostThreads) + ", found " +
                     llvm::Twine(kind.threads));
    if (const Tree *target = reader.get("target"))
      readTarget(*target, what, kind.target);
    reader.finish();
    if (!hasFlops && !known)
      kind.flops_per_s = defaultFlops * kind.relative_speed;
    cluster.addKind(std::move(kind));
  }

  /// Relative speeds that nobody gave are those of the flops: what is emulated
  /// is what is planned for.
  void setSpeeds() {
    double speedOfFlops = 1 / defaultFlops;
    for (const DeviceKind &kind : cluster.kinds)
      if (withSpeed.contains(kind.name) && kind.relative_speed > 0) {
        speedOfFlops = kind.relative_speed / kind.flops_per_s;
        break;
      }
    for (DeviceKind &kind : cluster.kinds)
      if (!withSpeed.contains(kind.name))
        kind.relative_speed = kind.flops_per_s * speedOfFlops;
  }

  /// Plans rest on links: those that nobody gave are named. Of a file without
  /// nodes, those are elsewhere.
  void sayAssumedLinks(bool kindsOnly) {
    bool needsInside =
        kindsOnly || llvm::any_of(cluster.nodes, [](const Node &node) {
          return node.device_count > 1 && !node.inside;
        });
    if (needsInside && !hasInside)
      warnings.push_back(assumedLink(file, "intra_node", cluster.intra_node,
                                     "two devices of a node"));
    if ((kindsOnly || cluster.nodes.size() > 1) && !hasBetween)
      warnings.push_back(
          assumedLink(file, "inter_node", cluster.inter_node, "two nodes"));
  }

  void readTarget(const Tree &tree, const llvm::Twine &kind, Target &target) {
    MappingReader reader(tree, "the target of " + kind, errors);
    reader.optional("triple", target.triple);
    reader.optional("features", target.features);
    reader.finish();
  }

  void readNode(const Tree &tree) {
    std::string name, address;
    int64_t count = 1;
    Node facts;
    MappingReader reader(tree, "a node", errors);
    bool isNamed = reader.required("name", name);
    bool hasAddress = reader.optional("address", address);
    bool isMany = reader.optional("count", count, 1);
    std::vector<unsigned> devices;
    for (const Tree &item : reader.items("devices", true))
      readDevice(item, devices);
    positive(reader, "nic", facts.nic_bytes_per_s, plausibleBandwidth, false,
             "node '" + name + "'");
    if (const Tree *link = reader.get("link"))
      readLink(*link, "the link within node '" + name + "'",
               facts.inside.emplace());
    reader.finish();
    if (!isNamed)
      return;
    if (name.empty())
      return errors.add(tree.find("name")->location, "a node's name is empty");
    if (std::string problem = findNodeNameProblem(name); !problem.empty())
      return errors.add(tree.find("name")->location,
                        "'" + name + "' cannot name a node: it " + problem);
    if (std::string problem =
            hasAddress ? findAddressProblem(address) : std::string();
        !problem.empty())
      return errors.add(tree.find("address")->location,
                        "'" + address + "' cannot be the address of node '" +
                            name + "': it " + problem);
    if (isMany && hasAddress)
      return errors.add(tree.find("address")->location,
                        "the " + llvm::Twine(count) + " nodes '" + name +
                            "-0' and so on cannot have one address");
    if (devices.empty() && errors.empty())
      return errors.add(tree.location, "node '" + name + "' has no devices");
    if (cluster.devices().size() + uint64_t(count) * devices.size() >
        kMostDevices)
      return errors.add(tree.location,
                        "more than " + llvm::Twine(kMostDevices) + " devices");
    for (int64_t index = 0; index < count; ++index)
      addNode(tree, isMany ? name + "-" + std::to_string(index) : name, address,
              devices, facts);
  }

  void addNode(const Tree &tree, const std::string &name,
               const std::string &address, llvm::ArrayRef<unsigned> devices,
               const Node &facts) {
    if (!names.insert(name).second)
      return errors.add(tree.find("name")->location,
                        "node '" + name + "' is given twice");
    Node &node = cluster.nodes[cluster.addNode(name, address, devices)];
    node.nic_bytes_per_s = facts.nic_bytes_per_s;
    node.inside = facts.inside;
  }

  // `fast`, or `{kind: fast, count: 4}`.
  void readDevice(const Tree &tree, std::vector<unsigned> &devices) {
    std::string name;
    int64_t count = 1;
    if (tree.kind == Tree::Kind::Mapping) {
      MappingReader reader(tree, "a device", errors);
      reader.required("kind", name);
      reader.optional("count", count, 1);
      reader.finish();
    } else if (!readString(tree, "a device", name, errors)) {
      return;
    }
    if (name.empty())
      return;
    if (count > int64_t(kMostDevices))
      return errors.add(tree.location,
                        "more than " + llvm::Twine(kMostDevices) + " devices");
    std::optional<unsigned> kind = cluster.findKind(name);
    if (!kind)
      if (std::optional<DeviceKind> known = findKnownKind(name))
        kind = cluster.addKind(std::move(*known));
    if (kind) {
      devices.insert(devices.end(), count, *kind);
      return;
    }
    std::vector<llvm::StringRef> inFile;
    for (const DeviceKind &candidate : cluster.kinds)
      inFile.push_back(candidate.name);
    errors.add(tree.location,
               "unknown device kind '" + name + "'; " +
                   (inFile.empty()
                        ? std::string()
                        : "known kinds: " + llvm::join(inFile, ", ") + "; ") +
                   "known without being described: " +
                   llvm::join(knownKindNames(), ", "));
  }

  void readLinks(const Tree &tree) {
    MappingReader reader(tree, "'links'", errors);
    if (const Tree *link = reader.get("intra_node")) {
      readLink(*link, "the intra-node link", cluster.intra_node);
      hasInside = true;
    }
    if (const Tree *link = reader.get("inter_node")) {
      readLink(*link, "the inter-node link", cluster.inter_node);
      hasBetween = true;
    }
    for (const Tree &item : reader.items("overrides", false)) {
      MappingReader entry(item, "a link override", errors);
      LinkOverride link;
      bool isNamed = entry.required("from", link.from);
      isNamed &= entry.required("to", link.to);
      readRates(entry, item, "a link override", link.link);
      entry.finish();
      if (isNamed) {
        checkPattern(item, "from", link.from);
        checkPattern(item, "to", link.to);
      }
      cluster.overrides.push_back(std::move(link));
    }
    reader.finish();
  }

  void readLink(const Tree &tree, llvm::StringRef what, Link &link) {
    MappingReader reader(tree, what, errors);
    readRates(reader, tree, what, link);
    reader.finish();
  }

  void readRates(MappingReader &reader, const Tree &tree, llvm::StringRef what,
                 Link &link) {
    positive(reader, "bandwidth", link.bandwidth_bytes_per_s,
             plausibleBandwidth, true, what.str());
    if (reader.required("latency", link.latency_s, Dimension::Seconds))
      warnIfAbsurd(tree, "latency", link.latency_s, plausibleTime, what.str());
  }

  // A pattern that matches nothing is a typing error, not an empty rule.
  void checkPattern(const Tree &tree, llvm::StringRef key,
                    llvm::StringRef pattern) {
    for (unsigned device = 0; device < cluster.devices().size(); ++device)
      if (matchesDevice(pattern, cluster, device))
        return;
    if (!cluster.nodes.empty())
      errors.add(tree.find(key)->location,
                 "no device matches '" + pattern + "'");
  }

  bool positive(MappingReader &reader, llvm::StringRef key, double &value,
                const PlausibleRange &range, bool isRequired,
                const std::string &what) {
    const Tree *found = isRequired ? reader.require(key) : reader.get(key);
    if (!found || !readQuantity(*found, "'" + key + "' of " + what,
                                range.dimension, value, errors))
      return false;
    if (value == 0) {
      errors.add(found->location,
                 "'" + key + "' of " + what + " must be above 0");
      return false;
    }
    return isPossible(*found, key, value, range, what);
  }

  /// Warns of what is not plausible.
  bool isPossible(const Tree &tree, llvm::StringRef key, double value,
                  const PlausibleRange &range, const std::string &what) {
    if (value >= range.low / impossibleFactor &&
        value <= range.high * impossibleFactor) {
      warn(tree, key, value, range, what);
      return true;
    }
    errors.add(tree.location, "'" + key + "' of " + what +
                                  " is far from what machines have: wanted " +
                                  formatQuantity(range.low, range.dimension) +
                                  " to " +
                                  formatQuantity(range.high, range.dimension));
    return false;
  }

  void warnIfAbsurd(const Tree &tree, llvm::StringRef key, double value,
                    const PlausibleRange &range, const std::string &what) {
    isPossible(*tree.find(key), key, value, range, what);
  }

  void warn(const Tree &tree, llvm::StringRef key, double value,
            const PlausibleRange &range, const std::string &what) {
    if (value < range.low || value > range.high)
      warn(tree, key, what,
           formatQuantity(value, range.dimension) + ": is the unit right?");
  }

  void warn(const Tree &tree, llvm::StringRef key, const std::string &what,
            const std::string &reading) {
    warnings.push_back((file + ":" + llvm::Twine(tree.location.line) + ":" +
                        llvm::Twine(tree.location.column) + ": warning: '" +
                        key + "' of " + what + " reads as " + reading)
                           .str());
  }

  std::string file;
  ErrorList errors;
  std::vector<std::string> &warnings;
  llvm::StringSet<> names;     ///< of nodes
  llvm::StringSet<> withSpeed; ///< kinds whose relative speed is given
  bool hasInside = false, hasBetween = false; ///< links that are given
  Cluster cluster;
};

} // namespace

llvm::Expected<Cluster> parseCluster(llvm::StringRef text, llvm::StringRef file,
                                     std::vector<std::string> &warnings,
                                     bool kindsOnly) {
  llvm::Expected<Tree> tree = parseYaml(text, file);
  if (!tree)
    return tree.takeError();
  if (!isSailorCluster(*tree))
    return ClusterReader(file, warnings).read(*tree, kindsOnly);
  ErrorList errors(file);
  SailorMachines machines = readSailorMachines(*tree, file, errors);
  if (llvm::Error error = errors.take())
    return error;
  return clusterOfSailor(machines, warnings, kindsOnly);
}

llvm::Expected<Cluster> loadCluster(llvm::StringRef path,
                                    std::vector<std::string> &warnings,
                                    bool kindsOnly) {
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return text.takeError();
  return parseCluster(*text, path, warnings, kindsOnly);
}

} // namespace autohet

//===- SailorCluster.cpp - reads Sailor's cluster file and quotas ---------===//
//
// The schema is docs/formats/cluster.md. Neither file has a version, so they
// are told from ours by their shape.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/SailorCluster.h"
#include "autohet/Cluster/Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace autohet {

static constexpr llvm::StringLiteral zoneKey = "zone";

const SailorKind *SailorMachines::find(llvm::StringRef name) const {
  auto found = llvm::find_if(
      kinds, [&](const SailorKind &kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

bool isSailorCluster(const Tree &tree) {
  return !tree.find("format") &&
         llvm::any_of(tree.entries, [](const Tree::Entry &entry) {
           return entry.value.find("gpus_per_node") ||
                  entry.value.find("mem_per_gpu");
         });
}

SailorMachines readSailorMachines(const Tree &tree, llvm::StringRef file,
                                  ErrorList &errors) {
  SailorMachines machines;
  machines.file = file.str();
  if (tree.kind != Tree::Kind::Mapping)
    errors.add(tree.location,
               "the cluster must be a mapping, found " + tree.describe());
  for (const Tree::Entry &entry : tree.entries) {
    if (entry.key == zoneKey) {
      readString(entry.value, "'zone'", machines.zone, errors);
      continue;
    }
    SailorKind kind;
    kind.name = entry.key;
    kind.location = entry.location;
    MappingReader reader(entry.value, "a device kind", errors);
    reader.required("gpus_per_node", kind.gpus_per_node, 1);
    if (const Tree *memory = reader.require("mem_per_gpu"))
      if (readNumber(*memory, "'mem_per_gpu'", kind.memory_bytes, errors) &&
          kind.memory_bytes <= 0)
        errors.add(memory->location, "'mem_per_gpu' must be above 0 bytes");
    reader.finish();
    machines.kinds.push_back(std::move(kind));
  }
  return machines;
}

/// With the rates of a known kind; none where unknown.
static std::optional<DeviceKind> deviceKindOf(const SailorKind &kind) {
  // Of its 2080s with 11 GiB, which are the Ti.
  std::optional<DeviceKind> known =
      findKnownKind(kind.name == "RTX-2080" ? "RTX-2080Ti" : kind.name);
  if (known) {
    known->name = kind.name;
    known->memory_bytes = kind.memory_bytes;
  }
  return known;
}

namespace {

/// Adds nodes of Sailor's kinds to a cluster.
class NodeMaker {
public:
  NodeMaker(const SailorMachines &machines, std::vector<std::string> &warnings)
      : machines(machines), warnings(warnings), errors(machines.file) {}

  /// In nodes of the kind's size; wrong names are said to stand at `location`
  /// of `where`, the kind's own mistakes where it is described.
  void add(const SailorKind &kind, llvm::StringRef zone, int64_t gpus,
           ErrorList &where, TextLocation location) {
    std::string name = (zone + (zone.empty() ? "" : "-") + kind.name).str();
    if (std::string problem = findNodeNameProblem(name); !problem.empty())
      return where.add(location,
                       "'" + name + "' cannot name a node: it " + problem);
    std::optional<unsigned> number = numberOf(kind);
    if (!number)
      return;
    if (gpus > static_cast<int64_t>(kMostDevices - cluster.devices().size()))
      return where.add(location,
                       "more than " + llvm::Twine(kMostDevices) + " devices");
    for (int64_t index = 0; gpus > 0; ++index) {
      int64_t here = std::min(gpus, kind.gpus_per_node);
      std::string node = name + "-" + std::to_string(index);
      if (cluster.findNode(node))
        return where.add(location, "two nodes would be called '" + node + "'");
      cluster.addNode(node, "", std::vector<unsigned>(here, *number));
      gpus -= here;
    }
  }

  llvm::Expected<Cluster> take() {
    if (llvm::Error error = errors.take())
      return error;
    if (cluster.nodes.empty())
      return makeError(machines.file, {}, "there are no devices");
    warnings.push_back(machines.file +
                       ":1:1: warning: Sailor's files have no links here: " +
                       cluster.describeLinks() + " are assumed");
    return std::move(cluster);
  }

private:
  std::optional<unsigned> numberOf(const SailorKind &kind) {
    if (std::optional<unsigned> known = cluster.findKind(kind.name))
      return known;
    std::optional<DeviceKind> known = deviceKindOf(kind);
    if (!known) {
      errors.add(kind.location,
                 "nothing is known of the rates of '" + kind.name +
                     "'; known kinds: " + llvm::join(knownKindNames(), ", "));
      return std::nullopt;
    }
    return cluster.addKind(std::move(*known));
  }

  const SailorMachines &machines;
  std::vector<std::string> &warnings;
  ErrorList errors;
  Cluster cluster;
};

} // namespace

llvm::Expected<Cluster> clusterOfSailor(const SailorMachines &machines,
                                        std::vector<std::string> &warnings,
                                        bool kindsOnly) {
  if (kindsOnly) {
    Cluster cluster;
    for (const SailorKind &kind : machines.kinds)
      if (std::optional<DeviceKind> known = deviceKindOf(kind))
        cluster.addKind(std::move(*known));
    return std::move(cluster);
  }
  NodeMaker nodes(machines, warnings);
  ErrorList errors(machines.file);
  for (const SailorKind &kind : machines.kinds)
    nodes.add(kind, machines.zone, kind.gpus_per_node, errors, kind.location);
  if (llvm::Error error = errors.take())
    return error;
  warnings.push_back(
      machines.file +
      ":1:1: warning: says nothing of how many nodes there are: one "
      "of each kind is taken; name Sailor's quotas with "
      "--hostfile");
  return nodes.take();
}

bool isSailorQuotas(llvm::StringRef text) {
  return text.ltrim().starts_with("{");
}

llvm::Expected<Cluster> parseSailorQuotas(llvm::StringRef text,
                                          llvm::StringRef file,
                                          const SailorMachines &machines,
                                          std::vector<std::string> &warnings) {
  llvm::Expected<Tree> tree = parseJson(text, file);
  if (!tree)
    return tree.takeError();
  NodeMaker nodes(machines, warnings);
  ErrorList errors(file);
  if (tree->kind != Tree::Kind::Mapping)
    errors.add(tree->location,
               "quotas must map kinds to zones, found " + tree->describe());
  for (const Tree::Entry &entry : tree->entries) {
    const SailorKind *kind = machines.find(entry.key);
    if (!kind) {
      std::vector<llvm::StringRef> known;
      for (const SailorKind &candidate : machines.kinds)
        known.push_back(candidate.name);
      errors.add(entry.location, "unknown device kind '" + entry.key + "'; " +
                                     machines.file +
                                     " has: " + llvm::join(known, ", "));
      continue;
    }
    if (entry.value.kind != Tree::Kind::Mapping)
      errors.add(entry.value.location, "a kind's quotas must map zones to "
                                       "numbers of devices, found " +
                                           entry.value.describe());
    for (const Tree::Entry &zone : entry.value.entries) {
      int64_t gpus = 0;
      if (readInteger(zone.value, "the quota in '" + zone.key + "'", gpus,
                      errors))
        nodes.add(*kind, zone.key, gpus, errors, zone.location);
    }
  }
  if (llvm::Error error = errors.take())
    return error;
  return nodes.take();
}

llvm::Expected<Cluster> parseSailorQuotas(llvm::StringRef text,
                                          llvm::StringRef file,
                                          llvm::StringRef machinesFile,
                                          std::vector<std::string> &warnings) {
  auto refuse = [&](llvm::StringRef found) {
    return makeError(file, {1, 1},
                     "these are Sailor's quotas; how many devices a node has "
                     "is in its cluster file, to be named with --cluster: " +
                         found);
  };
  if (machinesFile.empty())
    return refuse("none is");
  llvm::Expected<std::string> machinesText = readTextFile(machinesFile);
  if (!machinesText)
    return machinesText.takeError();
  llvm::Expected<Tree> tree = parseYaml(*machinesText, machinesFile);
  if (!tree)
    return tree.takeError();
  if (!isSailorCluster(*tree))
    return refuse(("found '" + machinesFile + "', which is none").str());
  ErrorList errors(machinesFile);
  SailorMachines machines = readSailorMachines(*tree, machinesFile, errors);
  if (llvm::Error error = errors.take())
    return error;
  return parseSailorQuotas(text, file, machines, warnings);
}

} // namespace autohet

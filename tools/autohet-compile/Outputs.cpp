//===- Outputs.cpp - the files of a compiled job ----------------------------===//

#include "Outputs.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Support/Hash.h"

#include "data/Checksum.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <set>
#include <unistd.h>

using namespace mlir;
using namespace autohet;

namespace json = llvm::json;

std::vector<const cpu::TargetOptions *>
ManifestFacts::targetsOf(unsigned node) const {
  std::vector<const cpu::TargetOptions *> found;
  for (const RankPlace &place : ranks)
    if (place.node == node)
      found.push_back(
          &targets->find(exec::ProgramOp(place.program).getSymName())->second);
  return found;
}

/// What a node's machine must have: one CPU runs the code of all its devices.
static json::Object targetObject(const ManifestFacts &facts, unsigned node) {
  std::set<std::string> features;
  std::vector<const cpu::TargetOptions *> targets = facts.targetsOf(node);
  for (const cpu::TargetOptions *target : targets)
    for (const std::string &feature : cpu::requiredFeatures(*target))
      features.insert(feature);
  return json::Object{{"triple", targets.front()->triple},
                      {"features", json::Array(features)}};
}

std::string autohet::formatManifest(const ManifestFacts &facts) {
  const Cluster *cluster = facts.cluster;
  json::Array nodes, ranks;
  for (auto [i, name] : llvm::enumerate(facts.nodeNames)) {
    json::Object node{{"name", name},
                      {"executable", "node" + std::to_string(i)},
                      {"target", targetObject(facts, i)}};
    if (std::optional<unsigned> known = cluster->findNode(name))
      if (!cluster->nodes[*known].address.empty())
        node["address"] = cluster->nodes[*known].address;
    nodes.push_back(std::move(node));
  }
  for (const RankPlace &place : facts.ranks) {
    exec::ProgramOp program = place.program;
    json::Object rank{{"node", place.node},
                      {"device", place.device},
                      {"replica", int64_t(program.getReplica())},
                      {"stage", int64_t(program.getStage())},
                      {"memory_bytes", program.getTotalBytes()}};
    const DeviceKind &kind = cluster->kindOf(place.clusterDevice);
    rank["kind"] = kind.name;
    rank["threads"] = kind.threads;
    rank["relative_speed"] = kind.relative_speed;
    ranks.push_back(std::move(rank));
  }
  json::Array devices;
  for (unsigned device = 0; device < cluster->devices().size(); ++device) {
    const DeviceKind &kind = cluster->kindOf(device);
    devices.push_back(json::Object{{"threads", kind.threads},
                                   {"relative_speed", kind.relative_speed}});
  }
  auto linkObject = [](const Link &link) {
    return json::Object{{"bandwidth_bytes_per_s", link.bandwidth_bytes_per_s},
                        {"latency_s", link.latency_s}};
  };
  json::Array overrides;
  for (const LinkOverride &entry : cluster->overrides) {
    json::Object link = linkObject(entry.link);
    link["from"] = entry.from;
    link["to"] = entry.to;
    overrides.push_back(std::move(link));
  }
  json::Object links{{"intra_node", linkObject(cluster->intra_node)},
                     {"inter_node", linkObject(cluster->inter_node)},
                     {"overrides", std::move(overrides)}};
  json::Object manifest{{"format", 1},
                        {"name", facts.name},
                        {"structure_hash", formatHash(facts.structureHash)},
                        {"plan_hash", formatHash(facts.planHash)},
                        {"program_hash", formatHash(facts.programHash)},
                        {"weights_index", "weights.index"},
                        {"global_batch", facts.globalBatch},
                        {"optimizer", facts.optimizer},
                        {"nodes", std::move(nodes)},
                        {"ranks", std::move(ranks)},
                        {"cluster_devices", std::move(devices)},
                        {"links", std::move(links)}};
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", json::Value(std::move(manifest))) << "\n";
  return text;
}

static StringRef dtypeName(Type type) {
  if (type.isF32())
    return "float32";
  if (type.isF64())
    return "float64";
  if (type.isF16())
    return "float16";
  if (type.isBF16())
    return "bfloat16";
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(8))
    return "int8";
  if (type.isInteger(16))
    return "int16";
  if (type.isInteger(32))
    return "int32";
  return "int64";
}

/// Of `bytes` bytes of an open file from `offset` on. They are read piece by
/// piece: models may be larger than memory.
static llvm::Expected<uint64_t> checksumOf(llvm::sys::fs::file_t file,
                                           uint64_t offset, uint64_t bytes) {
  constexpr uint64_t pieceBytes = 1 << 20;
  std::vector<char> piece(std::min(bytes, pieceBytes));
  runtime::Checksum checksum;
  while (bytes) {
    llvm::Expected<size_t> count = llvm::sys::fs::readNativeFileSlice(
        file, MutableArrayRef(piece).take_front(bytes), offset);
    if (!count)
      return count.takeError();
    if (*count == 0)
      return llvm::createStringError("it has become shorter");
    checksum.add(piece.data(), *count);
    offset += *count;
    bytes -= *count;
  }
  return checksum.get();
}

namespace {

/// The files of the weights, each opened once.
class WeightFiles {
public:
  ~WeightFiles() {
    for (auto &entry : files)
      llvm::sys::fs::closeFile(entry.second);
  }

  llvm::Expected<uint64_t> checksum(StringRef path, uint64_t offset,
                                    uint64_t bytes) {
    auto known = files.find(path);
    if (known == files.end()) {
      llvm::Expected<llvm::sys::fs::file_t> opened =
          llvm::sys::fs::openNativeFileForRead(path);
      if (!opened)
        return opened.takeError();
      known = files.try_emplace(path, *opened).first;
    }
    return checksumOf(known->second, offset, bytes);
  }

private:
  llvm::StringMap<llvm::sys::fs::file_t> files;
};

} // namespace

llvm::Expected<std::string>
autohet::formatWeightsIndex(ModuleOp module, uint64_t structureHash,
                            const llvm::StringSet<> &trained) {
  json::Array tensors;
  json::Object aliases;
  WeightFiles files;
  for (auto source : module.getOps<het::WeightSourceOp>()) {
    RankedTensorType stored = source.getStoredType();
    SmallVector<int64_t> shape(stored.getShape());
    if (source.getTransposed())
      std::reverse(shape.begin(), shape.end());
    SmallVector<StringRef> names = source.getAllNames();
    for (StringRef alias : ArrayRef(names).drop_front())
      aliases[alias] = source.getName();
    bool isTrained = trained.contains(source.getName());
    // A parameter all the same: it belongs into what is saved.
    bool isFrozen = !source.getUntrained() && !isTrained;
    if (source.getFile().empty()) {
      tensors.push_back(
          json::Object{{"name", source.getName()},
                       {"dtype", dtypeName(stored.getElementType())},
                       {"shape", json::Array(shape)},
                       {"trained", isTrained},
                       {"frozen", isFrozen}});
      continue;
    }
    llvm::SmallString<256> path(source.getFile());
    llvm::sys::fs::make_absolute(path);
    llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
    if (!json::isUTF8(path))
      return llvm::createStringError("weights.index cannot name '" + path +
                                     "': it is not UTF-8 text");
    uint64_t offset = source.getOffset(), bytes = exec::sizeInBytes(stored);
    llvm::Expected<uint64_t> checksum = files.checksum(path, offset, bytes);
    if (!checksum)
      return llvm::createStringError(
          "cannot read " + source.getName() + " of '" + path +
          "': " + llvm::toString(checksum.takeError()));
    tensors.push_back(json::Object{
        {"name", source.getName()},
        {"file", std::string(path)},
        {"offset", int64_t(offset)},
        {"bytes", int64_t(bytes)},
        {"checksum", "xxh64:" + formatHash(*checksum)},
        {"dtype", dtypeName(stored.getElementType())},
        {"shape", json::Array(shape)},
        {"transform", source.getTransposed() ? "transpose" : "none"},
        {"trained", isTrained},
        {"frozen", isFrozen}});
  }
  json::Object index{{"format", "autohet-weights"},
                     {"version", 1},
                     {"structure_hash", formatHash(structureHash)},
                     {"tensors", std::move(tensors)},
                     {"aliases", std::move(aliases)}};
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", json::Value(std::move(index))) << "\n";
  return text;
}

llvm::Expected<std::string>
autohet::formatPrograms(ModuleOp programs, const ClusterSource &machines) {
  // All of it: links and devices have their numbers in the whole.
  ClusterSource whole = machines;
  whole.include.clear();
  std::vector<std::string> warnings;
  llvm::Expected<Cluster> cluster = loadCluster(whole, warnings);
  if (!cluster)
    return cluster.takeError();
  OwningOpRef<ModuleOp> copy = programs.clone();
  (*copy)->setAttr(
      dist::kClusterAttr,
      StringAttr::get(copy->getContext(), formatCluster(*cluster)));
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(writeBytecodeToFile(*copy, os)))
    return llvm::createStringError("the programs cannot be written");
  return text;
}

llvm::Error autohet::writeFile(StringRef path, StringRef text) {
  auto fail = [&](const llvm::Twine &what, std::error_code code) {
    return llvm::createStringError(code, what + ": " + code.message());
  };
  llvm::SmallString<256> temporary(path);
  temporary += ".tmp";
  int fd;
  if (std::error_code code = llvm::sys::fs::openFileForWrite(temporary, fd))
    return fail("cannot write " + temporary, code);
  {
    llvm::raw_fd_ostream stream(fd, /*shouldClose=*/true);
    stream << text;
    stream.flush();
    ::fsync(fd);
    if (stream.has_error()) {
      std::error_code code = stream.error();
      stream.clear_error();
      stream.close();
      llvm::sys::fs::remove(temporary);
      return fail("cannot write " + path, code);
    }
  }
  if (std::error_code code = llvm::sys::fs::rename(temporary, path))
    return fail("cannot write " + path, code);
  return llvm::Error::success();
}

//===- Outputs.cpp - the files of a compiled job ----------------------------===//

#include "Outputs.h"

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Support/Hash.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace mlir;
using namespace autohet;

namespace json = llvm::json;

/// "+avx2,+fma" -> [avx2, fma].
static json::Array featureList(StringRef features) {
  json::Array list;
  SmallVector<StringRef> parts;
  features.split(parts, ',', -1, false);
  for (StringRef part : parts)
    if (part.consume_front("+"))
      list.push_back(part.str());
  return list;
}

std::string autohet::formatManifest(const ManifestFacts &facts) {
  const Cluster *cluster = facts.cluster;
  json::Array nodes, ranks;
  llvm::StringMap<unsigned> nodeIndex;
  for (auto [i, name] : llvm::enumerate(facts.nodeNames)) {
    nodeIndex[name] = i;
    json::Object node{
        {"name", name},
        {"executable", "node" + std::to_string(i)},
        {"target",
         json::Object{{"triple", facts.target.triple},
                      {"features", featureList(facts.target.features)}}}};
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
    if (place.clusterDevice) {
      const DeviceKind &kind = cluster->kindOf(*place.clusterDevice);
      rank["kind"] = kind.name;
      rank["threads"] = kind.threads;
      rank["relative_speed"] = kind.relative_speed;
    }
    ranks.push_back(std::move(rank));
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
                        {"nodes", std::move(nodes)},
                        {"ranks", std::move(ranks)},
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

std::string autohet::formatWeightsIndex(ModuleOp module, uint64_t structureHash,
                                        const llvm::StringSet<> &trained) {
  json::Array tensors;
  for (auto source : module.getOps<het::WeightSourceOp>()) {
    RankedTensorType stored = source.getStoredType();
    SmallVector<int64_t> shape(stored.getShape());
    if (source.getTransposed())
      std::reverse(shape.begin(), shape.end());
    llvm::SmallString<256> path(source.getFile());
    llvm::sys::fs::make_absolute(path);
    llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
    tensors.push_back(json::Object{
        {"name", source.getName()},
        {"file", std::string(path)},
        {"offset", int64_t(source.getOffset())},
        {"bytes", exec::sizeInBytes(stored)},
        {"dtype", dtypeName(stored.getElementType())},
        {"shape", json::Array(shape)},
        {"transform", source.getTransposed() ? "transpose" : "none"},
        {"trained", trained.contains(source.getName())}});
  }
  json::Object index{{"format", "autohet-weights"},
                     {"version", 1},
                     {"structure_hash", formatHash(structureHash)},
                     {"tensors", std::move(tensors)}};
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", json::Value(std::move(index))) << "\n";
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

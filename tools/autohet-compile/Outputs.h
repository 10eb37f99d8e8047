//===- Outputs.h - the files of a compiled job -----------------*- C++ -*-===//
//
// The one writer of manifest.json and weights.index; docs/formats describes
// both, the runtime reads them.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_COMPILE_OUTPUTS_H
#define AUTOHET_TOOLS_COMPILE_OUTPUTS_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Target/CPU/TargetOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace autohet {

/// Node and device of each rank, in the order of ranks.
struct RankPlace {
  exec::ProgramOp program;
  unsigned node;          ///< among the nodes that take part
  unsigned device;        ///< the index in the device's name
  unsigned clusterDevice; ///< into the cluster
};

struct ManifestFacts {
  std::string name;
  uint64_t structureHash = 0, planHash = 0, programHash = 0;
  int64_t globalBatch = 1;
  std::string optimizer; ///< its name; "none" in inference
  std::vector<std::string> nodeNames;
  std::vector<RankPlace> ranks;
  const llvm::StringMap<cpu::TargetOptions> *targets = nullptr; ///< by device
  const Cluster *cluster = nullptr;

  /// The targets of a node's ranks.
  std::vector<const cpu::TargetOptions *> targetsOf(unsigned node) const;
};

std::string formatManifest(const ManifestFacts &facts);

/// From the module's het.weight_source ops; `trained` are the names that the
/// programs train. Paths are made absolute: the model stays where it is. Reads
/// all weights once, for their checksums.
llvm::Expected<std::string>
formatWeightsIndex(mlir::ModuleOp module, uint64_t structureHash,
                   const llvm::StringSet<> &trained);

/// The programs with their cluster, in MLIR's bytecode: what autohet-simulate
/// reads of a job's folder.
llvm::Expected<std::string> formatPrograms(mlir::ModuleOp programs,
                                           const ClusterSource &machines);

/// Writes `text` beside `path`, syncs it and renames it there.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text);

} // namespace autohet

#endif

//===- ShardSeeds.h - which parameters a stage divides ---------*- C++ -*-===//

#ifndef AUTOHET_PASSES_PLAN_SHARDSEEDS_H
#define AUTOHET_PASSES_PLAN_SHARDSEEDS_H

#include "autohet/Dialect/Het/Het.h"
#include "llvm/ADT/StringMap.h"

namespace autohet {

/// Which parameters of a stage are divided, by name and box: the output dims of
/// the projections of attention (by heads) and of the MLP's first products, the
/// rows of token tables, the classes of the head. All else follows.
class ShardSeeds {
public:
  ShardSeeds(mlir::Block &stage, llvm::ArrayRef<int64_t> weights);

  /// The layout of this use's parameter.
  het::Layout lookup(llvm::StringRef name,
                     std::optional<llvm::ArrayRef<int64_t>> offsets) const;
  /// How many indivisible things its parts are of; 0 where it has no layout.
  int64_t extentOf(llvm::StringRef name,
                   std::optional<llvm::ArrayRef<int64_t>> offsets) const;

private:
  struct Seed {
    het::Layout layout;
    int64_t extent = 0;
  };

  void seedAttention(het::AttentionOp op);
  void seedActivation(mlir::Operation *op);
  void seedEmbedding(het::EmbeddingOp op);
  void seedHead(het::CrossEntropyOp op);
  void seedProductOfHeads(het::MatmulOp op);
  void seedHeads(mlir::Value value, int64_t count,
                 llvm::ArrayRef<het::Part> heads, int64_t extent);
  /// The product with a parameter that `value` comes from, through views,
  /// rotary and elementwise ops; null where there is none. Of the parameter's
  /// dims `outputs` at most are not summed over. Heads may be parts of what
  /// there is of each, and normalised each by itself.
  static het::MatmulOp findProjection(mlir::Value value, unsigned outputs = 1,
                                      bool isOfHeads = false);
  /// Divides the parameter's output dim, which is of `extent` things.
  void seedOutput(het::MatmulOp projection, llvm::ArrayRef<het::Part> parts,
                  int64_t extent);
  static std::string key(llvm::StringRef name,
                         std::optional<llvm::ArrayRef<int64_t>> offsets);

  llvm::ArrayRef<int64_t> weights;
  llvm::StringMap<Seed> seeds;
};

} // namespace autohet

#endif

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

private:
  void seedAttention(het::AttentionOp op);
  void seedActivation(mlir::Operation *op);
  void seedEmbedding(het::EmbeddingOp op);
  void seedHead(het::CrossEntropyOp op);
  /// The product with a parameter that `value` comes from, through views,
  /// rotary and elementwise ops; null where there is none. Of the parameter's
  /// dims `outputs` at most are not summed over.
  static het::MatmulOp findProjection(mlir::Value value, unsigned outputs = 1);
  /// Divides the parameter's output dim of `extent`·unit elements.
  void seedOutput(het::MatmulOp projection, llvm::ArrayRef<het::Part> parts);
  static std::string key(llvm::StringRef name,
                         std::optional<llvm::ArrayRef<int64_t>> offsets);

  llvm::ArrayRef<int64_t> weights;
  llvm::StringMap<het::Layout> layouts;
};

} // namespace autohet

#endif

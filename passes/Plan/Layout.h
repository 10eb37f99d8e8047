//===- Layout.h - how a value lies on a stage's devices --------*- C++ -*-===//

#ifndef AUTOHET_PASSES_PLAN_LAYOUT_H
#define AUTOHET_PASSES_PLAN_LAYOUT_H

#include "autohet/Dialect/Het/Het.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace autohet {

/// A rank's part of a dim.
struct Part {
  int64_t begin, size;
  bool operator==(const Part &other) const {
    return begin == other.begin && size == other.size;
  }
};

/// How a value lies on the ranks of a stage: whole on each, a partial sum on
/// each, or one dim divided. Parts may overlap (a key/value head that several
/// ranks' query heads read); what lies in an overlap is a copy, or, where
/// `isSum`, a part of a sum.
struct Layout {
  enum Kind { Whole, Sum, Split } kind = Whole;
  unsigned dim = 0;
  llvm::SmallVector<Part> parts;
  bool isSum = false;

  static Layout split(unsigned dim, llvm::ArrayRef<Part> parts,
                      bool isSum = false) {
    return {Split, dim, llvm::SmallVector<Part>(parts), isSum};
  }
  static Layout sum() { return {Sum, 0, {}, false}; }

  bool operator==(const Layout &other) const {
    return kind == other.kind && dim == other.dim && parts == other.parts &&
           isSum == other.isSum;
  }
};

/// Consecutive parts of these sizes.
llvm::SmallVector<Part> consecutiveParts(llvm::ArrayRef<int64_t> sizes);

/// Each part times `unit`: from heads to elements.
llvm::SmallVector<Part> scaleParts(llvm::ArrayRef<Part> parts, int64_t unit);

/// The key/value heads that each rank's query heads read, as one range a rank.
llvm::SmallVector<Part> keyValueParts(llvm::ArrayRef<Part> queryHeads,
                                      llvm::ArrayRef<int64_t> kvHeads);

/// Whether two parts share an index.
bool haveOverlap(llvm::ArrayRef<Part> parts);

/// Which parameters of a stage are divided, by name and box: the output dims of
/// the projections of attention (by heads) and of the MLP's first products, the
/// rows of token tables, the classes of the head. All else follows.
class ShardSeeds {
public:
  ShardSeeds(mlir::Block &stage, llvm::ArrayRef<int64_t> weights);

  /// The layout of this use's parameter.
  Layout lookup(llvm::StringRef name,
                std::optional<llvm::ArrayRef<int64_t>> offsets) const;

private:
  void seedAttention(het::AttentionOp op);
  void seedActivation(mlir::Operation *op);
  void seedEmbedding(het::EmbeddingOp op);
  void seedHead(het::CrossEntropyOp op);
  /// The product with a parameter that `value` comes from, through views,
  /// rotary and elementwise ops; null where there is none.
  static het::MatmulOp findProjection(mlir::Value value);
  /// Divides the parameter's output dim of `extent`·unit elements.
  void seedOutput(het::MatmulOp projection, llvm::ArrayRef<Part> parts);
  static std::string key(llvm::StringRef name,
                         std::optional<llvm::ArrayRef<int64_t>> offsets);

  llvm::ArrayRef<int64_t> weights;
  llvm::StringMap<Layout> layouts;
};

} // namespace autohet

#endif

//===- Shards.h - how values and ops lie on a group of ranks ---*- C++ -*-===//
//
// What the Shardable interface speaks of beside an op's factors: layouts of
// values, and what an op may use to build its own shards. Who the ranks are,
// and how they exchange data, is the business of whoever asks.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_DIALECT_HET_SHARDS_H
#define AUTOHET_DIALECT_HET_SHARDS_H

#include "mlir/IR/Builders.h"

namespace autohet::het {

/// A rank's part of a dim.
struct Part {
  int64_t begin, size;
  bool operator==(const Part &other) const {
    return begin == other.begin && size == other.size;
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

/// How a value lies on a group of ranks: whole on each, a partial sum on each,
/// or one dim divided. Parts may overlap (a key/value head that several ranks'
/// query heads read); what lies in an overlap is a copy, or, where `isSum`, a
/// part of a sum.
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

  bool isSplitAlong(int64_t other) const {
    return kind == Split && int64_t(dim) == other;
  }
  bool operator==(const Layout &other) const {
    return kind == other.kind && dim == other.dim && parts == other.parts &&
           isSum == other.isSum;
  }
};

/// How an op runs on its ranks: the layouts it reads its operands in and those
/// its results then have.
struct ShardLayouts {
  llvm::SmallVector<Layout> operands, results;
};

/// A value on each rank of a group.
using RankValues = llvm::SmallVector<mlir::Value>;

/// What an op may use to build its shards.
class ShardBuilder {
public:
  virtual ~ShardBuilder() = default;
  virtual unsigned getNumRanks() const = 0;
  /// Builds where the rank's program is being written.
  virtual mlir::OpBuilder &on(unsigned rank) = 0;
  /// Sends every rank's value to every other: entry [to][from].
  virtual llvm::SmallVector<RankValues> exchange(const RankValues &values) = 0;
};

/// The layouts that follow from an op's sharding rule. Where an operand is
/// divided along one of the op's factors, every rank does its part of that
/// factor: operands without the factor are needed whole, results without it
/// are partial sums. Of a factor that no operand has, every rank does what is
/// `wanted` of the result. Nothing where the rule divides nothing.
std::optional<ShardLayouts> chooseShardsByRule(mlir::Operation *op,
                                               llvm::ArrayRef<Layout> operands,
                                               llvm::ArrayRef<Layout> wanted);

/// One copy of the op a rank, on the rank's operands, with results of the
/// rank's types. Entries are [operand][rank] and [result][rank].
llvm::SmallVector<RankValues> cloneShards(mlir::Operation *op,
                                          ShardBuilder &builder,
                                          llvm::ArrayRef<RankValues> operands,
                                          const ShardLayouts &layouts);

} // namespace autohet::het

#endif

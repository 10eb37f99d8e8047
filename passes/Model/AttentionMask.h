//===- AttentionMask.h - what a mask hides ---------------------*- C++ -*-===//
//
// Private to `het-fuse-attention`. A mask is added as numbers or chosen by
// booleans, for causality, padding or both. Here it is taken apart into what
// het.attention has: `causal`, and a mask for the rest. Nothing is created
// before `build`, so a pattern may look and then decline.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_ATTENTIONMASK_H
#define AUTOHET_PASSES_MODEL_ATTENTIONMASK_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace autohet {

/// The masks of one attention, which broadcast to [B, H, S, T]; of attention
/// without heads, to [B, S, T].
class AttentionMask {
public:
  AttentionMask(int64_t queries, int64_t keys, bool hasHeads = true)
      : queries(queries), keys(keys), hasHeads(hasHeads) {}

  /// Hides the keys (scores of -inf) where `value` is false; or true, if
  /// `negated`.
  void addCondition(mlir::Value value, bool negated = false);
  /// Adds `value * scale` to the scores.
  void addNumbers(mlir::Value value, double scale);
  /// Replaces the scores by `fill` where the condition is false. Fails where no
  /// mask of het.attention means the same.
  mlir::LogicalResult addFill(mlir::Value value, bool negated, double fill);

  /// Ends the adding: what finite fills mean depends on all that was added.
  void settle();

  bool isCausal() const { return causal; }
  /// Whether what is left is simpler than what was added.
  bool isSimplified() const { return simplified; }
  /// The mask that is left besides causality; null where nothing is.
  mlir::Value build(mlir::PatternRewriter &rewriter, mlir::Location loc) const;

private:
  /// A key is visible where `value`, or the constant, is true.
  struct Condition {
    mlir::Value value;
    mlir::DenseElementsAttr constant;
    bool negated = false;
    bool operator==(const Condition &other) const {
      return value == other.value && constant == other.constant &&
             negated == other.negated;
    }
  };
  /// `value * scale`; or, with a fill, 0 where visible and `fill` elsewhere.
  struct Number {
    mlir::Value value;
    double scale = 1;
    Condition condition;
    std::optional<double> fill;
  };

  static Condition read(mlir::Value value, bool negated);
  bool visit(const Condition &condition,
             llvm::function_ref<void(int64_t, int64_t, bool)> visitor) const;
  /// Whether a fill hides as well as -inf does, if no other mask leaves a row
  /// with nothing.
  bool hidesLike(const Condition &condition, double fill) const;
  /// Adds a condition that hides by `fill`.
  void hide(const Condition &condition, double fill);
  void add(Condition condition);
  mlir::Value materialize(const Condition &condition,
                          mlir::PatternRewriter &rewriter,
                          mlir::Location loc) const;
  mlir::Value withHeads(mlir::Value value, mlir::PatternRewriter &rewriter,
                        mlir::Location loc) const;

  int64_t queries, keys;
  bool hasHeads;
  bool causal = false, simplified = false;
  llvm::SmallVector<Condition, 2> conditions;
  llvm::SmallVector<Number, 2> numbers;
  /// Of finite fills that hide like -inf, until `settle`.
  llvm::SmallVector<std::pair<Condition, double>, 2> finite;
};

/// Whether a value is computed with a trained parameter: then it has a gradient
/// and is no mask.
bool dependsOnTrained(mlir::Value value);

} // namespace autohet

#endif

//===- LossTerms.h - what a model adds to its loss -------------*- C++ -*-===//
//
// A loss is of the labels, one sample at a time. Some models add a term of all
// samples together, as the balance of a mixture's experts: a function of their
// means. No microbatch has the means of the whole batch, so the term is one of
// each microbatch, which weighs as much as its labels: the loss is the mean of
// the microbatches' own losses. How a batch is cut changes it, so nothing of
// the kind is ever guessed: who builds the model says so.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_DIALECT_HET_LOSSTERMS_H
#define AUTOHET_DIALECT_HET_LOSSTERMS_H

#include "llvm/ADT/StringRef.h"

namespace autohet::het {

/// On a scalar result: times this number it is a term of the loss, to which
/// het-attach-loss adds it.
inline constexpr llvm::StringLiteral kLossFactorAttr = "het.loss_factor";
/// On a `het.reduce` over samples that is meant: only a term of the loss may
/// depend on it.
inline constexpr llvm::StringLiteral kOfMicrobatchAttr = "het.of_microbatch";

} // namespace autohet::het

#endif

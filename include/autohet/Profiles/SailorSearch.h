//===- SailorSearch.h - the best plan that Sailor's judge can read -*- C++-*-=//
//
// Sailor's simulator knows one shape of plan: equal numbers of microbatches,
// the same cuts in all replicas, and stages whose groups may differ in kind and
// tensor parallelism. This searches that space: pipelines of a run of stages on
// one kind, at most one stage of both kinds, and a run on the other; each run
// may change its tensor parallelism once. Cuts are chosen by an exact dynamic
// program of the longest stage.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_SAILORSEARCH_H
#define AUTOHET_PROFILES_SAILORSEARCH_H

#include "autohet/Profiles/SailorCosts.h"

namespace autohet {

struct SailorSearchResult {
  SailorPlan plan;
  JudgedStep step;
  uint64_t shapes = 0; ///< looked at
};

/// One or two kinds in one zone. The error says what is wrong with the input or
/// that nothing fits.
llvm::Expected<SailorSearchResult>
searchSailorPlan(llvm::ArrayRef<SailorPool> pools, llvm::StringRef zone,
                 int64_t globalBatch, const SailorModel &model,
                 const SailorData &data, const JudgeOptions &options);

} // namespace autohet

#endif

//===- JudgeTerms.h - the terms of Sailor's formulas ------------*- C++ -*-===//
//
// What the judge of whole plans and the search's cost model both count, so that
// they cannot disagree. include/autohet/Profiles/SailorJudge.h has the
// formulas.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PROFILES_JUDGETERMS_H
#define AUTOHET_LIB_PROFILES_JUDGETERMS_H

#include "autohet/Profiles/SailorJudge.h"

namespace autohet {

class JudgeTerms {
public:
  JudgeTerms(const SailorModel &model, const SailorData &data,
             const JudgeOptions &options)
      : ofModel(model), data(data), options(options) {}

  struct Seconds {
    double pass_s = 0, update_s = 0;
  };
  /// Layers [begin, end) for one microbatch.
  llvm::Expected<Seconds> stageSeconds(const SailorGroup &group, unsigned begin,
                                       unsigned end,
                                       int64_t microbatchSize) const;
  /// The output of `layer`, one microbatch.
  llvm::Expected<double> sendSeconds(const SailorGroup &from,
                                     const SailorGroup &to, unsigned layer,
                                     int64_t microbatchSize) const;
  /// Ring all-reduce of the parameters of layers [begin, end) in this order of
  /// holders.
  llvm::Expected<double> ringSeconds(llvm::ArrayRef<SailorGroup> holders,
                                     unsigned begin, unsigned end) const;
  llvm::Expected<double> memoryBytes(int64_t tensor, unsigned begin,
                                     unsigned end, int64_t microbatchSize,
                                     int64_t inFlight) const;

  const SailorModel &model() const { return ofModel; }

private:
  const SailorModel &ofModel;
  const SailorData &data;
  JudgeOptions options;
};

/// What stage `stage` of `count` is charged for, of the seconds that it sends
/// activations and gradients.
double countedSends(size_t stage, size_t count, double activations_s,
                    double gradients_s);

} // namespace autohet

#endif

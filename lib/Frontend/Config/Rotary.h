//===- Rotary.h - rotary embeddings as configs describe them ---*- C++ -*-===//

#ifndef AUTOHET_LIB_FRONTEND_CONFIG_ROTARY_H
#define AUTOHET_LIB_FRONTEND_CONFIG_ROTARY_H

#include "ConfigKeys.h"

namespace autohet::config {

/// How positions become angles: the plain way, and the ways to stretch it over
/// longer sequences than the model was first trained on.
struct Rotary {
  enum class Kind { Default, Linear, Dynamic, Llama3, Yarn, LongRope };

  Kind kind = Kind::Default;
  double theta = 10000;
  int64_t dims = 0; ///< of a head that are rotated
  int64_t longest = 0;
  double factor = 1;
  double original_longest = 0;
  double low_frequency_factor = 1, high_frequency_factor = 4; // llama3
  double beta_fast = 32, beta_slow = 1;                       // yarn
  bool truncates = true;
  std::vector<double> short_factors, long_factors; // longrope, one a pair
  double attention_factor = 1;                     ///< of cosines and sines

  /// Radians a position, of each pair; may depend on the sequence's length.
  std::vector<double> inverseFrequencies(int64_t sequenceLength) const;
};

struct RotaryDefaults {
  double theta = 10000;
  /// The part of each head that is rotated, and its older name.
  double partial_factor = 1;
  llvm::StringRef partial_key = "partial_rotary_factor";
  llvm::StringRef theta_key = "rope_theta";
};

/// From `rope_parameters`, or `rope_scaling` and its neighbours of older
/// configs.
Rotary readRotary(ConfigKeys &keys, int64_t headDim, int64_t longest,
                  const RotaryDefaults &defaults = {});

} // namespace autohet::config

#endif

//===- Rotary.cpp - rotary embeddings as configs describe them ------------===//

#include "Rotary.h"

#include <algorithm>
#include <cmath>

namespace autohet::config {

// Frequencies are float32 as in the models that they describe: angles of late
// positions would differ otherwise.
static std::vector<float> plainFrequencies(double theta, int64_t dims) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < dims; i += 2)
    frequencies.push_back(1.0f /
                          std::pow(float(theta), float(i) / float(dims)));
  return frequencies;
}

static void stretchAsLlama3(std::vector<float> &frequencies,
                            const Rotary &rotary) {
  double longestLow = rotary.original_longest / rotary.low_frequency_factor,
         longestHigh = rotary.original_longest / rotary.high_frequency_factor;
  for (float &frequency : frequencies) {
    double wavelength = 2 * M_PI / frequency;
    if (wavelength < longestHigh)
      continue;
    double stretched = frequency / rotary.factor;
    if (wavelength <= longestLow) {
      double smooth =
          (rotary.original_longest / wavelength - rotary.low_frequency_factor) /
          (rotary.high_frequency_factor - rotary.low_frequency_factor);
      stretched = (1 - smooth) * stretched + smooth * frequency;
    }
    frequency = float(stretched);
  }
}

static void stretchAsYarn(std::vector<float> &frequencies,
                          const Rotary &rotary) {
  // The pair that turns so many times within the original length.
  auto pairOf = [&](double turns) {
    return double(rotary.dims) *
           std::log(rotary.original_longest / (turns * 2 * M_PI)) /
           (2 * std::log(rotary.theta));
  };
  double low = pairOf(rotary.beta_fast), high = pairOf(rotary.beta_slow);
  if (rotary.truncates)
    low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, double(rotary.dims - 1));
  if (low == high)
    high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = float(frequencies[i] / rotary.factor * ramp +
                           frequencies[i] * (1 - ramp));
  }
}

std::vector<double> Rotary::inverseFrequencies(int64_t sequenceLength) const {
  double base = theta;
  if (kind == Kind::Dynamic && sequenceLength > longest)
    base *= std::pow(factor * double(sequenceLength) / double(longest) -
                         (factor - 1),
                     double(dims) / double(dims - 2));
  std::vector<float> frequencies = plainFrequencies(base, dims);
  if (kind == Kind::Linear)
    for (float &frequency : frequencies)
      frequency = float(frequency / factor);
  if (kind == Kind::Llama3)
    stretchAsLlama3(frequencies, *this);
  if (kind == Kind::Yarn)
    stretchAsYarn(frequencies, *this);
  if (kind == Kind::LongRope) {
    bool isLong = double(sequenceLength) > original_longest;
    const std::vector<double> &factors = isLong ? long_factors : short_factors;
    for (size_t i = 0; i < frequencies.size(); ++i)
      frequencies[i] =
          1.0f / (float(factors[i]) *
                  std::pow(float(base), float(2 * i) / float(dims)));
  }
  return {frequencies.begin(), frequencies.end()};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static double yarnScale(double factor, double strength) {
  return factor <= 1 ? 1 : 0.1 * strength * std::log(factor) + 1;
}

static void readYarn(ConfigKeys &keys, Rotary &rotary) {
  double fast = keys.number({"beta_fast"}, 0),
         slow = keys.number({"beta_slow"}, 0),
         strength = keys.number({"mscale"}, 0),
         allStrength = keys.number({"mscale_all_dim"}, 0);
  rotary.beta_fast = fast > 0 ? fast : 32;
  rotary.beta_slow = slow > 0 ? slow : 1;
  rotary.truncates = keys.flag("truncate", true);
  double implied = strength > 0 && allStrength > 0
                       ? yarnScale(rotary.factor, strength) /
                             yarnScale(rotary.factor, allStrength)
                       : yarnScale(rotary.factor, 1);
  rotary.attention_factor = keys.number({"attention_factor"}, implied);
}

/// The numbers under `key`; how many there must be is known later.
static std::vector<double> readFactors(ConfigKeys &keys, llvm::StringRef key) {
  std::vector<double> factors;
  const Tree *list = keys.get(key);
  if (!list || list->kind != Tree::Kind::Sequence) {
    keys.refuse(key, "must list a factor for each pair that rotates, found " +
                         (list ? list->describe() : std::string("nothing")));
    return factors;
  }
  for (const Tree &item : list->items) {
    double factor = 1;
    if (readNumber(item, ("an item of '" + key + "'").str(), factor,
                   keys.errorList()) &&
        !(factor > 0))
      keys.refuse(key, "must be positive, found " + item.describe());
    factors.push_back(factor);
  }
  return factors;
}

static void readLongRope(ConfigKeys &keys, Rotary &rotary) {
  rotary.short_factors = readFactors(keys, "short_factor");
  rotary.long_factors = readFactors(keys, "long_factor");
  double implied = rotary.factor <= 1
                       ? 1
                       : std::sqrt(1 + std::log(rotary.factor) /
                                           std::log(rotary.original_longest));
  rotary.attention_factor = keys.number({"attention_factor"}, implied);
}

static void readScaling(ConfigKeys &keys, Rotary &rotary) {
  std::string kind = keys.word({"rope_type", "type"}, "default");
  if (kind == "default" || kind == "none") {
    keys.ignore({"factor", "original_max_position_embeddings"});
    return;
  }
  if (kind == "linear")
    rotary.kind = Rotary::Kind::Linear;
  else if (kind == "dynamic")
    rotary.kind = Rotary::Kind::Dynamic;
  else if (kind == "llama3")
    rotary.kind = Rotary::Kind::Llama3;
  else if (kind == "yarn")
    rotary.kind = Rotary::Kind::Yarn;
  else if (kind == "longrope")
    rotary.kind = Rotary::Kind::LongRope;
  else
    return keys.refuse(keys.has("rope_type") ? "rope_type" : "type",
                       "is '" + kind +
                           "'; supported are default, linear, dynamic, llama3, "
                           "longrope and yarn");
  rotary.original_longest =
      keys.number({"original_max_position_embeddings"}, double(rotary.longest));
  bool isImplied = rotary.kind == Rotary::Kind::Yarn ||
                   rotary.kind == Rotary::Kind::LongRope;
  double implied =
      isImplied ? double(rotary.longest) / rotary.original_longest : 0;
  rotary.factor = keys.number({"factor"}, implied);
  if (rotary.factor < 1)
    keys.refuse("factor", "must be at least 1 for '" + kind + "' scaling");
  if (rotary.original_longest <= 1)
    keys.refuse("original_max_position_embeddings", "must be above 1");
  if (rotary.kind == Rotary::Kind::Llama3) {
    rotary.low_frequency_factor = keys.number({"low_freq_factor"}, 1);
    rotary.high_frequency_factor = keys.number({"high_freq_factor"}, 4);
    if (rotary.low_frequency_factor <= 0 ||
        rotary.high_frequency_factor <= rotary.low_frequency_factor)
      keys.refuse("high_freq_factor",
                  "must be above 'low_freq_factor', and that above 0");
  }
  if (rotary.kind == Rotary::Kind::Yarn)
    readYarn(keys, rotary);
  if (rotary.kind == Rotary::Kind::LongRope)
    readLongRope(keys, rotary);
}

Rotary readRotary(ConfigKeys &keys, int64_t headDim, int64_t longest,
                  const RotaryDefaults &defaults) {
  Rotary rotary;
  rotary.longest = longest;
  rotary.theta = keys.number({defaults.theta_key}, defaults.theta);
  double part = keys.number({defaults.partial_key}, defaults.partial_factor);
  for (llvm::StringRef name : {"rope_parameters", "rope_scaling"}) {
    const Tree *tree = keys.get(name);
    if (!tree)
      continue;
    if (tree->kind != Tree::Kind::Mapping) {
      keys.refuse(name, "must map names to numbers, found " + tree->describe());
      continue;
    }
    ConfigKeys inner(*tree, keys.errorList(), name);
    rotary.theta = inner.number({"rope_theta"}, rotary.theta);
    part = inner.number({"partial_rotary_factor"}, part);
    readScaling(inner, rotary);
    inner.finish();
  }
  bool isPart = part >= 0 && part <= 1;
  rotary.dims = isPart ? int64_t(double(headDim) * part) : 0;
  if (rotary.theta <= 1)
    keys.refuse(defaults.theta_key, "must be above 1");
  if (!isPart)
    keys.refuse(defaults.partial_key, "must be the part of a head that "
                                      "rotates, a number from 0 to 1");
  else if (rotary.dims < 2 || rotary.dims % 2)
    keys.refuse(
        defaults.partial_key,
        "makes " + llvm::Twine(rotary.dims) + " of " + llvm::Twine(headDim) +
            " elements of a head rotate; wanted an even number of them");
  if (rotary.kind == Rotary::Kind::LongRope)
    for (size_t count :
         {rotary.short_factors.size(), rotary.long_factors.size()})
      if (int64_t(count) * 2 != rotary.dims)
        keys.refuse("rope_scaling", "lists " + llvm::Twine(count) +
                                        " factors, wanted one for each of " +
                                        llvm::Twine(rotary.dims / 2) +
                                        " pairs");
  if (rotary.kind == Rotary::Kind::Dynamic && rotary.dims < 4)
    keys.refuse("rope_scaling", "'dynamic' needs heads of at least 4 elements");
  return rotary;
}

} // namespace autohet::config

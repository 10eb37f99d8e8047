//===- Random.cpp - normal numbers that are equal on every machine ----------===//
//
// log and cos of a libm differ in the last bit between versions; two nodes that
// both hold a slice would start from different weights. These series use only
// operations that IEEE 754 rounds exactly, and are good to about 1e-15.
//
//===----------------------------------------------------------------------===//

#include "autohet/runtime/random.h"

#include <cmath>

// log(x) for x > 0: x = m 2^e with m in [sqrt(1/2), sqrt(2)), then
// log(m) = 2 atanh((m - 1) / (m + 1)).
static double exactLog(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  double s = (m - 1) / (m + 1), square = s * s, sum = 0;
  for (int term = 21; term >= 1; term -= 2)
    sum = sum * square + 1.0 / term;
  return 2 * s * sum + exponent * 0.69314718055994530942;
}

// cos(2 pi u) for u in [0, 1), from the series on [0, pi/4].
static double exactCosTurns(double u) {
  if (u > 0.5)
    u = 1 - u;
  bool negative = u > 0.25;
  if (negative)
    u = 0.5 - u;
  const double twoPi = 6.28318530717958647692;
  bool useSine = u > 0.125;
  double x = twoPi * (useSine ? 0.25 - u : u), square = x * x;
  double value = 1;
  for (int term = useSine ? 19 : 18; term >= 2; term -= 2)
    value = 1 - value * square / (term * (term - 1));
  if (useSine)
    value *= x;
  return negative ? -value : value;
}

double ah_normal(ah_random draw) {
  // (0, 1]: the logarithm of zero would be infinite.
  double first = (static_cast<double>(draw.word[0]) + 1) * 0x1p-32;
  double second = static_cast<double>(draw.word[1]) * 0x1p-32;
  return std::sqrt(-2 * exactLog(first)) * exactCosTurns(second);
}

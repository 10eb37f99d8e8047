//===- FitTest.cpp - rates that made the times are found again ------------===//

#include "Fit.h"

#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace autohet;

namespace {

/// Units of a model: an embedding that only moves bytes, blocks, a head.
std::vector<Observation> observe(const FittedRates &rates, double noise) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> off(-noise, noise);
  std::vector<Observation> all;
  for (double samples : {1, 4, 16})
    for (auto [flops, bytes] :
         {std::pair(0.0, 2e5), {3e7, 4e5}, {6e7, 9e5}, {2e8, 1e6}}) {
      Observation one;
      one.overheads = 2;
      one.flops = flops * samples;
      one.bytes = bytes * samples + 3e5;
      one.seconds = rates.seconds(one) * (1 + off(random));
      one.weight = 1 / (one.seconds * one.seconds);
      all.push_back(one);
    }
  return all;
}

TEST(Fit, FindsTheRates) {
  for (FittedRates rates :
       {FittedRates{20e-6, 50e9, 10e9}, FittedRates{0, 50e9, 10e9},
        FittedRates{20e-6, 80e12, 0}}) {
    FittedRates fitted = fitRates(observe(rates, 0));
    EXPECT_NEAR(fitted.flops_per_s / rates.flops_per_s, 1, 1e-6);
    EXPECT_NEAR(fitted.overhead_s, rates.overhead_s, 1e-11);
    if (rates.bandwidth_bytes_per_s > 0) {
      EXPECT_NEAR(fitted.bandwidth_bytes_per_s / rates.bandwidth_bytes_per_s, 1,
                  1e-6);
    } else { // none, or one so high that it costs nothing
      EXPECT_TRUE(fitted.bandwidth_bytes_per_s == 0 ||
                  fitted.bandwidth_bytes_per_s > 1e18);
    }
  }
}

/// Nothing is ever negative, and noise of 5 % moves the main rate by less.
TEST(Fit, BearsNoise) {
  FittedRates rates{20e-6, 50e9, 10e9};
  FittedRates fitted = fitRates(observe(rates, 0.05));
  EXPECT_NEAR(fitted.flops_per_s / rates.flops_per_s, 1, 0.05);
  EXPECT_GE(fitted.overhead_s, 0);
  EXPECT_GE(fitted.bandwidth_bytes_per_s, 0);
}

/// Times that fall with traffic have no bandwidth.
TEST(Fit, NoNegativeRate) {
  std::vector<Observation> all;
  for (double i : {1, 2, 3, 4}) {
    Observation one;
    one.flops = i * 1e9;
    one.bytes = (5 - i) * 1e6;
    one.seconds = i - 0.1 * (5 - i);
    all.push_back(one);
  }
  FittedRates fitted = fitRates(all);
  EXPECT_EQ(fitted.bandwidth_bytes_per_s, 0);
  EXPECT_GT(fitted.flops_per_s, 0);
  EXPECT_TRUE(std::isfinite(fitted.flops_per_s));
}

} // namespace

//===- FitTest.cpp - rates that made the times are found again ------------===//

#include "Fit.h"

#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace autohet;

namespace {

/// Rates, in the order of the kind's: products, attention, elementwise.
DeviceKind kindOf(double flops, double attention, double elementwise,
                  double bandwidth, double overhead) {
  DeviceKind kind;
  kind.flops_per_s = flops;
  kind.attention_flops_per_s = attention;
  kind.elementwise_flops_per_s = elementwise;
  kind.memory_bandwidth_bytes_per_s = bandwidth;
  kind.overhead_s = overhead;
  return kind;
}

/// Commands of a model: products, attention, norms, sums that only move bytes.
std::vector<Observation> observe(const DeviceKind &kind, double noise) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> off(-noise, noise);
  std::vector<Observation> all;
  for (double samples : {1, 4, 16})
    for (Work work : {Work{0, 3e7, 0, 0, 0}, Work{0, 6e7, 0, 0, 0},
                      Work{0, 0, 8e6, 1e6, 6e5}, Work{0, 0, 2e7, 2e6, 1e6},
                      Work{0, 0, 0, 4e6, 8e5}, Work{0, 0, 0, 2e5, 1e6},
                      Work{0, 0, 0, 0, 4e5}}) {
      Observation one;
      one.work = work * samples;
      one.work.commands = 1;
      one.seconds = kind.seconds(one.work) * (1 + off(random));
      one.weight = 1 / (one.seconds * one.seconds);
      all.push_back(one);
    }
  return all;
}

TEST(Fit, FindsTheRates) {
  for (const DeviceKind &kind :
       {kindOf(90e9, 25e9, 8e9, 10e9, 2e-6), kindOf(90e9, 25e9, 8e9, 10e9, 0),
        kindOf(90e9, 0, 0, 10e9, 2e-6), kindOf(80e12, 0, 8e12, 0, 20e-6)}) {
    DeviceKind fitted;
    std::vector<Observation> all = observe(kind, 0);
    fitRates(all, fitted);
    EXPECT_NEAR(fitted.flops_per_s / kind.flops_per_s, 1, 1e-6);
    EXPECT_NEAR(fitted.overhead_s, kind.overhead_s, 1e-11);
    for (const Observation &one : all)
      EXPECT_NEAR(fitted.seconds(one.work) / one.seconds, 1, 1e-6);
  }
}

/// Noise of 5 % moves the main rates by less.
TEST(Fit, BearsNoise) {
  DeviceKind kind = kindOf(90e9, 25e9, 8e9, 10e9, 2e-6), fitted;
  fitRates(observe(kind, 0.05), fitted);
  EXPECT_NEAR(fitted.flops_per_s / kind.flops_per_s, 1, 0.05);
  EXPECT_NEAR(fitted.attention_flops_per_s / kind.attention_flops_per_s, 1,
              0.25);
  EXPECT_GE(fitted.overhead_s, 0);
  EXPECT_GE(fitted.memory_bandwidth_bytes_per_s, 0);
}

/// Times that fall with traffic have no bandwidth.
TEST(Fit, NoNegativeRate) {
  std::vector<Observation> all;
  for (double i : {1, 2, 3, 4}) {
    Observation one;
    one.work.flops = i * 1e9;
    one.work.traffic_bytes = (5 - i) * 1e6;
    one.seconds = i - 0.1 * (5 - i);
    all.push_back(one);
  }
  DeviceKind fitted;
  fitRates(all, fitted);
  EXPECT_EQ(fitted.memory_bandwidth_bytes_per_s, 0);
  EXPECT_GT(fitted.flops_per_s, 0);
  EXPECT_TRUE(std::isfinite(fitted.flops_per_s));
}

/// What explains some times need not be a machine.
TEST(Fit, FiguresOfNoMachineAreNamed) {
  EXPECT_TRUE(findImplausible(kindOf(90e9, 25e9, 8e9, 10e9, 2e-6)).empty());
  EXPECT_TRUE(findImplausible(kindOf(80e12, 0, 8e12, 0, 20e-6)).empty());
  EXPECT_EQ(findImplausible(kindOf(90e9, 0, 8e9, 23e15, 0.5)),
            (std::vector<std::string>{"memory_bandwidth: 23000 TB/s",
                                      "overhead: 500 ms"}));
}

} // namespace

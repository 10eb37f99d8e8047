//===- Calibration.cpp - do emulated speeds hold? -------------------------===//

#include "supervisor/Calibration.h"

#include "core/Pace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

using namespace autohet::runtime;
using Clock = std::chrono::steady_clock;

/// Counts rounds of arithmetic until `end`; a round takes a tenth of a
/// millisecond, as a short command does.
static double countRounds(Pace &pace, Clock::time_point end) {
  double rounds = 0;
  volatile double sink = 0;
  for (double x = 1; Clock::now() < end; ++rounds) {
    Pace::Work work(pace);
    for (int i = 0; i < 40000; ++i)
      x = x * 0.999999 + 1e-7; // not 1e-6: x would stay 1
    sink = x;
  }
  (void)sink;
  return rounds;
}

double autohet::runtime::measureSpeed(unsigned threads, double share) {
  // The first tenth lets all ranks begin.
  static constexpr auto warmUp = std::chrono::milliseconds(100);
  static constexpr auto length = std::chrono::milliseconds(1000);
  std::vector<double> rounds(std::max(threads, 1u));
  std::vector<std::thread> helpers;
  Pace pace(share);
  auto work = [&, start = Clock::now()](size_t index) {
    countRounds(pace, start + warmUp);
    rounds[index] = countRounds(pace, start + warmUp + length);
  };
  for (size_t index = 1; index < rounds.size(); ++index)
    helpers.emplace_back(work, index);
  work(0);
  for (std::thread &helper : helpers)
    helper.join();
  double total = 0;
  for (double one : rounds)
    total += one;
  return total;
}

Calibration autohet::runtime::judgeSpeeds(const Manifest &manifest,
                                          const std::vector<double> &rates) {
  double rateSum = 0, speedSum = 0;
  for (size_t rank = 0; rank < rates.size(); ++rank) {
    rateSum += rates[rank];
    speedSum += manifest.ranks[rank].relative_speed;
  }
  Calibration result;
  std::string measured, asked;
  for (size_t rank = 0; rank < rates.size(); ++rank) {
    double speed = manifest.ranks[rank].relative_speed;
    double got = rates[rank] / rateSum * speedSum;
    result.worstDeviation =
        std::max(result.worstDeviation, std::fabs(got / speed - 1));
    char text[32];
    snprintf(text, sizeof(text), "%s%.2f", rank ? " : " : "", got);
    measured += text;
    snprintf(text, sizeof(text), "%s%g", rank ? " : " : "", speed);
    asked += text;
  }
  char worst[32];
  snprintf(worst, sizeof(worst), "%.1f %%", result.worstDeviation * 100);
  result.text = "emulated speeds " + measured + " (asked " + asked +
                "), worst off by " + worst;
  if (result.worstDeviation > calibrationTolerance)
    result.text = "warning: " + result.text +
                  ": this machine is too busy for times to mean anything";
  return result;
}

//===- MixProblemTest.cpp - whole numbers of replicas ---------------------===//

#include "lib/Planner/MixRelaxation.h"
#include "planner/Instances.h"

#include "gmock/gmock.h"

using namespace autohet;
using test::Random;

namespace {

MixProblem makeProblem(Random &random) {
  MixProblem problem;
  problem.global_batch = 1 + random.below(60);
  unsigned classes = 1 + random.below(3);
  for (unsigned i = 0; i < classes; ++i)
    problem.available.push_back(random.below(5));
  if (random.below(3) == 0)
    problem.max_devices = 1 + random.below(6);
  for (unsigned i = 0; i <= random.below(4); ++i) {
    Template &made = problem.templates.emplace_back();
    made.microbatch_size = 1 + random.below(4);
    made.period_s = made.pace_s = random.real(0.1, 2);
    made.way_s = made.pace_s * random.real(1, 4);
    made.rest_s = random.real(0, 0.5);
    made.devices.assign(classes, 0);
    for (unsigned &count : made.devices)
      count = random.below(3);
    ++made.devices[random.below(classes)];
  }
  return problem;
}

} // namespace

TEST(MixProblem, EqualsBruteForce) {
  Random random(7);
  unsigned solved = 0;
  for (int round = 0; round < 1500; ++round) {
    MixProblem problem = makeProblem(random);
    ASSERT_EQ(problem.check(), "");
    double exact =
        secondsOfMix(solveMixByBruteForce(problem), problem.global_batch);
    TemplateMix mix = solveMix(problem);
    double found = secondsOfMix(mix, problem.global_batch);
    if (mix.empty()) {
      EXPECT_EQ(exact, found) << round;
      continue;
    }
    ++solved;
    EXPECT_EQ(problem.verify(mix), "") << round;
    EXPECT_GE(found, exact * (1 - 1e-9)) << round;
    EXPECT_LE(found, exact * (1 + 2e-3)) << round;
  }
  EXPECT_GT(solved, 700u);
}

// The relaxation does what the best mix does, and leaves none of its templates
// out; what it has itself stays within the devices.
TEST(MixProblem, RelaxationIsABound) {
  Random random(10);
  for (int round = 0; round < 1500; ++round) {
    MixProblem problem = makeProblem(random);
    TemplateMix best = solveMixByBruteForce(problem);
    if (best.empty())
      continue;
    double seconds = secondsOfMix(best, problem.global_batch);
    MixRelaxation relaxed = relaxMix(problem, seconds);
    double batch = static_cast<double>(problem.global_batch);
    EXPECT_GE(relaxed.samples, batch * (1 - 1e-9)) << round;
    double samples = 0;
    for (auto [index, made] : llvm::enumerate(problem.templates)) {
      samples += relaxed.replicas[index] *
                 static_cast<double>(made.microbatch_size *
                                     made.microbatchesWithin(seconds));
      EXPECT_GE(relaxed.losses[index], -1e-6) << round;
      for (const CountedTemplate &entry : best)
        if (entry.made.isSame(made) && entry.made.way_s == made.way_s &&
            made.microbatchesWithin(seconds) > 0)
          EXPECT_LE(relaxed.losses[index], relaxed.samples - batch + 1e-6)
              << round;
    }
    EXPECT_NEAR(samples, relaxed.samples, 1e-6 * samples) << round;
    ClassCounts rooms = problem.rooms();
    for (size_t r = 0; r < rooms.size(); ++r) {
      double used = 0;
      for (auto [index, made] : llvm::enumerate(problem.templates))
        used += relaxed.replicas[index] * problem.needsOf(made)[r];
      EXPECT_LE(used, rooms[r] + 1e-6) << round;
    }
  }
}

// With few states, parts of the relaxation are fixed first: still a mix.
TEST(MixProblem, LargeClassesStayWithinDevices) {
  Random random(8);
  for (int round = 0; round < 500; ++round) {
    MixProblem problem = makeProblem(random);
    for (unsigned &count : problem.available)
      count = count * 40 + random.below(40);
    problem.max_states = 50;
    TemplateMix mix = solveMix(problem);
    if (!mix.empty())
      EXPECT_EQ(problem.verify(mix), "") << round;
  }
}

TEST(MixProblem, LooksForFasterMixesOnly) {
  Random random(9);
  for (int round = 0; round < 500; ++round) {
    MixProblem problem = makeProblem(random);
    double seconds = secondsOfMix(solveMix(problem), problem.global_batch);
    problem.limit_s = seconds;
    EXPECT_TRUE(solveMix(problem).empty()) << round;
  }
}

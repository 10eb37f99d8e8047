//===- AgreementTests.cpp - all ranks hold the same bits ------------------===//

#include "Ranks.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime::test;
using testing::Each;

/// Sums that depend on the order: only left to right over the ranks gives this.
static double contribution(uint32_t rank) { return 1.0 / (3 + rank * rank); }

class Agreement : public testing::TestWithParam<uint32_t> {};

TEST_P(Agreement, SumsInRankOrder) {
  RanksOptions options;
  options.worldSize = GetParam();
  auto statuses = runRanks(options, [&](Rank &self) {
    double expected = contribution(0);
    for (uint32_t rank = 1; rank < options.worldSize; ++rank)
      expected += contribution(rank);
    for (uint64_t step = 0; step < 20; ++step) {
      uint32_t odd = step % options.worldSize;
      ah_agreement agreement = {};
      agreement.struct_bytes = sizeof(agreement);
      agreement.step = step;
      agreement.squared_norm = contribution(self.rank);
      agreement.loss = -contribution(self.rank);
      if (self.rank >= odd)
        agreement.flags |= AH_FLAG_NONFINITE;
      if (self.rank == odd)
        agreement.flags |= AH_FLAG_SAVE;
      // Only some ranks read labels.
      if (self.rank == odd)
        agreement.label_count = 40 + step;
      if (self.table->agree(self.comm, &agreement) != AH_OK)
        return 1;
      if (std::memcmp(&agreement.squared_norm, &expected, 8) ||
          agreement.loss != -expected)
        return 2;
      if (agreement.flags != (AH_FLAG_NONFINITE | AH_FLAG_SAVE) ||
          agreement.first_nonfinite_rank != odd)
        return 3;
      if (agreement.label_count != 40 + step)
        return 5;
      if (self.table->barrier(self.comm, "barrier") != AH_OK)
        return 4;
    }
    return 0;
  });
  EXPECT_THAT(statuses, Each(0));
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, Agreement,
                         testing::Values(1, 2, 3, 5, 6, 7));

TEST(Agreement, NoticesRanksInDifferentSteps) {
  RanksOptions options;
  options.worldSize = 3;
  auto statuses = runRanks(options, [&](Rank &self) {
    ah_agreement agreement = {};
    agreement.struct_bytes = sizeof(agreement);
    agreement.step = self.rank == 2 ? 8 : 7;
    return self.table->agree(self.comm, &agreement) == AH_ERROR_INTERNAL ? 0
                                                                         : 1;
  });
  EXPECT_THAT(statuses, Each(0));
}

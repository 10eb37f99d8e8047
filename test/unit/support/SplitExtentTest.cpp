//===- SplitExtentTest.cpp - the truth table and its laws -----------------===//

#include "autohet/Support/SplitExtent.h"

#include "gmock/gmock.h"
#include <numeric>
#include <random>

using namespace autohet;
using testing::ElementsAre;

TEST(SplitExtent, TruthTable) {
  EXPECT_THAT(splitExtent(11, {1, 1}), ElementsAre(6, 5));
  EXPECT_THAT(splitExtent(25, {1, 1, 1, 1}), ElementsAre(7, 6, 6, 6));
  EXPECT_THAT(splitExtent(8, {4, 1, 2, 1}), ElementsAre(4, 1, 2, 1));
  EXPECT_THAT(splitExtent(2, {1, 1, 1}), ElementsAre(1, 1, 0));
  EXPECT_THAT(splitExtent(7, {2, 1}), ElementsAre(5, 2));
  EXPECT_THAT(splitExtent(7, {1, 2}), ElementsAre(2, 5));
  EXPECT_THAT(splitExtent(0, {1, 1}), ElementsAre(0, 0));
  EXPECT_THAT(splitExtent(5, {0, 1}), ElementsAre(0, 5));
  EXPECT_THAT(splitExtent(50257, {1, 1, 1}), ElementsAre(16753, 16752, 16752));
  EXPECT_THAT(splitExtent(9, {1}), ElementsAre(9));
  EXPECT_THAT(splitExtentEvenly(10, 4), ElementsAre(3, 3, 2, 2));
}

TEST(SplitExtent, Offsets) {
  EXPECT_THAT(partOffsets(splitExtent(11, {1, 1})), ElementsAre(0, 6));
  EXPECT_THAT(partOffsets({}), ElementsAre());
}

// Every index has one holder, and no share is a whole index away from its due.
TEST(SplitExtent, CoversAndIsProportional) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    int64_t extent = random() % 1000;
    std::vector<int64_t> weights(1 + random() % 6);
    for (int64_t &weight : weights)
      weight = random() % 9;
    weights[random() % weights.size()] = 1 + random() % 9;
    int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t(0));

    auto sizes = splitExtent(extent, weights);
    ASSERT_EQ(sizes.size(), weights.size());
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t(0)), extent);
    for (size_t rank = 0; rank < sizes.size(); ++rank) {
      EXPECT_LT(std::abs(sizes[rank] * total - extent * weights[rank]), total);
      if (weights[rank] == 0) {
        EXPECT_EQ(sizes[rank], 0);
      }
    }
  }
}

TEST(SplitExtent, LargeExtentsDoNotOverflow) {
  int64_t extent = int64_t(1) << 62;
  auto sizes = splitExtent(extent, {1000000000, 1000000001});
  EXPECT_EQ(sizes[0] + sizes[1], extent);
  EXPECT_LT(sizes[0], sizes[1]);
}

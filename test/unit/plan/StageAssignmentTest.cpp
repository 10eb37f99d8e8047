//===- StageAssignmentTest.cpp - plans on a command line ------------------===//

#include "autohet/Plan/Plan.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;

static std::vector<Replica> good(llvm::StringRef text) {
  auto replicas = parseStageAssignment(text);
  if (replicas)
    return *replicas;
  ADD_FAILURE() << llvm::toString(replicas.takeError());
  return {};
}

static std::string refuse(llvm::StringRef text) {
  auto replicas = parseStageAssignment(text);
  return replicas ? "" : llvm::toString(replicas.takeError());
}

TEST(StageAssignment, TheDesignsExample) {
  auto replicas = good("block0-block5@n0/0, block6-head@n1/0");
  ASSERT_EQ(replicas.size(), 1u);
  ASSERT_EQ(replicas[0].stages.size(), 2u);
  EXPECT_THAT(replicas[0].stages[0].units, ElementsAre("block0-block5"));
  EXPECT_THAT(replicas[0].stages[1].devices, ElementsAre("n1/0"));
  EXPECT_EQ(replicas[0].microbatches, 1);
}

TEST(StageAssignment, Everything) {
  const char *text = "5x4: embed&block0..head@n0/0+n0/1(2:1); "
                     "3x2: embed@n1/0, block0..head@n1/1";
  auto replicas = good(text);
  ASSERT_EQ(replicas.size(), 2u);
  EXPECT_EQ(replicas[0].microbatches, 5);
  EXPECT_EQ(replicas[0].microbatch_size, 4);
  const Stage &stage = replicas[0].stages[0];
  EXPECT_THAT(stage.units, ElementsAre("embed", "block0..head"));
  EXPECT_THAT(stage.devices, ElementsAre("n0/0", "n0/1"));
  EXPECT_THAT(stage.tensor_parallel, ElementsAre(2, 1));
  EXPECT_EQ(formatStageAssignment(replicas), text);
}

TEST(StageAssignment, Refuses) {
  EXPECT_THAT(refuse("block0"), HasSubstr("'block0' is not units@devices"));
  EXPECT_THAT(refuse(""), HasSubstr("is not units@devices"));
  EXPECT_THAT(refuse("a@n0/0, "), HasSubstr("is not units@devices"));
  EXPECT_THAT(refuse("0x4: a@n0/0"), HasSubstr("must be COUNTxSIZE"));
  EXPECT_THAT(refuse("a@n0/0+"), HasSubstr("a device is missing"));
  EXPECT_THAT(refuse("a@n0/0(x)"), HasSubstr("column 8: 'x' is not a share"));
  EXPECT_THAT(refuse("a@n0/0)"), HasSubstr("')' without '('"));
}

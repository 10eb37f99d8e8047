//===- PlanFileTest.cpp - plan.json ---------------------------------------===//

#include "autohet/Plan/Plan.h"
#include "autohet/Support/Tree.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;

static const char *const example = R"({
  "format": 1,
  "structure_hash": "0123456789abcdef",
  "global_batch": 32,
  "optimizer": "adamw",
  "schedule": "1f1b",
  "state_owner": "spread",
  "gradient_exchange": "hierarchical",
  "replicas": [
    {
      "microbatch_size": 4,
      "microbatches": 5,
      "stages": [
        {"units": ["embed..head"], "devices": ["n0/0"]}
      ]
    },
    {
      "microbatch_size": 4,
      "microbatches": 3,
      "stages": [
        {"units": ["embed", "block0"], "devices": ["n1/0"], "state_share": 3},
        {"units": ["block1..head"], "devices": ["n2/0", "n2/1"], "tensor_parallel": [2, 1]}
      ]
    }
  ]
}
)";

static std::string refuse(llvm::StringRef from, llvm::StringRef to) {
  std::string text = example;
  size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos);
  llvm::Expected<Plan> plan =
      parsePlan(text.replace(place, from.size(), to), "plan.json");
  return plan ? "" : llvm::toString(plan.takeError());
}

TEST(PlanFile, RoundTripKeepsEveryByte) {
  llvm::Expected<Plan> plan = parsePlan(example, "plan.json");
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(plan->replicas.size(), 2u);
  EXPECT_EQ(plan->replicas[1].stages[1].tensor_parallel.size(), 2u);
  EXPECT_EQ(formatPlan(*plan), example);
}

TEST(PlanFile, LayoutOfTheFileDoesNotCount) {
  llvm::Expected<Plan> plan = parsePlan(example, "p");
  std::string packed = example;
  llvm::erase(packed, '\n');
  llvm::Expected<Plan> other = parsePlan(packed, "p");
  ASSERT_TRUE(plan && other);
  EXPECT_TRUE(*plan == *other);
  EXPECT_EQ(planHash(*plan), planHash(*other));
  other->replicas[0].microbatches = 4;
  EXPECT_NE(planHash(*plan), planHash(*other));
}

TEST(PlanFile, Refuses) {
  EXPECT_THAT(refuse("\"schedule\"", "\"elasticity\": {}, \"schedule\""),
              HasSubstr("plan.json:6:3: error: unknown key 'elasticity' in a "
                        "plan; known keys: format, structure_hash"));
  EXPECT_THAT(refuse("\"units\": [\"embed\"", "\"layers\": [\"embed\""),
              HasSubstr("unknown key 'layers' in a stage of replica 1"));
  EXPECT_THAT(refuse("1f1b", "zigzag"),
              HasSubstr("unknown schedule 'zigzag'; known ones: gpipe, 1f1b"));
  EXPECT_THAT(refuse("hierarchical", "ring"),
              HasSubstr("unknown gradient_exchange 'ring'; known ones: direct, "
                        "hierarchical"));
  EXPECT_THAT(refuse("adamw", "lamb"), HasSubstr("unknown optimizer 'lamb'"));
  EXPECT_THAT(refuse("\"microbatches\": 5", "\"microbatches\": 0"),
              HasSubstr("must be at least 1, found 0"));
  EXPECT_THAT(refuse("\"microbatches\": 5", "\"microbatches\": \"5\""),
              HasSubstr("must be a whole number, found the text '5'"));
  // Not of the model, which would be read for samples that no memory holds.
  EXPECT_THAT(
      refuse("\"microbatch_size\": 4", "\"microbatch_size\": 4294967296"),
      HasSubstr("error: 'microbatch_size' of replica 0 is 4294967296, "
                "wanted at most 65536"));
  EXPECT_THAT(refuse("0123456789abcdef", "123"), HasSubstr("16 lower-case"));
  EXPECT_THAT(refuse("0123456789abcdef", "0000000000000000"),
              HasSubstr("'structure_hash' is 0, which is no model's"));
  EXPECT_THAT(refuse("[\"n2/0\", \"n2/1\"]", "[]"),
              HasSubstr("error: 'devices' is empty"));
  EXPECT_THAT(refuse("[\"embed..head\"]", "[]"),
              HasSubstr("error: 'units' is empty"));
  EXPECT_THAT(
      refuse("{\"units\": [\"embed..head\"], \"devices\": [\"n0/0\"]}", ""),
      HasSubstr("error: 'stages' is empty"));
  llvm::Expected<Plan> nothing =
      parsePlan("{\"format\": 1, \"global_batch\": 1, \"optimizer\": \"sgd\", "
                "\"schedule\": \"gpipe\", \"replicas\": []}",
                "p");
  ASSERT_FALSE(static_cast<bool>(nothing));
  EXPECT_THAT(llvm::toString(nothing.takeError()),
              HasSubstr("'replicas' is empty"));
  EXPECT_THAT(refuse("\"format\": 1", "\"format\": 9"),
              HasSubstr("format 9 is not supported"));
  EXPECT_THAT(refuse("\"format\": 1,", "\"format\": 1,,"),
              HasSubstr("not JSON"));
  EXPECT_THAT(refuse("\"global_batch\": 32,", ""),
              HasSubstr("a plan needs 'global_batch'"));
  EXPECT_THAT(refuse("\"schedule\"", "\"recompute\": true, \"schedule\""),
              HasSubstr("'recompute' is reserved"));
  EXPECT_THAT(refuse("\"schedule\"", "\"offload\": true, \"schedule\""),
              HasSubstr("'offload' is reserved"));
  EXPECT_EQ(refuse("\"schedule\"", "\"recompute\": false, \"schedule\""), "");
}

// What the planner writes it reads, too; whoever runs a plan does not.
TEST(PlanFile, PlanningKnowsWhatStagesKeep) {
  for (auto [key, keeping] : {std::pair("recompute", Keeping::Inputs),
                              {"offload", Keeping::OnHost}}) {
    std::string text = example;
    std::string before = "\"state_share\": 3}";
    size_t place = text.find(before);
    ASSERT_NE(place, std::string::npos);
    text.replace(place, before.size(),
                 "\"state_share\": 3, \"" + std::string(key) + "\": true}");
    llvm::Expected<Plan> plan = parsePlan(text, "p", PlanPurpose::Planning);
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    EXPECT_EQ(plan->replicas[1].stages[0].keeping, keeping);
    EXPECT_EQ(formatPlan(*plan), text);
    llvm::Expected<Plan> toRun = parsePlan(text, "p");
    ASSERT_FALSE(static_cast<bool>(toRun));
    EXPECT_THAT(llvm::toString(toRun.takeError()), HasSubstr("is reserved"));
    text.replace(
        text.find(key), 0,
        std::string(keeping == Keeping::OnHost ? "recompute" : "offload") +
            "\": true, \"");
    llvm::Expected<Plan> both = parsePlan(text, "p", PlanPurpose::Planning);
    ASSERT_FALSE(static_cast<bool>(both));
    EXPECT_THAT(llvm::toString(both.takeError()), HasSubstr("not both"));
  }
}

TEST(PlanFile, ExampleOfTheDocumentation) {
  llvm::Expected<std::string> page =
      readTextFile(AUTOHET_SOURCE_DIR "/docs/formats/plan.md");
  ASSERT_TRUE(static_cast<bool>(page));
  std::string example =
      llvm::StringRef(*page).split("```json\n").second.split("```").first.str();
  llvm::Expected<Plan> plan = parsePlan(example, "plan.md");
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(formatPlan(*plan), example);
}

TEST(PlanFile, Missing) {
  EXPECT_THAT(llvm::toString(loadPlan("nope.json").takeError()),
              HasSubstr("nope.json: error: cannot read"));
}

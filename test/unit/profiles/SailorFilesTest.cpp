//===- SailorFilesTest.cpp - reading Sailor's profiles and plans ----------===//

#include "PublishedData.h"
#include "autohet/Profiles/SailorData.h"
#include "autohet/Profiles/SailorPlan.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include <map>

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// A profile of one model of two layers on one kind.
class SailorFiles : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sailor", path));
    folder = path.str().str();
    files = {
        {"profiles/layer_times.json",
         R"({"m": {"gpu": {"1": {"1": {"0": [1, 2, 3], "1": [4, 5, 6]}}}}})"},
        {"profiles/layer_memory.json",
         R"({"m": {"1": {
           "0": {"params_floats": 10, "act_output_floats": 2, "act_mem_floats": 3},
           "1": {"params_floats": 20, "act_output_floats": 1, "act_mem_floats": 4}}}})"},
        {"network/multizone_bandwidths_het.json",
         R"({"z": {"gpu": {"1": {"z": {"gpu": {"1": [[0, 0, 1], 2e9]}}}}}})"},
        {"network/network_coeffs_all_homo.json",
         R"({"inter": {"gpu": {"1": [[-1, 0, 1], 2e9]}},
             "intra": {"gpu": {"2": [[0, 0, 9], 9e9]}}})"},
        {"config/basic_cluster_config.json",
         R"({"gpu": {"gpus_per_node": 4, "mem_per_gpu": 1000}, "zone": "z"})"}};
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  llvm::Expected<SailorData> load() {
    for (const auto &[name, text] : files) {
      std::string path = folder + "/" + name;
      std::error_code error =
          llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
      EXPECT_FALSE(error);
      llvm::raw_fd_ostream(path, error) << text;
      EXPECT_FALSE(error);
    }
    return loadSailorData(folder, warnings);
  }

  std::string folder;
  std::map<std::string, std::string> files;
  std::vector<std::string> warnings;
};

TEST_F(SailorFiles, AreRead) {
  SailorData data = valueOf(load());
  EXPECT_THAT(warnings, IsEmpty());
  const SailorModel &model = *valueOf(data.model("m"));
  EXPECT_EQ(model.layer_count, 2u);
  EXPECT_EQ(valueOf(model.seconds("gpu", 1, 1))[1].pass(), 9);
  EXPECT_EQ(model.parameterBytes(1), 80);
  EXPECT_EQ(valueOf(data.kind("gpu"))->memory_bytes, 1000);
  // 1 GB/s whatever the size, and a fit that turns negative held at the least.
  EXPECT_DOUBLE_EQ(
      valueOf(data.link({"z", "gpu", 1}, {"z", "gpu", 1})).seconds(5e8), 0.5);
  EXPECT_DOUBLE_EQ(valueOf(data.sameKind("gpu", 1)).bytesPerSecond(1e9), 2e6);
}

TEST_F(SailorFiles, HolesAreErrors) {
  SailorData data = valueOf(load());
  const SailorModel &model = *valueOf(data.model("m"));
  EXPECT_EQ(errorOf(model.seconds("gpu", 2, 1)),
            "no profile of 'm' on 'gpu' with microbatches of 2 on tensor "
            "parallelism 1; known (microbatch x tensor parallelism): 1x1");
  EXPECT_EQ(errorOf(model.floats(4)),
            "no sizes of 'm' for tensor parallelism 4; known: 1");
  EXPECT_EQ(errorOf(data.model("n")), "no profile of model 'n'; known: m");
  EXPECT_EQ(errorOf(data.kind("tpu")),
            "unknown device kind 'tpu'; known kinds: gpu");
  EXPECT_EQ(errorOf(data.link({"z", "gpu", 1}, {"z", "gpu", 2})),
            "no bandwidth from 1 x gpu in z to 2 x gpu in z");
}

TEST_F(SailorFiles, NoTimeIsNoMeasurement) {
  files["profiles/layer_times.json"] =
      R"({"m": {"gpu": {"1": {"1": {"0": [1, 2, 0], "1": [4, 5, 6]}}}}})";
  SailorData data = valueOf(load());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr(
                            "layer_times.json:1:27: error: left out: a "
                            "time of 0 s is no measurement (m on gpu)")));
  EXPECT_FALSE(valueOf(data.model("m"))->findSeconds("gpu", 1, 1));
}

TEST_F(SailorFiles, WrongOnesAreLocated) {
  files["profiles/layer_times.json"] =
      R"({"m": {"gpu": {"1": {"1": {"0": [1, 2], "2": [4, "a", 6]}}}}})";
  std::string message = errorOf(load());
  EXPECT_THAT(message,
              HasSubstr("layer_times.json:1:33: error: a layer must be "
                        "a list of 3 numbers, found a list"));
  EXPECT_THAT(message, HasSubstr("expected layer 1, found '2'"));
  EXPECT_THAT(message,
              HasSubstr("a layer must be numbers, found the text 'a'"));
}

TEST_F(SailorFiles, TimesAndSizesAgree) {
  files["profiles/layer_times.json"] =
      R"({"m": {"gpu": {"1": {"1": {"0": [1, 2, 3]}}}}})";
  EXPECT_EQ(errorOf(load()),
            "model 'm' has times of 1 layers on gpu, sizes of 2");
}

const char *const planText = R"({
  "zone": "z",
  "pipeline_list": [{
    "num_stages": 2,
    "layers_per_stage": [[0, 1], [2]],
    "tmp_per_stage": [[[[["A", 4, "z"]], 2], [[["B", 4, "z"]], 4]], [[[["A", 4, "z"]], 1]]],
    "dp": [2, 1]
  }],
  "mbs": 2,
  "gbs": 9
}
)";

TEST(SailorPlans, AreReadAndWritten) {
  SailorPlan plan = valueOf(parseSailorPlan(planText, "p.json"));
  ASSERT_EQ(plan.pipelines.size(), 1u);
  const std::vector<SailorStage> &stages = plan.pipelines[0].stages;
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].end, 2u);
  EXPECT_EQ(stages[0].groups[1].kind, "B");
  EXPECT_EQ(stages[0].groups[1].tensor, 4);
  EXPECT_EQ(plan.microbatches(), 3); // 9 samples, 2 groups of 2
  EXPECT_FALSE(plan.measured_s);
  EXPECT_EQ(formatSailorPlan(plan), planText);
}

TEST(SailorPlans, WrongOnesAreLocated) {
  std::string text = planText;
  text.replace(text.find("[2]]"), 4, "[3]]");
  text.replace(text.find("\"dp\": [2, 1]"), 12, "\"dp\": [2, 2]");
  std::string message = errorOf(parseSailorPlan(text, "p.json"));
  EXPECT_THAT(message,
              HasSubstr("p.json:5:35: error: expected layer 2, found 3"));
  EXPECT_THAT(message, HasSubstr("stage 1 has 1 groups, 'dp' says 2"));
}

} // namespace

//===- DeadlineTest.cpp - every search ends with its deadline -------------===//
//
// Clocks of these tests are not the machine's: one moves on with each question,
// the other counts the processor time of this process, so that whatever else
// runs beside it does not matter.
//
//===----------------------------------------------------------------------===//

#include "autohet/Planner/Planner.h"
#include "planner/Clusters.h"

#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <ctime>

using namespace autohet;

namespace {

double processorSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Nodes of devices, each a digit: the number of its kind.
Cluster makeCluster(llvm::ArrayRef<llvm::StringRef> nodes) {
  Cluster cluster;
  const double memories[] = {16e9, 24e9, 40e9, 80e9, 48e9};
  for (unsigned number = 0; number < 5; ++number) {
    DeviceKind kind;
    kind.name = "k" + std::to_string(number);
    kind.flops_per_s = 1e13 * (2 + number);
    kind.memory_bytes = memories[number];
    kind.memory_bandwidth_bytes_per_s = 1e12;
    cluster.addKind(kind);
  }
  for (llvm::StringRef node : nodes) {
    std::vector<unsigned> devices;
    for (char digit : node)
      devices.push_back(digit - '0');
    cluster.addNode("n" + std::to_string(cluster.nodes.size()), "", devices);
  }
  cluster.intra_node = {200e9, 5e-6};
  cluster.inter_node = {25e9, 10e-6};
  return cluster;
}

struct Case {
  std::vector<llvm::StringRef> nodes;
  int64_t global_batch;
};

/// Few devices of many kinds, alone, together and with divisors of all sorts;
/// and some more devices.
std::vector<Case> cases() {
  return {
      {{"0011223344"}, 256},
      {{"0000112234"}, 55440},
      {{"01234", "01234"}, 65521},
      {{"0", "0", "1", "1", "2", "2", "3", "3", "4", "4"}, 1000},
      {{"00001111", "22223333", "44443333", "22221111"}, 4096},
  };
}

} // namespace

TEST(Deadline, PartsAreOfWhatIsLeft) {
  double now_s = 10;
  Deadline deadline = Deadline::in(8, [&] { return now_s; });
  Deadline half = deadline.part(0.5);
  EXPECT_FALSE(half.isOver());
  EXPECT_EQ(half.secondsLeft(), 4);
  EXPECT_TRUE(half.isOver(5));
  EXPECT_EQ(deadline.before(3).secondsLeft(), 5);
  now_s = 15;
  EXPECT_TRUE(half.isOver());
  EXPECT_FALSE(deadline.isOver());
  EXPECT_EQ(deadline.part(0.5).secondsLeft(), 1.5);
  now_s = 20;
  EXPECT_TRUE(deadline.isOver());
  EXPECT_TRUE(deadline.part(0.5).isOver(1e-9));
  EXPECT_FALSE(Deadline().isSet());
  EXPECT_FALSE(Deadline().part(0.5).isOver(1e9));
  EXPECT_TRUE(Deadline::over().isOver());
}

// Every mode, alone and beside the joint search: a failure takes thirteen times
// as long.
TEST(Deadline, IsKeptByEveryModeOnEveryCluster) {
  constexpr double deadline_s = 0.15, failed_s = 2;
  UnitTable table = test::makeDecoder(32, 2048, 2048, 32000);
  for (const Case &entry : cases()) {
    Cluster cluster = makeCluster(entry.nodes);
    for (PlannerMode mode : allPlannerModes())
      for (bool isCompared : {false, true}) {
        if (isCompared && mode == PlannerMode::Joint)
          continue;
        PlannerOptions options;
        options.global_batch = entry.global_batch;
        options.compare.clear();
        if (isCompared)
          options.compare = {mode};
        else
          options.mode = mode;
        double begin_s = processorSeconds();
        options.deadline = Deadline::in(deadline_s, processorSeconds);
        llvm::Expected<PlannerResult> result =
            planCluster(table, cluster, options);
        EXPECT_LT(processorSeconds() - begin_s, failed_s)
            << plannerModeName(mode).str()
            << (isCompared ? " beside joint" : "") << ", batch "
            << entry.global_batch << ", " << llvm::join(entry.nodes, ",");
        if (result)
          EXPECT_EQ(
              llvm::join(verifyPlan(result->best.plan, table, cluster), "; "),
              "");
        else
          EXPECT_NE(llvm::toString(result.takeError()), "");
      }
  }
}

// Wherever time runs out, there is a plan or a reason.
TEST(Deadline, EndsAfterAnyQuestion) {
  UnitTable table = test::makeDecoder(4, 1024, 512, 1000);
  Cluster cluster = makeCluster({"012", "34"});
  for (unsigned most : {0, 1, 3, 10, 30, 100, 300, 1000, 3000}) {
    unsigned asked = 0;
    PlannerOptions options;
    options.global_batch = 24;
    options.compare = allPlannerModes();
    llvm::erase(options.compare, PlannerMode::Joint);
    options.deadline = Deadline::in(most, [&] { return asked++; });
    llvm::Expected<PlannerResult> result = planCluster(table, cluster, options);
    // Who is told that time is up, does not ask much more.
    EXPECT_LT(asked, most + 1500) << most;
    if (!result) {
      EXPECT_NE(llvm::toString(result.takeError()).find("deadline"),
                std::string::npos);
      continue;
    }
    EXPECT_TRUE(verifyPlan(result->best.plan, table, cluster).empty());
    EXPECT_LE(result->lower_bound_s, result->best.evaluation.step_s);
  }
}

//===- MeasuredTest.cpp - estimates beside published measurements ---------===//

#include "PublishedData.h"
#include "Statistics.h"
#include "autohet/Cluster/Cluster.h"
#include "autohet/Profiles/GpuClusters.h"
#include "autohet/Profiles/VTrain.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;

namespace {

const char *const header =
    "\xEF\xBB\xBF# GPUs,global batch,micro batch,hidden size,attention "
    "heads,# layers,sequence length,tensor parallelism,data "
    "parallelism,pipeline parallelism,iteration time (ms)\n";

TEST(MeasuredSteps, AreRead) {
  auto steps = valueOf(parseMeasuredSteps(
      std::string(header) + "8,32,4,1024,16,24,1024,2,2,2,219.7\n", "f.csv"));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].shape.layers, 24);
  EXPECT_EQ(steps[0].plan.microbatch_size, 4);
  EXPECT_DOUBLE_EQ(steps[0].measured_s, 0.2197);
}

TEST(MeasuredSteps, WrongOnesAreLocated) {
  std::string text = header;
  EXPECT_EQ(errorOf(parseMeasuredSteps(text + "8,32,4\n", "f.csv")),
            "f.csv:2:1: error: the line ends before column 'hidden size'");
  EXPECT_EQ(errorOf(parseMeasuredSteps(
                text + "8,32,4,1024,16,24,1024,2,2,2,nan\n", "f.csv")),
            "f.csv:2:1: error: column 'iteration time (ms)' must be above 0, "
            "found 'nan'");
  EXPECT_EQ(errorOf(parseMeasuredSteps("a,b\n1,2\n", "f.csv")),
            "f.csv:1:1: error: no column 'hidden size'");
  EXPECT_THAT(errorOf(parseMeasuredSteps(text, "f.csv")), HasSubstr("no rows"));
}

TEST(AllReduceTables, AreStraightBetweenEntries) {
  AllReduceTable table = valueOf(parseAllReduceTable(
      "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n"
      "1000,250,float,100,1,90,1\n3000,750,float,200,1,190,1\n",
      "t"));
  EXPECT_DOUBLE_EQ(table.seconds(10), 100e-9); // latency
  EXPECT_DOUBLE_EQ(table.seconds(2000), 150e-9);
  EXPECT_DOUBLE_EQ(table.seconds(6000), 400e-9); // the last one's rate
}

TEST(GpuKinds, EachHasADataSheet) {
  ASSERT_FALSE(gpuKinds().empty());
  for (const GpuKind &kind : gpuKinds()) {
    ASSERT_TRUE(findDataSheet(kind.name)) << kind.name.str();
    EXPECT_GT(kind.flopsPerSecond(), 1e12) << kind.name.str();
  }
  EXPECT_DOUBLE_EQ(findGpuKind("A100-80")->flopsPerSecond(), 312e12);
}

TEST(GpuSteps, GridsMustDivide) {
  GpuCluster cluster;
  cluster.kind = findGpuKind("A100-80");
  ASSERT_TRUE(cluster.kind);
  EXPECT_EQ(
      errorOf(predictStep({1024, 16, 24, 1024}, {1, 1, 5, 1, 8}, cluster, {})),
      "a grid of 1 x 1 x 5 does not divide 24 layers, 16 heads and a "
      "batch of 8");
  EXPECT_EQ(
      errorOf(predictStep({1024, 16, 24, 1024}, {1, 2, 1, 1, 8}, cluster, {})),
      "no all-reduce table for 2 GPUs");
}

TEST(GpuSteps, AreNearMeasuredOnes) {
  std::string folder = publishedData("vtrain");
  AUTOHET_SKIP_WITHOUT(folder);
  VTrainData data = valueOf(loadVTrainData(folder));
  GpuCluster cluster;
  cluster.kind = findGpuKind("A100-80");
  cluster.all_reduce = data.all_reduce;
  std::vector<MeasuredStep> all = data.single;
  all.insert(all.end(), data.multi.begin(), data.multi.end());
  ASSERT_EQ(all.size(), 774u);
  // The constants were fitted on the even rows.
  std::vector<Comparison> judged;
  double sum = 0;
  for (size_t row = 1; row < all.size(); row += 2) {
    double seconds =
        valueOf(predictStep(all[row].shape, all[row].plan, cluster, {})).step_s;
    judged.push_back({"", seconds, all[row].measured_s});
    sum += std::abs(judged.back().error());
  }
  EXPECT_LT(sum / static_cast<double>(judged.size()), 0.08);
  EXPECT_GT(rankCorrelation(judged), 0.97);
}

// LLaMA 7B has 6.74e9 parameters, and a token takes 6 operations for each of
// those in products (the embedding is none) beside attention's.
TEST(GpuClusters, UnitsOfAShape) {
  UnitTable table = unitsOf({4096, 32, 2048, 32000, 11008, true, false});
  ASSERT_EQ(table.units.size(), 66u);
  double bytes = 0, flops = 0;
  for (const UnitParameter &parameter : table.parameters)
    bytes += parameter.bytes;
  for (const Unit &unit : table.units)
    flops += unit.productFlops();
  EXPECT_NEAR(bytes / 4, 6.738e9, 0.01e9);
  double products = 6.0 * 2048 * (bytes / 4 - 32000.0 * 4096);
  double attention = 12.0 * 2048 * 2048 * 4096 * 32;
  EXPECT_NEAR(flops, products + attention, 1e-6 * flops);
  EXPECT_TRUE(table.units.back().successors.empty());
  EXPECT_EQ(table.units[0].successors[0].bytes_per_sample, 2048 * 4096 * 2.0);
}

TEST(GpuClusters, KindsReachAPartOfTheirDataSheet) {
  const GpuKind *sheet = findGpuKind("H20");
  ASSERT_TRUE(sheet);
  DeviceKind kind = deviceKindOf(*sheet, {});
  EXPECT_EQ(kind.name, "H20");
  EXPECT_DOUBLE_EQ(kind.flops_per_s, 148e12 * GpuEfficiency().matmul);
  EXPECT_FALSE(findGpuKind("H21"));
}

TEST(Statistics, RanksTies) {
  std::vector<Comparison> rows = {{"", 1, 10}, {"", 2, 20}, {"", 3, 30}};
  EXPECT_DOUBLE_EQ(rankCorrelation(rows), 1);
  rows[0].measured = 40;
  EXPECT_DOUBLE_EQ(rankCorrelation(rows), -0.5);
  EXPECT_EQ(summarise({{"", 1.1, 1}, {"", 0.5, 1}}),
            "mean 30.00 %, median 30.00 %, worst  50.0 %");
}

} // namespace

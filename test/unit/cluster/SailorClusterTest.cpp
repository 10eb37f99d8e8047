//===- SailorClusterTest.cpp - Sailor's cluster file and quotas -----------===//

#include "autohet/Cluster/SailorCluster.h"

#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"
#include <cstdlib>

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

// Of config/basic_cluster_config.json in eth-easl/sailor (MIT), two kinds.
constexpr llvm::StringLiteral machinesText = R"({
  "A100-40": {"gpus_per_node": 4, "mem_per_gpu": 42338615296},
  "RTX-2080": {"gpus_per_node": 8, "mem_per_gpu": 11811160064},
  "zone": "us-central1-a"
})";

std::vector<std::string> warnings;

llvm::Expected<Cluster> parse(llvm::StringRef text, bool kindsOnly = false) {
  warnings.clear();
  return parseCluster(text, "c.json", warnings, kindsOnly);
}

SailorMachines machines() {
  ErrorList errors("c.json");
  SailorMachines read = readSailorMachines(
      llvm::cantFail(parseJson(machinesText, "c.json")), "c.json", errors);
  EXPECT_TRUE(errors.empty());
  return read;
}

llvm::Expected<Cluster> parseQuotas(llvm::StringRef text) {
  warnings.clear();
  return parseSailorQuotas(text, "q.json", machines(), warnings);
}

std::string refusal(llvm::Expected<Cluster> cluster) {
  return cluster ? "" : llvm::toString(cluster.takeError());
}

std::vector<std::string> nodesOf(const Cluster &cluster) {
  std::vector<std::string> nodes;
  for (const Node &node : cluster.nodes)
    nodes.push_back(node.name + " " + std::to_string(node.device_count));
  return nodes;
}

} // namespace

// Memory is the file's, rates are those of the kind that it means.
TEST(SailorCluster, OneNodeOfEachKind) {
  Cluster cluster = llvm::cantFail(parse(machinesText));
  EXPECT_THAT(nodesOf(cluster), ElementsAre("us-central1-a-A100-40-0 4",
                                            "us-central1-a-RTX-2080-0 8"));
  const DeviceKind &kind = cluster.kindOf(4);
  EXPECT_EQ(kind.name, "RTX-2080");
  EXPECT_EQ(kind.memory_bytes, 11811160064);
  EXPECT_EQ(kind.flops_per_s, findKnownKind("RTX-2080Ti")->flops_per_s);
  EXPECT_THAT(
      warnings,
      ElementsAre(
          HasSubstr("c.json:1:1: warning: says nothing of how many nodes"),
          HasSubstr("10 GB/s within a node and 1.25 GB/s between")));
}

TEST(SailorCluster, KindsOfAHostfile) {
  Cluster kinds = llvm::cantFail(parse(machinesText, /*kindsOnly=*/true));
  EXPECT_TRUE(warnings.empty());
  Cluster cluster =
      llvm::cantFail(parseHostfile("w slots=2 type=A100-40", "hosts", kinds));
  EXPECT_EQ(cluster.kindOf(0).memory_bytes, 42338615296);
}

// The last node has what is left.
TEST(SailorCluster, Quotas) {
  Cluster cluster = llvm::cantFail(
      parseQuotas(R"({"A100-40": {"z": 6, "y": 4}, "RTX-2080": {"z": 0}})"));
  EXPECT_THAT(nodesOf(cluster),
              ElementsAre("z-A100-40-0 4", "z-A100-40-1 2", "y-A100-40-0 4"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("are assumed")));
}

TEST(SailorCluster, Refuses) {
  EXPECT_THAT(
      refusal(parse(R"({"A100": {"gpus_per_node": 4}})")),
      HasSubstr("c.json:1:11: error: a device kind needs 'mem_per_gpu'"));
  EXPECT_THAT(
      refusal(parse(R"({"A100": {"gpus_per_node": 0, "mem_per_gpu": 1e9}})")),
      HasSubstr("c.json:1:28: error: 'gpus_per_node'"));
  EXPECT_THAT(
      refusal(parse(R"({"A100": {"gpus_per_node": 1, "mem_per_gpu": 0}})")),
      HasSubstr("'mem_per_gpu' must be above 0 bytes"));
  EXPECT_THAT(
      refusal(parse(R"({"A1": {"gpus_per_node": 1, "mem_per_gpu": 1e9}})")),
      HasSubstr("c.json:1:2: error: nothing is known of the rates of 'A1'"));
  EXPECT_THAT(
      refusal(parse(R"({"A100": {"gpus_per_node": 1, "mem_per_gpu": 1e9},
                        "zone": "a b"})")),
      HasSubstr("'a b-A100' cannot name a node"));
  EXPECT_THAT(
      refusal(
          parse(R"({"A100": {"gpus_per_node": 999999, "mem_per_gpu": 1e9}})")),
      HasSubstr("more than 100000 devices"));
  EXPECT_THAT(refusal(parseQuotas(R"({"H100": {"z": 4}})")),
              HasSubstr("q.json:1:2: error: unknown device kind 'H100'; c.json "
                        "has: A100-40, RTX-2080"));
  EXPECT_THAT(refusal(parseQuotas(R"({"A100-40": 4})")),
              HasSubstr("must map zones to numbers of devices, found"));
  EXPECT_THAT(refusal(parseQuotas(R"({"A100-40": {"z": -1}})")),
              HasSubstr("q.json:1:19: error: the quota in 'z'"));
  EXPECT_THAT(refusal(parseQuotas(R"({"A100-40": {"z": 0}})")),
              HasSubstr("no devices"));
}

// As both come: the cluster file names the kinds, the quotas in place of a
// hostfile the nodes.
TEST(SailorCluster, PublishedFiles) {
  const char *cases = getenv("AUTOHET_CASES");
  std::string folder = std::string(cases ? cases : "") + "/clusters/";
  if (!cases || !llvm::sys::fs::exists(folder))
    GTEST_SKIP() << "no shared cases: set AUTOHET_CASES";
  ClusterSource source;
  source.file = folder + "sailor-cluster.json";
  warnings.clear();
  EXPECT_EQ(llvm::cantFail(loadCluster(source, warnings)).devices().size(),
            4u * 4 + 3 * 8);
  source.hostfile = folder + "sailor-quotas.json";
  source.include = {"us-central1-*"};
  EXPECT_EQ(llvm::cantFail(loadCluster(source, warnings)).devices().size(),
            2u * (150 + 50 + 100 + 50));
  source.file.clear();
  EXPECT_THAT(refusal(loadCluster(source, warnings)),
              HasSubstr("sailor-quotas.json:1:1: error: these are Sailor's "
                        "quotas"));
}

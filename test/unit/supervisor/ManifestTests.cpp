//===- ManifestTests.cpp - what a manifest may say ------------------------===//

#include "supervisor/Manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime;
using testing::HasSubstr;

static const std::string head =
    R"({"format": 1, "name": "x", "structure_hash": "a", "plan_hash": "b",
        "program_hash": "c", "weights_index": "weights.index", )";

static std::string parse(const std::string &rest, Manifest &manifest) {
  std::string error;
  parseManifest(head + rest + "}", manifest, error);
  return error;
}
static std::string parse(const std::string &rest) {
  Manifest manifest;
  return parse(rest, manifest);
}

/// Nodes of 2, 4, 8 and 8 devices have 22 ranks, in the order of hosts.
TEST(Manifest, NodesMayDifferInSize) {
  std::string nodes, ranks;
  uint32_t sizes[] = {2, 4, 8, 8};
  for (uint32_t node = 0; node < 4; ++node) {
    nodes += std::string(node ? "," : "") + R"({"name": "h)" +
             std::to_string(node) + R"(", "executable": "e"})";
    for (uint32_t device = 0; device < sizes[node]; ++device)
      ranks += std::string(ranks.empty() ? "" : ",") + R"({"node": )" +
               std::to_string(node) + R"(, "device": )" +
               std::to_string(device) + "}";
  }
  Manifest manifest;
  EXPECT_EQ(
      parse("\"nodes\": [" + nodes + "], \"ranks\": [" + ranks + "]", manifest),
      "");
  EXPECT_EQ(manifest.ranks.size(), 22u);
  EXPECT_EQ(manifest.firstRank(2), 6u);
  EXPECT_EQ(manifest.rankCount(3), 8u);
  EXPECT_EQ(manifest.describeRank(21), "rank 21 (h3/7)");
}

TEST(Manifest, NamesTheMistake) {
  const std::string node = R"("nodes": [{"name": "n", "executable": "e"}])";
  const std::string rank = R"("ranks": [{"node": 0, "device": 0}])";
  EXPECT_EQ(parse(node + "," + rank), "");
  EXPECT_THAT(parse(node), HasSubstr("the key \"ranks\" is missing"));
  EXPECT_THAT(
      parse(node + "," + rank + R"(, "rank": 1)"),
      HasSubstr("unknown key \"rank\"; known are cluster_devices, format, "));
  EXPECT_THAT(parse(R"("nodes": [{"name": 5, "executable": "e"}],)" + rank),
              HasSubstr("nodes[0].name: expected a string, found an integer"));
  // It starts nothing but what lies in its folder.
  for (std::string other : {"../e", "/bin/true", "..", ""})
    EXPECT_THAT(parse(R"("nodes": [{"name": "n", "executable": ")" + other +
                      R"("}],)" + rank),
                HasSubstr("nodes[0].executable: expected the name of a file in "
                          "this folder, found \"" +
                          other + "\""));
  EXPECT_THAT(parse(node + R"(, "ranks": [{"node": 1, "device": 0}])"),
              HasSubstr("ranks[0].node: 1, but there are 1 nodes"));
  EXPECT_THAT(parse(node + R"(, "ranks": [{"node": 0, "device": 3},
                                          {"node": 0, "device": 3}])"),
              HasSubstr("ranks[1].device: 3 after 3"));
  EXPECT_THAT(parse(node + "," + rank + R"(, "links": {"intra_node": {}})"),
              HasSubstr("links.intra_node: the key"));
  EXPECT_THAT(parse(node + "," + rank + ", \"nodes\": []"),
              HasSubstr("\"nodes\" stands twice"));
  Manifest manifest;
  std::string error;
  EXPECT_FALSE(parseManifest(R"({"format": 2})", manifest, error));
  EXPECT_THAT(error, HasSubstr("found 2, this version reads 1"));
}

/// A device keeps the index that the cluster file gives it.
TEST(Manifest, LinksAndGapsAreTheClusterFiles) {
  Manifest manifest;
  ASSERT_EQ(parse(R"("nodes": [{"name": "a", "executable": "e"},
                         {"name": "b", "executable": "e"}],
               "ranks": [{"node": 0, "device": 1}, {"node": 0, "device": 3},
                         {"node": 1, "device": 0}],
               "links": {
                 "intra_node": {"bandwidth_bytes_per_s": 8, "latency_s": 1},
                 "inter_node": {"bandwidth_bytes_per_s": 4, "latency_s": 2},
                 "overrides": [
                   {"from": "b", "to": "a/*", "bandwidth_bytes_per_s": 2,
                    "latency_s": 3},
                   {"from": "b", "to": "a/3", "bandwidth_bytes_per_s": 1,
                    "latency_s": 4}]})",
                  manifest),
            "");
  EXPECT_EQ(manifest.describeRank(1), "rank 1 (a/3)");
  EXPECT_EQ(manifest.linkBetween(0, 1).latency_s, 1);
  EXPECT_EQ(manifest.linkBetween(0, 2).latency_s, 2);
  EXPECT_EQ(manifest.linkBetween(2, 0).latency_s, 3);
  EXPECT_EQ(manifest.linkBetween(2, 1).latency_s, 4);
}

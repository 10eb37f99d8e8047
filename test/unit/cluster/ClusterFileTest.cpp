//===- ClusterFileTest.cpp - cluster.yaml ---------------------------------===//

#include "autohet/Cluster/Cluster.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

static const char *const fourWorkers = R"(format: 1
kinds:
  fast:
    memory: 200 MiB
    flops: 40 GFLOP/s
    relative_speed: 4
    target: {triple: x86_64-pc-linux-gnu, features: [avx2, fma]}
  slow: {memory: 100 MiB, flops: 10 GFLOP/s, overhead: 5 us, threads: 2}
nodes:
  - {name: n0, devices: [fast]}
  - name: n1
    address: 10.0.0.2
    devices: [{kind: slow, count: 2}, fast]
links:
  intra_node: {bandwidth: 8 GB/s, latency: 1 us}
  inter_node: {bandwidth: 1 Gbit/s, latency: 50 us}
  overrides:
    - {from: n1, to: n0/0, bandwidth: 10 MB/s, latency: 1 ms}
)";

static Cluster good(llvm::StringRef text,
                    std::vector<std::string> *warnings = nullptr) {
  std::vector<std::string> local;
  auto cluster = parseCluster(text, "c.yaml", warnings ? *warnings : local);
  if (cluster)
    return *cluster;
  ADD_FAILURE() << llvm::toString(cluster.takeError());
  return {};
}

static std::string refuse(llvm::StringRef text) {
  std::vector<std::string> warnings;
  auto cluster = parseCluster(text, "c.yaml", warnings);
  return cluster ? "" : llvm::toString(cluster.takeError());
}

/// The example with one text put in place of another.
static std::string edited(llvm::StringRef from, llvm::StringRef to) {
  std::string text = fourWorkers;
  size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos);
  return text.replace(place, from.size(), to);
}

TEST(ClusterFile, Reads) {
  std::vector<std::string> warnings;
  Cluster cluster = good(fourWorkers, &warnings);
  EXPECT_THAT(warnings, IsEmpty());
  ASSERT_EQ(cluster.devices().size(), 4u);
  EXPECT_EQ(cluster.devices()[3].name, "n1/2");
  EXPECT_EQ(cluster.kindOf(3).name, "fast");
  EXPECT_EQ(cluster.kindOf(1).flops_per_s, 10e9);
  EXPECT_EQ(cluster.kindOf(1).threads, 2);
  EXPECT_DOUBLE_EQ(cluster.kindOf(1).overhead_s, 5e-6);
  EXPECT_THAT(cluster.kindOf(0).target.features, ElementsAre("avx2", "fma"));
  EXPECT_EQ(cluster.nodes[1].address, "10.0.0.2");
  EXPECT_EQ(cluster.findDevice("n1/1"), 2u);
  EXPECT_FALSE(cluster.findDevice("n1/3"));
}

/// What is written reads back as the same cluster, and is written alike again.
TEST(ClusterFile, WritesWhatItReads) {
  std::string extra =
      edited("  - {name: n0, devices: [fast]}\n",
             "  - {name: n0, devices: [fast, A100], nic: 3 "
             "GB/s, link: {bandwidth: 1 GB/s, latency: 0 s}}\n");
  for (const std::string &text : {std::string(fourWorkers), extra}) {
    Cluster cluster = good(text);
    std::string written = formatCluster(cluster);
    EXPECT_THAT(written, HasSubstr("    flops: 40 GFLOP/s\n"));
    EXPECT_THAT(written, HasSubstr("{from: n1, to: \"n0/0\", bandwidth: 10 "
                                   "MB/s, latency: 1 ms}"));
    Cluster again = good(written);
    EXPECT_EQ(formatCluster(again), written);
    ASSERT_EQ(again.devices().size(), cluster.devices().size());
    for (unsigned from = 0; from < cluster.devices().size(); ++from) {
      EXPECT_EQ(again.devices()[from].name, cluster.devices()[from].name);
      const DeviceKind &one = cluster.kindOf(from), &other = again.kindOf(from);
      EXPECT_EQ(other.name, one.name);
      EXPECT_EQ(other.flops_per_s, one.flops_per_s);
      EXPECT_EQ(other.flops_bf16_per_s, one.flops_bf16_per_s);
      EXPECT_EQ(other.memory_bytes, one.memory_bytes);
      EXPECT_EQ(other.host_bandwidth_bytes_per_s,
                one.host_bandwidth_bytes_per_s);
      // 5 us is 5 times 1e-6, which need not be 5e-6.
      EXPECT_DOUBLE_EQ(other.overhead_s, one.overhead_s);
      EXPECT_EQ(other.relative_speed, one.relative_speed);
      EXPECT_EQ(other.is_gpu, one.is_gpu);
      EXPECT_TRUE(other.target == one.target);
      for (unsigned to = 0; to < cluster.devices().size(); ++to)
        EXPECT_EQ(again.link(from, to).seconds(1e6),
                  cluster.link(from, to).seconds(1e6));
    }
    EXPECT_EQ(again.nodes[0].nic_bytes_per_s, cluster.nodes[0].nic_bytes_per_s);
  }
}

TEST(ClusterFile, LinksAreDirected) {
  Cluster cluster = good(fourWorkers);
  EXPECT_EQ(cluster.link(0, 1).bandwidth_bytes_per_s, 0.125e9);
  EXPECT_EQ(cluster.link(1, 0).bandwidth_bytes_per_s, 10e6);
  EXPECT_EQ(cluster.link(1, 2).bandwidth_bytes_per_s, 8e9);
  EXPECT_EQ(cluster.link(2, 2).seconds(1e9), 0);
  EXPECT_DOUBLE_EQ(cluster.link(1, 0).seconds(1e6), 0.101);
}

TEST(ClusterFile, FlopsFollowRelativeSpeed) {
  Cluster cluster = good(edited("    flops: 40 GFLOP/s\n", ""));
  EXPECT_EQ(cluster.kindOf(0).flops_per_s, 400e9);
}

TEST(ClusterFile, KnownKinds) {
  Cluster cluster = good("format: 1\n"
                         "kinds:\n"
                         "  A100-80: {memory: 70 GiB, price: 2 USD/h}\n"
                         "nodes:\n"
                         "  - {name: a, devices: [A100-80, T4]}\n");
  const DeviceKind &a100 = cluster.kindOf(0), &t4 = cluster.kindOf(1);
  EXPECT_EQ(a100.memory_bytes, 70 * 0x1p30);
  EXPECT_EQ(a100.usd_per_hour, 2);
  EXPECT_DOUBLE_EQ(a100.flops_per_s, 0.85 * 19.5e12);
  EXPECT_DOUBLE_EQ(t4.flops_fp16_per_s, 0.55 * 65e12);
  EXPECT_TRUE(t4.is_gpu);
  EXPECT_EQ(t4.source, "NVIDIA T4 data sheet");
  // A measured rate needs no source.
  EXPECT_EQ(good("format: 1\nkinds: {T4: {flops: 6 TFLOP/s}}\n"
                 "nodes: [{name: a, devices: [T4]}]\n")
                .kindOf(0)
                .source,
            "");
}

TEST(ClusterFile, PrecisionNeedsRates) {
  Cluster cluster = good("format: 1\n"
                         "nodes: [{name: a, devices: [A100, V100]}]\n");
  Cluster half = cluster;
  EXPECT_FALSE(bool(half.usePrecision(Precision::FP16)));
  EXPECT_DOUBLE_EQ(half.kindOf(1).flops_per_s, 0.55 * 125e12);
  EXPECT_THAT(llvm::toString(cluster.usePrecision(Precision::BF16)),
              HasSubstr("no rate for bf16: V100 (older devices cannot"));
}

TEST(ClusterFile, NodesByTheDozen) {
  Cluster cluster =
      good("format: 1\n"
           "kinds: {k: {memory: 1 GiB}}\n"
           "nodes:\n"
           "  - {name: a, count: 3, devices: [k, k], nic: 1 GB/s,\n"
           "     link: {bandwidth: 50 GB/s, latency: 1 us}}\n"
           "  - {name: b, devices: [k]}\n"
           "links: {inter_node: {bandwidth: 2 GB/s, latency: 9 us}}\n");
  ASSERT_EQ(cluster.nodes.size(), 4u);
  EXPECT_EQ(cluster.nodes[2].name, "a-2");
  unsigned first = *cluster.findDevice("a-0/0"), b = *cluster.findDevice("b/0");
  EXPECT_EQ(cluster.link(first, first + 1).bandwidth_bytes_per_s, 50e9);
  EXPECT_EQ(cluster.link(first, b).bandwidth_bytes_per_s, 1e9);
  EXPECT_EQ(cluster.link(first, b).latency_s, 9e-6);
  EXPECT_THAT(refuse("format: 1\nkinds: {k: {memory: 1 GiB}}\n"
                     "nodes:\n"
                     "  - {name: a, count: 2, devices: [k]}\n"
                     "  - {name: a-1, devices: [k]}\n"),
              HasSubstr("node 'a-1' is given twice"));
  EXPECT_THAT(refuse("format: 1\nkinds: {k: {memory: 1 GiB}}\n"
                     "nodes: [{name: a, count: 2000000, devices: [k]}]\n"),
              HasSubstr("more than 100000 devices"));
}

TEST(ClusterFile, Refuses) {
  EXPECT_THAT(refuse(edited("relative_speed", "speed")),
              HasSubstr("c.yaml:6:5: error: unknown key 'speed' in device kind "
                        "'fast'; known keys: memory, flops"));
  EXPECT_THAT(
      refuse(edited("[fast]", "[quick]")),
      HasSubstr("unknown device kind 'quick'; known kinds: fast, slow; known "
                "without being described: A10, A40"));
  EXPECT_THAT(refuse(edited("name: n1", "name: n0")),
              HasSubstr("node 'n0' is given twice"));
  EXPECT_THAT(refuse(edited("8 GB/s", "0 GB/s")),
              HasSubstr("'bandwidth' of the intra-node link must be above 0"));
  EXPECT_THAT(refuse(edited("200 MiB", "nan MiB")),
              HasSubstr("not a finite number"));
  EXPECT_THAT(refuse(edited("200 MiB", "-2 MiB")), HasSubstr("is negative"));
  EXPECT_THAT(refuse(edited("200 MiB", "200")), HasSubstr("has no unit"));
  EXPECT_THAT(refuse(edited("relative_speed: 4", "relative_speed: 0")),
              HasSubstr("must be above 0"));
  // What no machine has is refused as nothing is.
  EXPECT_THAT(refuse(edited("8 GB/s", "1e-300 GB/s")),
              HasSubstr("'bandwidth' of the intra-node link is far from what "
                        "machines have: wanted 10 kB/s to 100 TB/s"));
  EXPECT_THAT(refuse(edited("200 MiB", "1e300 MiB")),
              HasSubstr("is far from what machines have"));
  EXPECT_THAT(refuse(edited("relative_speed: 4", "relative_speed: 1e-300")),
              HasSubstr("'relative_speed' of device kind 'fast' is far from "
                        "what machines have: wanted 0.01 to 10000"));
  EXPECT_THAT(refuse(edited("n0/0,", "n7/0,")),
              HasSubstr("no device matches 'n7/0'"));
  EXPECT_THAT(refuse(edited("[fast]", "[]")), HasSubstr("has no devices"));
  EXPECT_THAT(refuse(edited("name: n0", "name: n/0")),
              HasSubstr("cannot name a node"));
  EXPECT_THAT(refuse(edited("name: n0", "name: ''")),
              HasSubstr("a node's name is empty"));
  EXPECT_THAT(refuse(edited("8 GB/s", "8e305 TB/s")), HasSubstr("too large"));
  EXPECT_THAT(refuse(edited("200 MiB", "200 MiB MiB")),
              HasSubstr("unknown unit 'MiB MiB'"));
  EXPECT_THAT(refuse(edited("name: n0", "name: n\xe9")),
              HasSubstr("error: not UTF-8 text"));
  EXPECT_THAT(refuse(edited("format: 1", "format: 2")),
              HasSubstr("this version reads format 1"));
  EXPECT_THAT(refuse("format: 1\nkinds: {}\nnodes: []\n"),
              HasSubstr("at least one node"));
  EXPECT_THAT(refuse(""), HasSubstr("must be a mapping, found nothing"));
}

// They are handed to ssh, and become parts of files' names.
TEST(ClusterFile, RefusesNamesThatMeanSomethingElse) {
  for (auto [name, problem] :
       {std::pair("'-n0'", "begins with '-', as options do"),
        {"'..'", "means a folder"},
        {"\"n\\e0\"", "'n\\x1b0' cannot name a node: it holds a control"},
        {"\"n\\n0\"", "'n\\x0a0' cannot name a node: it holds a control"}})
    EXPECT_THAT(
        refuse(edited("name: n0", ("name: " + llvm::Twine(name)).str())),
        HasSubstr(problem));
  for (auto [address, problem] :
       {std::pair("-oProxyCommand=x",
                  "c.yaml:10:25: error: '-oProxyCommand=x' cannot be the "
                  "address of node 'n0': it begins with '-'"),
        {"''", "it is empty"},
        {"'a b'", "holds ' ', which is in no host's name or number"},
        {"a;b", "holds ';'"}})
    EXPECT_THAT(
        refuse(edited("name: n0",
                      ("name: n0, address: " + llvm::Twine(address)).str())),
        HasSubstr(problem));
  good(edited("name: n0", "name: n0, address: 'fe80::1%eth0'"));
  EXPECT_THAT(refuse(edited("fast:", "\"fa\\tst\":")),
              HasSubstr("cannot name a device kind: it holds a control"));
  EXPECT_THAT(refuse(edited("relative_speed: 4",
                            "relative_speed: 4\n    threads: 1000000000000")),
              HasSubstr("'threads' of device kind 'fast' must be at most 4096, "
                        "found 1000000000000"));
}

// What is emulated is what is planned for.
TEST(ClusterFile, SpeedsAreThoseOfTheFlops) {
  const std::string nodes = "nodes: [{name: a, devices: [x, y]}]\n";
  Cluster cluster = good("format: 1\nkinds:\n"
                         "  x: {memory: 1 GiB, flops: 40 GFLOP/s}\n"
                         "  y: {memory: 1 GiB, flops: 10 GFLOP/s}\n" +
                         nodes);
  EXPECT_DOUBLE_EQ(
      cluster.kindOf(0).relative_speed / cluster.kindOf(1).relative_speed, 4);
  cluster =
      good("format: 1\nkinds:\n"
           "  x: {memory: 1 GiB, flops: 40 GFLOP/s}\n"
           "  y: {memory: 1 GiB, flops: 10 GFLOP/s, relative_speed: 3}\n" +
           nodes);
  EXPECT_DOUBLE_EQ(cluster.kindOf(0).relative_speed, 12);
  EXPECT_DOUBLE_EQ(cluster.kindOf(1).relative_speed, 3);
}

TEST(ClusterFile, WarnsAboutAbsurdReadings) {
  std::vector<std::string> warnings;
  good(edited("200 MiB", "200 B"), &warnings);
  EXPECT_THAT(warnings,
              ElementsAre("c.yaml:4:13: warning: 'memory' of device kind "
                          "'fast' reads as 200 B: is the unit right?"));
}

TEST(ClusterFile, WarnsAboutOverheadOfAUnit) {
  std::vector<std::string> warnings;
  good(edited("5 us", "20 us"), &warnings);
  EXPECT_THAT(warnings,
              ElementsAre("c.yaml:8:56: warning: 'overhead' of device kind "
                          "'slow' reads as 20 us to start each kernel and each "
                          "product: is it meant for a whole unit of the "
                          "model?"));
}

TEST(ClusterFile, Filter) {
  Cluster cluster = good(fourWorkers);
  auto kept = cluster.filter({"n1/1", "n0"});
  ASSERT_TRUE(static_cast<bool>(kept));
  ASSERT_EQ(kept->devices().size(), 2u);
  // The index stays what it is in the file.
  EXPECT_EQ(kept->devices()[1].name, "n1/1");
  EXPECT_EQ(kept->devices()[1].index, 1u);
  EXPECT_EQ(kept->findDevice("n1/1"), 1u);
  EXPECT_FALSE(kept->findDevice("n1/0"));
  EXPECT_EQ(kept->link(1, 0).bandwidth_bytes_per_s, 10e6);

  EXPECT_EQ(llvm::toString(cluster.filter({"n1/3"}).takeError()),
            "no device matches 'n1/3'; there are n1/0, n1/1, n1/2");
  EXPECT_EQ(llvm::toString(cluster.filter({"x"}).takeError()),
            "no device matches 'x'; there are n0, n1");
}

TEST(ClusterFile, Missing) {
  std::vector<std::string> warnings;
  auto cluster = loadCluster("nope.yaml", warnings);
  ASSERT_FALSE(static_cast<bool>(cluster));
  EXPECT_THAT(llvm::toString(cluster.takeError()),
              HasSubstr("nope.yaml: error: cannot read"));
}

TEST(LocalCluster, IsOneDevice) {
  Cluster cluster = localCluster();
  ASSERT_EQ(cluster.devices().size(), 1u);
  EXPECT_EQ(cluster.devices()[0].name, "localhost/0");
  EXPECT_GT(cluster.kindOf(0).memory_bytes, 1e6);
  EXPECT_GT(cluster.kindOf(0).flops_per_s, 0);
}

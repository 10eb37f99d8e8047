//===- HostfileTest.cpp - hostfiles ---------------------------------------===//

#include "autohet/Cluster/Cluster.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;

static Cluster kinds() {
  Cluster cluster;
  for (const char *name : {"A100", "V100"}) {
    DeviceKind kind;
    kind.name = name;
    kind.memory_bytes = 1e9;
    kind.flops_per_s = 1e12;
    cluster.addKind(kind);
  }
  return cluster;
}

static Cluster good(llvm::StringRef text) {
  auto cluster = parseHostfile(text, "hosts", kinds());
  if (cluster)
    return *cluster;
  ADD_FAILURE() << llvm::toString(cluster.takeError());
  return {};
}

static std::string refuse(llvm::StringRef text) {
  auto cluster = parseHostfile(text, "hosts", kinds());
  return cluster ? "" : llvm::toString(cluster.takeError());
}

TEST(Hostfile, CountsEverySlot) {
  Cluster cluster = good("# four hosts\nw1 slots=2\nw2 slots=4  # big\n\n"
                         "w3 slots=8\nw4 slots=8\n");
  EXPECT_EQ(cluster.devices().size(), 22u);
  EXPECT_EQ(cluster.nodes[3].first_device, 14u);
  EXPECT_EQ(cluster.kindOf(0).name, "host");
  EXPECT_EQ(good("w slots=16").devices().size(), 16u);
}

TEST(Hostfile, Types) {
  Cluster cluster = good("w1 slots=1 type=A100\nw2 slots=2 type=V100");
  EXPECT_EQ(cluster.kindOf(2).name, "V100");
  EXPECT_EQ(cluster.nodes[1].address, "w2");
}

TEST(Hostfile, Refuses) {
  EXPECT_THAT(refuse("w slots=1 type=Z1"),
              HasSubstr("hosts:1:1: error: unknown device kind 'Z1'; known "
                        "kinds: A100, V100; known without being described: "
                        "A10, A40"));
  EXPECT_THAT(refuse("w1 slots=1\nw2 slots=1 type=A100"),
              HasSubstr("all hosts have a type or none has"));
  EXPECT_THAT(refuse("w slots=1\nw slots=2"), HasSubstr("given twice"));
  EXPECT_THAT(refuse("-oX slots=2"), HasSubstr("begins with '-'"));
  EXPECT_THAT(refuse("w"), HasSubstr("needs slots=N"));
  EXPECT_THAT(refuse("w slots=0"), HasSubstr("above 0"));
  EXPECT_THAT(refuse("w slots=2x"), HasSubstr("above 0, found '2x'"));
  EXPECT_THAT(refuse("me@w slots=2"), HasSubstr("not a plain host name"));
  EXPECT_THAT(refuse("w slots=2 port=3"), HasSubstr("unknown word 'port=3'"));
  EXPECT_THAT(refuse("w slots=2 slots=3"), HasSubstr("'slots' is given twice"));
  EXPECT_THAT(refuse("v slots=1\nw\xff slots=2"),
              HasSubstr("hosts:2:2: error: not UTF-8 text"));
  EXPECT_THAT(refuse("# none\n"), HasSubstr("names no host"));
}

TEST(Hostfile, Missing) {
  auto cluster = loadHostfile("nope.txt", Cluster());
  ASSERT_FALSE(static_cast<bool>(cluster));
  EXPECT_THAT(llvm::toString(cluster.takeError()),
              HasSubstr("nope.txt: error: cannot read: No such file"));
}

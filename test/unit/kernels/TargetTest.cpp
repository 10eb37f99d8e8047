//===- TargetTest.cpp - targets, the cache of kernels, the linker ---------===//

#include "autohet/Target/CPU/LinkNode.h"
#include "autohet/Target/CPU/ObjectCache.h"
#include "autohet/Target/CPU/TargetOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"

#include <fstream>
#include <gtest/gtest.h>

using namespace autohet::cpu;

namespace {

TEST(Target, HostIsABaselineAndAdditions) {
  auto host = resolveTarget({});
  ASSERT_TRUE(bool(host)) << llvm::toString(host.takeError());
  EXPECT_TRUE(host->cpu == "x86-64-v3" || host->cpu == "x86-64-v4");
  EXPECT_EQ(host->preferVectorWidth, host->cpu == "x86-64-v4" ? 512u : 256u);
  // What it stands for is on this machine's list too.
  llvm::StringMap<bool> present = llvm::sys::getHostCPUFeatures();
  for (const std::string &feature : requiredFeatures(*host))
    EXPECT_TRUE(feature == "x87" || present.lookup(feature)) << feature;
}

TEST(Target, NamedOnesAreKept) {
  TargetOptions wanted;
  wanted.cpu = "x86-64-v3";
  auto target = resolveTarget(wanted);
  ASSERT_TRUE(bool(target));
  EXPECT_EQ(target->cpu, "x86-64-v3");
  EXPECT_EQ(target->preferVectorWidth, 256u);
}

TEST(Target, FeaturesImplyOthers) {
  TargetOptions wanted;
  wanted.features = "+avx512bf16,-movbe";
  auto refused = resolveTarget(wanted);
  EXPECT_EQ(llvm::toString(refused.takeError()),
            "the target 'x86-64-v3 +avx512bf16,-movbe' lacks movbe; generated "
            "code needs at least x86-64-v3");
  wanted.features = "+avx512bf16,+avx512vl";
  auto target = resolveTarget(wanted);
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  EXPECT_EQ(target->preferVectorWidth, 512u);
  std::vector<std::string> required = requiredFeatures(*target);
  for (const char *feature : {"avx512bf16", "avx512f", "avx2", "fma", "sse2"})
    EXPECT_TRUE(llvm::is_contained(required, feature)) << feature;
  EXPECT_FALSE(llvm::is_contained(required, "avx512fp16"));
}

TEST(Target, UnknownNamesAreRefused) {
  TargetOptions wanted;
  wanted.features = "+no-such-feature";
  std::string message = llvm::toString(resolveTarget(wanted).takeError());
  EXPECT_NE(message.find("'no-such-feature'"), std::string::npos) << message;
  wanted.features = "avx2";
  message = llvm::toString(resolveTarget(wanted).takeError());
  EXPECT_NE(message.find("'avx2' needs '+'"), std::string::npos) << message;
  wanted = {};
  wanted.cpu = "cray-1";
  message = llvm::toString(resolveTarget(wanted).takeError());
  EXPECT_NE(message.find("'cray-1'"), std::string::npos) << message;
  wanted.cpu = "x86-64-v2";
  message = llvm::toString(resolveTarget(wanted).takeError());
  EXPECT_NE(message.find("lacks avx2"), std::string::npos) << message;
}

TEST(Target, OtherMachinesAreRefused) {
  TargetOptions wanted;
  wanted.triple = "aarch64-linux-gnu";
  auto target = resolveTarget(wanted);
  ASSERT_FALSE(bool(target));
  std::string message = llvm::toString(target.takeError());
  EXPECT_NE(message.find("aarch64-linux-gnu"), std::string::npos) << message;
  EXPECT_NE(message.find("x86_64"), std::string::npos) << message;
}

class Folder {
public:
  Folder() { llvm::sys::fs::createUniqueDirectory("autohet-test", path); }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string operator/(const char *name) const {
    return path.str().str() + "/" + name;
  }
  llvm::SmallString<128> path;
};

TEST(ObjectCache, OutlivesTheProcess) {
  Folder folder;
  ObjectCache(folder.path)
      .insert("key", {"symbol", std::string("a\0b", 3), 64});
  auto found = ObjectCache(folder.path).lookup("key");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->symbol, "symbol");
  EXPECT_EQ(found->object, std::string("a\0b", 3));
  EXPECT_EQ(found->scratchBytes, 64);
  EXPECT_FALSE(ObjectCache(folder.path).lookup("other").has_value());
}

TEST(ObjectCache, DamagedEntriesAreMisses) {
  Folder folder;
  ObjectCache(folder.path).insert("key", {"symbol", "object", 0});
  std::string path = folder / "key.kernel";
  std::string bytes = (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  bytes.back() ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_FALSE(ObjectCache(folder.path).lookup("key").has_value());
  std::ofstream(path, std::ios::binary) << bytes.substr(0, 12);
  EXPECT_FALSE(ObjectCache(folder.path).lookup("key").has_value());
}

TEST(LinkNode, ReportsWhatTheLinkerSays) {
  Folder folder;
  LinkOptions options;
  options.shared = true;
  llvm::StringRef notAnObject = "these are no object's bytes";
  std::string output = folder / "node0";
  std::string message =
      llvm::toString(linkNode({notAnObject}, output, options));
  EXPECT_NE(message.find("linking " + output + " failed"), std::string::npos)
      << message;
  EXPECT_NE(message.find("kernel0.o"), std::string::npos) << message;
  EXPECT_FALSE(llvm::sys::fs::exists(output));
}

TEST(LinkNode, NamesAMissingRuntime) {
  Folder folder;
  LinkOptions options;
  options.runtimeLibrary = folder / "libNone.a";
  std::string message = llvm::toString(linkNode({}, folder / "node0", options));
  EXPECT_NE(message.find("libNone.a"), std::string::npos) << message;
}

} // namespace

//===- DocumentsTest.cpp - files that people copy are legal ---------------===//
//
// The examples of the documentation, the cluster files beside them, and
// hostfiles as users of other tools have them.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/Cluster.h"
#include "autohet/Support/Tree.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gmock/gmock.h"
#include <cstdlib>

using namespace autohet;
using testing::IsEmpty;

static std::string read(const std::string &path) {
  llvm::Expected<std::string> text = readTextFile(path);
  if (text)
    return *text;
  ADD_FAILURE() << llvm::toString(text.takeError());
  return "";
}

static std::string source(llvm::StringRef path) {
  return (llvm::StringRef(AUTOHET_SOURCE_DIR) + "/" + path).str();
}

static Cluster parse(llvm::StringRef text, llvm::StringRef file) {
  std::vector<std::string> warnings;
  auto cluster = parseCluster(text, file, warnings);
  EXPECT_THAT(warnings, IsEmpty());
  if (cluster)
    return *cluster;
  ADD_FAILURE() << llvm::toString(cluster.takeError());
  return {};
}

TEST(Documents, ClusterFormat) {
  std::string page = read(source("docs/formats/cluster.md"));
  llvm::StringRef example = llvm::StringRef(page).split("```yaml\n").second;
  Cluster cluster = parse(example.split("```").first, "cluster.md");
  EXPECT_EQ(cluster.devices().size(), 4u);
}

TEST(Documents, ExampleClusters) {
  std::error_code error;
  unsigned files = 0;
  for (llvm::sys::fs::directory_iterator
           entry(source("examples/clusters"), error),
       end;
       entry != end && !error; entry.increment(error)) {
    if (!llvm::StringRef(entry->path()).ends_with(".yaml"))
      continue;
    ++files;
    EXPECT_GT(parse(read(entry->path()), entry->path()).devices().size(), 0u);
  }
  EXPECT_GT(files, 0u);
}

TEST(Documents, HostfilesOfOtherTools) {
  const char *cases = getenv("AUTOHET_CASES");
  std::string folder = std::string(cases ? cases : "") + "/clusters/";
  if (!cases || !llvm::sys::fs::exists(folder))
    GTEST_SKIP() << "no shared cases: set AUTOHET_CASES";
  auto plain = loadHostfile(folder + "deepspeed-hostfile.txt", Cluster());
  ASSERT_TRUE(static_cast<bool>(plain)) << llvm::toString(plain.takeError());
  EXPECT_GT(plain->devices().size(), 1u);

  // Types have to be known.
  auto typed = loadHostfile(folder + "flagscale-hostfile-typed.txt", Cluster());
  ASSERT_FALSE(static_cast<bool>(typed));
  EXPECT_THAT(llvm::toString(typed.takeError()),
              testing::HasSubstr("no cluster file defines kinds"));
}

//===- TreeTest.cpp - trees from YAML and JSON, and reading them ----------===//

#include "autohet/Support/TreeReader.h"

#include "gmock/gmock.h"
#include <chrono>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace autohet;
using testing::HasSubstr;

template <typename T>
static T good(llvm::Expected<T> read) {
  if (read)
    return *read;
  ADD_FAILURE() << llvm::toString(read.takeError());
  return {};
}

template <typename T>
static std::string message(llvm::Expected<T> read) {
  return read ? "" : llvm::toString(read.takeError());
}

TEST(Tree, Yaml) {
  Tree tree = good(parseYaml("a: 80 GiB\nb:\n  - x\n  - {c: \"4\"}\n", "f"));
  EXPECT_EQ(tree.find("a")->text, "80 GiB");
  const Tree &list = *tree.find("b");
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[0].location.line, 3u);
  EXPECT_EQ(list.items[0].location.column, 5u);
  EXPECT_TRUE(list.items[1].find("c")->quoted);
  EXPECT_EQ(good(parseYaml("", "f")).kind, Tree::Kind::Null);
}

TEST(Tree, YamlErrors) {
  EXPECT_THAT(message(parseYaml("a: 1\na: 2\n", "f")),
              HasSubstr("f:2:1: error: key 'a' is given twice"));
  EXPECT_THAT(message(parseYaml("a: [1\n", "f")), HasSubstr("f:"));
  EXPECT_THAT(message(parseYaml("a: &x 1\nb: *x\n", "f")),
              HasSubstr("anchors are not supported"));
  EXPECT_THAT(message(parseYaml("a: 1\n---\nb: 2\n", "f")),
              HasSubstr("more than one document"));
}

TEST(Tree, Json) {
  Tree tree = good(parseJson(
      "{\"a\": [1, -2.5e3, true],\n \"b\\u00e9\":{}, \"c\": null}", "f"));
  EXPECT_EQ(tree.find("a")->items[1].text, "-2.5e3");
  EXPECT_EQ(tree.find("b\xc3\xa9")->kind, Tree::Kind::Mapping);
  EXPECT_EQ(tree.find("b\xc3\xa9")->location.line, 2u);
  EXPECT_EQ(tree.find("c")->kind, Tree::Kind::Null);
  EXPECT_TRUE(good(parseJson("[ ]", "f")).items.empty());
}

TEST(Tree, JsonErrors) {
  EXPECT_THAT(message(parseJson("{\"a\": 1,\n \"b\" 2}", "f")),
              HasSubstr("f:2:"));
  EXPECT_THAT(message(parseJson("{\"a\": 1,\n \"a\": 2}", "f")),
              HasSubstr("f:2:2: error: key 'a' is given twice"));
  EXPECT_THAT(message(parseJson("", "f")), HasSubstr("not JSON"));
}

// The parsers behind both recurse: no text may overflow the stack.
TEST(Tree, DeepNestingIsRefused) {
  auto repeated = [](llvm::StringRef text, unsigned count) {
    std::string result;
    for (unsigned index = 0; index < count; ++index)
      result += text;
    return result;
  };
  std::string fits = repeated("[", 200) + repeated("]", 200);
  good(parseYaml(fits, "f"));
  good(parseJson(fits, "f"));
  for (llvm::StringRef open : {"[", "{a: ", "- ", "? ", "[{a: "})
    EXPECT_THAT(message(parseYaml(repeated(open, 100000), "f")),
                HasSubstr("error: nested too deeply"))
        << open.str();
  for (llvm::StringRef open : {"[", "{\"a\":", "[\"]\","})
    EXPECT_THAT(message(parseJson(repeated(open, 100000), "f")),
                HasSubstr("error: nested too deeply"))
        << open.str();
  EXPECT_EQ(message(parseJson("\n" + repeated("[", 201), "f")),
            "f:2:201: error: nested too deeply");
  good(parseJson("[\"" + repeated("[", 1000) + "\"]", "f"));
}

// Any name may be given for a file's.
TEST(Tree, FilesWithoutAnEndAreRefused) {
  EXPECT_THAT(message(readTextFile("/dev/zero")),
              HasSubstr("/dev/zero: error: cannot read: it does not end within "
                        "64 MiB"));
  EXPECT_THAT(message(readTextFile("/")),
              HasSubstr("error: cannot read: it is a folder"));
  EXPECT_EQ(good(readTextFile("/dev/null")), "");
  EXPECT_NE(good(readTextFile("/proc/self/status")), "");
  std::string folder = testing::TempDir(), pipe = folder + "/pipe",
              large = folder + "/large";
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message(readTextFile(pipe)), HasSubstr("nobody writes to it"));
  std::thread writer([&] {
    std::ofstream file(pipe);
    file << "a: 1";
    file.flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    file << "2\n";
  });
  EXPECT_EQ(good(readTextFile(pipe)), "a: 12\n");
  writer.join();
  unlink(pipe.c_str());
  std::ofstream(large).put('a');
  ASSERT_EQ(truncate(large.c_str(), int64_t(1) << 40), 0);
  EXPECT_THAT(message(readTextFile(large)),
              HasSubstr("has 1 TiB, wanted a text of at most 64 MiB"));
  unlink(large.c_str());
}

TEST(TreeReader, ReportsEverythingAtOnce) {
  Tree tree =
      good(parseYaml("size: -3\nspeed: fast\nelasticity: on\nlist: 4\n", "f"));
  ErrorList errors("f");
  MappingReader reader(tree, "a job", errors);
  int64_t size = 7;
  double speed = 0;
  std::string name;
  EXPECT_FALSE(reader.required("size", size));
  EXPECT_FALSE(reader.required("speed", speed, Dimension::None));
  EXPECT_FALSE(reader.required("name", name));
  EXPECT_TRUE(reader.items("list", true).empty());
  reader.finish();
  EXPECT_EQ(size, 7);
  EXPECT_EQ(llvm::toString(errors.take()),
            "f:1:7: error: 'size' of a job must be at least 0, found -3\n"
            "f:2:8: error: 'speed' of a job: 'fast' is not a finite number\n"
            "f:1:1: error: a job needs 'name'\n"
            "f:4:7: error: 'list' of a job must be a list, found '4'\n"
            "f:3:1: error: unknown key 'elasticity' in a job; known keys: "
            "size, speed, name, list");
}

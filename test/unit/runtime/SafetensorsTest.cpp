//===- SafetensorsTest.cpp - good and hostile files -------------------------===//

#include "LinearModel.h"

#include "autohet/runtime/streams.h"
#include "core/Gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

static std::string bytesOf(const std::string &header, size_t dataBytes) {
  uint64_t size = header.size();
  std::string file(reinterpret_cast<char *>(&size), 8);
  return file + header + std::string(dataBytes, 'x');
}

static std::string errorOf(const std::string &bytes) {
  TemporaryFolder folder;
  writeFile(folder / "f", bytes);
  try {
    SafetensorsFile file(folder / "f");
  } catch (const Error &error) {
    EXPECT_EQ(error.status, AH_ERROR_INPUT);
    return error.what();
  }
  return "no error";
}

TEST(Safetensors, RoundTrip) {
  TemporaryFolder folder;
  std::vector<float> a = {1, 2, 3, 4, 5, 6};
  int64_t b = 42;
  writeSafetensors(
      folder / "f",
      {{"a \"quoted\"", AH_F32, {2, 3}, [&] { return (const void *)a.data(); }},
       {"empty", AH_F32, {0, 7}, [] { return (const void *)nullptr; }},
       {"scalar", AH_I64, {}, [&] { return (const void *)&b; }}},
      {{"made", "by a test"}});
  SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("made"), "by a test");
  const TensorInfo &info = file.get("a \"quoted\"");
  EXPECT_EQ(info.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(memcmp(file.data(info), a.data(), 24), 0);
  EXPECT_EQ(file.get("scalar").elements(), 1);
  EXPECT_EQ(file.get("empty").bytes, 0u);
  EXPECT_EQ(info.offset % 8, 0u);
  try {
    file.get("b");
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("no tensor 'b'; it has: "));
  }
}

TEST(Safetensors, HostileFiles) {
  const std::string one =
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(errorOf(bytesOf(one, 8)), "no error");
  EXPECT_EQ(errorOf(bytesOf("{}", 0)), "no error");
  EXPECT_THAT(errorOf(""), HasSubstr("is not a safetensors file: 0 bytes"));
  EXPECT_THAT(errorOf(bytesOf(one, 8).substr(0, 20)),
              HasSubstr("is truncated"));
  EXPECT_THAT(
      errorOf(bytesOf(one, 7)),
      HasSubstr("is truncated: tensor 'w' ends at byte 70, the file has 69"));
  EXPECT_THAT(errorOf(bytesOf(one, 66 + 8)),
              HasSubstr("66 bytes after the last tensor"));
  EXPECT_THAT(errorOf(std::string(100, '\xff')),
              HasSubstr("is not a safetensors file"));
  EXPECT_THAT(errorOf(bytesOf("[]", 0)), HasSubstr("no JSON object"));
  EXPECT_THAT(errorOf(bytesOf("{\"w\":", 0)), HasSubstr("is not JSON"));
  EXPECT_THAT(errorOf(bytesOf(
                  R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                  8)),
              HasSubstr("w"));
  EXPECT_THAT(
      errorOf(bytesOf(
          R"({"w":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8)),
      HasSubstr("tensor 'w': unknown dtype 'F99'"));
  EXPECT_THAT(
      errorOf(bytesOf(
          R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
      HasSubstr("F32 of [3] needs 12 bytes, data_offsets give 8"));
  EXPECT_THAT(
      errorOf(bytesOf(
          R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8)),
      HasSubstr("not a natural number"));
  EXPECT_THAT(
      errorOf(bytesOf(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],)"
                      R"("data_offsets":[0,8]}})",
                      8)),
      HasSubstr("shape is too large"));
  EXPECT_THAT(
      errorOf(bytesOf(
          R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8)),
      HasSubstr("data_offsets are not a begin and an end"));
  EXPECT_THAT(
      errorOf(bytesOf(
          R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12)),
      HasSubstr("tensor 'w' begins at byte 4 of the data, wanted 0"));
  EXPECT_THAT(errorOf(bytesOf(
                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                  12)),
              HasSubstr("tensor 'b' begins at byte 4 of the data, wanted 8"));
  EXPECT_THAT(
      errorOf(bytesOf(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],)"
                      R"("extra":1}})",
                      8)),
      HasSubstr("unknown key 'extra'"));
  EXPECT_THAT(errorOf(bytesOf(R"({"__metadata__":{"a":1}})", 0)),
              HasSubstr("__metadata__"));
}

TEST(Gather, PiecesMakeWholeTensorsOrSayWhatIsMissing) {
  TemporaryFolder folder;
  auto piece = [](int64_t begin, std::vector<float> values) {
    Piece p{"w", AH_F32, {{4}, {begin}, {int64_t(values.size())}}, {}};
    p.bytes.assign((char *)values.data(),
                   (char *)(values.data() + values.size()));
    return p;
  };
  writePieces(folder / "f", {piece(3, {4}), piece(0, {1, 2, 3})});
  EXPECT_EQ(readFloats(folder / "f", "w"), (std::vector<float>{1, 2, 3, 4}));
  try {
    writePieces(folder / "g", {piece(3, {4}), piece(0, {1, 2})});
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("tensor 'w': no rank has element 2"));
  }
  // Nothing is written half.
  EXPECT_NE(access((folder / "g").c_str(), F_OK), 0);
}

/// Files take their places by renaming, which must not take a device's or a
/// link's place.
TEST(AtomicFile, OutgrowingTheLimitIsAnError) {
  TemporaryFolder folder;
  std::string path = folder / "f", said = folder / "said";
  pid_t child = fork();
  if (child == 0) {
    ah_ignore_size_signal(); // as every main does
    rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      AtomicFile file(path);
      std::vector<char> bytes(10000);
      file.write(bytes.data(), bytes.size());
      file.commit();
    } catch (const Error &error) {
      writeFile(said, error.what());
    }
    _exit(0);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  MappedFile message(said);
  EXPECT_THAT(std::string(message.data(), message.size()),
              HasSubstr("cannot write '" + path + "': File too large"));
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(AtomicFile, KeepsLinksAndSparesWhatIsNoFile) {
  TemporaryFolder folder;
  writeFile(folder / "target", "old");
  ASSERT_EQ(symlink((folder / "target").c_str(), (folder / "link").c_str()), 0);
  AtomicFile file(folder / "link");
  file.write("new", 3);
  file.commit();
  MappedFile target(folder / "target");
  EXPECT_EQ(std::string(target.data(), target.size()), "new");
  struct stat about;
  ASSERT_EQ(lstat((folder / "link").c_str(), &about), 0);
  EXPECT_TRUE(S_ISLNK(about.st_mode));

  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  try {
    AtomicFile pipe(folder / "pipe");
    ADD_FAILURE() << "no error";
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("no regular file"));
  }
}

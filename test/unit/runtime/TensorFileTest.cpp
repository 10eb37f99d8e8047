//===- TensorFileTest.cpp - .npy, .pb and .raw ------------------------------===//

#include "LinearModel.h"

#include "data/TensorFile.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

static std::string errorOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

static std::string readFile(const std::string &path) {
  MappedFile file(path);
  return {file.data(), file.data() + file.size()};
}

TEST(TensorFile, RoundTripOfEveryType) {
  TemporaryFolder folder;
  std::vector<char> bytes(8 * 15);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = char(i * 37 % 251 & 1); // valid in the narrowest type
  for (uint8_t dtype = 0; dtype < AH_DTYPE_COUNT; ++dtype)
    for (const char *ending : {".npy", ".pb"}) {
      bool isNumpys = dtype <= AH_U64 && dtype != AH_BF16;
      std::string path = folder / "t" + ending;
      TensorSource source{"t", dtype, {3, 5}, [&] {
                            return static_cast<const void *>(bytes.data());
                          }};
      if (std::string(ending) == ".npy" && !isNumpys) {
        EXPECT_THAT(errorOf([&] { writeTensors(path, {source}); }),
                    HasSubstr("NumPy has no"));
        continue;
      }
      writeTensors(path, {source});
      FileTensor read = TensorFiles({"t=" + path}).first();
      EXPECT_EQ(read.info.dtype, dtype) << path;
      EXPECT_EQ(read.info.shape, (std::vector<int64_t>{3, 5}));
      ASSERT_EQ(read.info.bytes, 15 * dtypeBytes(dtype));
    }
}

TEST(TensorFile, PackedElementsKeepTheirSign) {
  TemporaryFolder folder;
  int8_t values[] = {-8, 7, -1, 0, 3};
  writeTensors(folder / "t.pb", {{"t", AH_I4, {5}, [&] { return values; }}});
  TensorFiles files({"t=" + (folder / "t.pb")});
  EXPECT_EQ(memcmp(files.first().data, values, 5), 0);
}

TEST(TensorFile, NamesInPaths) {
  TemporaryFolder folder;
  float one = 1;
  auto bytes = [&] { return static_cast<const void *>(&one); };
  writeTensors(folder / "{name}.npy",
               {{"a/b", AH_F32, {}, bytes}, {"c", AH_F32, {1}, bytes}});
  EXPECT_EQ(
      TensorFiles({"x=" + (folder / "a_b.npy")}).first().info.shape.size(), 0u);
  EXPECT_THAT(errorOf([&] {
                writeTensors(
                    folder / "{name}.npy",
                    {{"a/b", AH_F32, {}, bytes}, {"a_b", AH_F32, {}, bytes}});
              }),
              HasSubstr("two outputs would be written to"));
  EXPECT_THAT(errorOf([&] {
                writeTensors(folder / "all.npy", {{"a", AH_F32, {}, bytes},
                                                  {"b", AH_F32, {}, bytes}});
              }),
              HasSubstr("can hold one tensor, and there are 2"));
}

TEST(TensorFile, DamagedFilesAreRefused) {
  TemporaryFolder folder;
  float values[6] = {};
  writeTensors(folder / "t.npy",
               {{"t", AH_F32, {2, 3}, [&] { return values; }}});
  std::string good = readFile(folder / "t.npy");
  auto open = [&](const std::string &name, const std::string &bytes) {
    return errorOf([&] {
      writeFile(folder / name, bytes);
      TensorFiles files({"t=" + (folder / name)});
    });
  };
  EXPECT_EQ(open("ok.npy", good), "no error");
  EXPECT_THAT(open("short.npy", good.substr(0, good.size() - 1)),
              HasSubstr("holds 23 bytes, wanted 24 for [2, 3]"));
  EXPECT_THAT(open("header.npy", good.substr(0, 40)),
              HasSubstr("is truncated in its header"));
  EXPECT_THAT(open("text.npy", "hello, this is text"),
              HasSubstr("is no .npy file"));
  EXPECT_THAT(open("text.pb", "\xff\xff\xff"),
              HasSubstr("is truncated, or no protobuf message"));
  EXPECT_THAT(open("empty.pb", ""), HasSubstr("holds no tensor"));
  std::string fortran = good;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_THAT(open("fortran.npy", fortran), HasSubstr("in Fortran's order"));
  EXPECT_THAT(errorOf([&] { TensorFiles files({folder / "t.npy"}); }),
              HasSubstr("holds one tensor: say of which input"));
}

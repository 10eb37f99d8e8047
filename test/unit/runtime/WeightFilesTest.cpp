//===- WeightFilesTest.cpp - weights as they are published ------------------===//

#include "LinearModel.h"

#include "data/WeightFiles.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

static void writeOne(const std::string &path, const std::string &tensor,
                     float value) {
  writeSafetensors(
      path, {{tensor, AH_F32, {1}, [&] { return (const void *)&value; }}});
}

static std::string errorOf(const std::string &path) {
  try {
    WeightFiles files(path);
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST(WeightFiles, FoldersAndFiles) {
  TemporaryFolder folder;
  EXPECT_THAT(errorOf(folder / ""), HasSubstr("none of model.safetensors and"));
  writeOne(folder / "model.safetensors", "a", 1);
  EXPECT_TRUE(WeightFiles(folder / "model.safetensors").find("a"));
  WeightFiles files(folder / "");
  ASSERT_TRUE(files.find("a"));
  EXPECT_FALSE(files.find("b"));
  EXPECT_THROW(files.failMissing("b"), Error);
}

TEST(WeightFiles, SeveralFilesByIndex) {
  TemporaryFolder folder;
  writeOne(folder / "one", "a", 1);
  writeOne(folder / "two", "b", 2);
  std::string index = folder / "model.safetensors.index.json";
  writeFile(index, R"({"metadata": {"total_size": 8},
                       "weight_map": {"a": "one", "b": "two"}})");
  WeightFiles files(folder / "");
  float value;
  memcpy(&value, files.find("b")->data(), 4);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(files.tensors().size(), 2u);

  writeFile(index, R"({"weight_map": {"a": "one", "b": "one"}})");
  EXPECT_THAT(errorOf(folder / ""), HasSubstr("'b' is not in 'one'"));
  writeFile(index, R"({"weight_map": {"a": "../one"}})");
  EXPECT_THAT(errorOf(folder / ""), HasSubstr("wanted a file of the same"));
  writeFile(index, R"({"weight_map": {"a": "three"}})");
  EXPECT_THAT(errorOf(folder / ""), HasSubstr("three"));
  writeFile(index, R"({"weights": {}})");
  EXPECT_THAT(errorOf(folder / ""), HasSubstr("weights"));
  writeFile(index, R"({"weight_map": {"a": "one"}})");
  writeOne(folder / "model.safetensors", "a", 1);
  EXPECT_THAT(errorOf(folder / ""), HasSubstr("both of model.safetensors and"));
}

TEST(WeightFiles, HalvesAreExactInFloat32) {
  EXPECT_TRUE(widens(AH_F32, AH_F32));
  EXPECT_TRUE(widens(AH_F16, AH_F32));
  EXPECT_FALSE(widens(AH_F64, AH_F32));
  EXPECT_FALSE(widens(AH_F16, AH_BF16));
  auto value = [](uint8_t dtype, uint16_t bits) {
    float result;
    char half[2];
    memcpy(half, &bits, 2);
    memcpy(&result, widened(dtype, half, 1).data(), 4);
    return result;
  };
  EXPECT_EQ(value(AH_BF16, 0x3fc0), 1.5f);
  EXPECT_EQ(value(AH_BF16, 0xff80), -INFINITY);
  EXPECT_EQ(value(AH_F16, 0x3e00), 1.5f);
  EXPECT_EQ(value(AH_F16, 0xfbff), -65504.0f);
  EXPECT_EQ(value(AH_F16, 0x0001), 0x1p-24f);
  EXPECT_EQ(value(AH_F16, 0x83ff), -0x3ffp-24f);
  EXPECT_TRUE(std::signbit(value(AH_F16, 0x8000)));
  EXPECT_EQ(value(AH_F16, 0x7c00), INFINITY);
  EXPECT_TRUE(std::isnan(value(AH_F16, 0x7e00)));
}

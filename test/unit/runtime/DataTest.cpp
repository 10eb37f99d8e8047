//===- DataTest.cpp - tokens, their order, weights, boxes -------------------===//

#include "LinearModel.h"

#include "autohet/runtime/random.h"
#include "data/Box.h"
#include "data/Checksum.h"
#include "data/Feeder.h"
#include "data/Weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

template <typename Body>
static std::string errorOf(Body &&body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST(Random, PhiloxEqualsItsPublishedVectors) {
  ah_random zeros = ah_philox(0, 0, 0, 0);
  EXPECT_EQ(zeros.word[0], 0x6627e8d5u);
  EXPECT_EQ(zeros.word[3], 0x9b00dbd8u);
  ah_random ones = ah_philox(~0ull, ~0ull, ~0u, ~0u);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
  ah_random pi = ah_philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull,
                           0x13198a2eu, 0x03707344u);
  EXPECT_EQ(pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(pi.word[3], 0x24126ea1u);
}

TEST(Random, NormalHasMeanAndDeviation) {
  double sum = 0, squares = 0;
  const int count = 100000;
  for (int i = 0; i < count; ++i) {
    double value = ah_normal(ah_philox(1, i, AH_RANDOM_INIT, 0));
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
}

TEST(Checksum, EqualsXxh64) {
  EXPECT_EQ(checksum64("", 0), 0xef46db3751d8e999ull);
  EXPECT_EQ(checksum64("a", 1), 0xd24ec4f1a98c6e5bull);
  EXPECT_EQ(checksum64("abc", 3), 0x44bc2cf5ad770999ull);
  std::string text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(checksum64(text.data(), text.size()), 0xfbcea83c8a378bf1ull);
}

TEST(Checksum, PartsAreAsTheWhole) {
  std::vector<char> bytes(200);
  std::iota(bytes.begin(), bytes.end(), 0);
  for (size_t size = 0; size < bytes.size(); ++size)
    for (size_t first : {0, 1, 31, 32, 33, 64, 100})
      for (size_t second : {0, 1, 5, 32, 40}) {
        Checksum checksum;
        size_t at = 0;
        for (size_t part : {first, second, size})
          if (size_t count = std::min(part, size - at)) {
            checksum.add(bytes.data() + at, count);
            at += count;
          }
        ASSERT_EQ(checksum.get(), checksum64(bytes.data(), size))
            << size << ": " << first << " and " << second;
      }
}

TEST(SampleOrder, EveryEpochIsAPermutation) {
  for (uint64_t windows : {1, 2, 7, 64, 1000}) {
    SampleOrder order(windows, 5, true);
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      std::set<uint64_t> seen;
      for (uint64_t sample = 0; sample < windows; ++sample)
        seen.insert(order.window(epoch * windows + sample));
      EXPECT_EQ(seen.size(), windows);
      EXPECT_LT(*seen.rbegin(), windows);
    }
  }
  SampleOrder a(1000, 5, true), b(1000, 6, true), sequential(1000, 5, false);
  unsigned same = 0, kept = 0;
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    same += a.window(sample) == b.window(sample);
    kept += a.window(sample) == a.window(1000 + sample);
    EXPECT_EQ(sequential.window(1000 + sample), sample);
  }
  EXPECT_LT(same, 20u);
  EXPECT_LT(kept, 20u);
}

TEST(TokenFile, RawNeedsADtype) {
  TemporaryFolder folder;
  writeFile(folder / "t.bin", std::string("\1\0\2\0\3\0", 6));
  TokenFile file(folder / "t.bin", "uint16");
  int64_t tokens[3];
  file.read(0, 3, tokens);
  EXPECT_THAT(tokens, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(errorOf([&] { TokenFile(folder / "t.bin", ""); }),
              HasSubstr("--data-dtype"));
  EXPECT_THAT(errorOf([&] { TokenFile(folder / "t.bin", "int32"); }),
              HasSubstr("6 bytes, which are no whole number of int32"));
  EXPECT_THAT(errorOf([&] { TokenFile(folder / "t.bin", "float32"); }),
              HasSubstr("known: "));
}

template <typename T>
static void put(std::string &to, T value) {
  to.append(reinterpret_cast<char *>(&value), sizeof value);
}

static std::string megatronIndex(uint8_t code, std::vector<int32_t> lengths,
                                 std::vector<int64_t> pointers) {
  std::string index("MMIDIDX\0\0", 9);
  put(index, uint64_t(1));
  put(index, code);
  put(index, uint64_t(lengths.size()));
  put(index, uint64_t(2));
  for (int32_t length : lengths)
    put(index, length);
  for (int64_t pointer : pointers)
    put(index, pointer);
  put(index, int64_t(0));
  put(index, int64_t(lengths.size()));
  return index;
}

TEST(TokenFile, MegatronReadsTheCodeAndFollowsThePointers) {
  for (uint8_t code : {4, 8}) {
    TemporaryFolder folder;
    unsigned width = code == 4 ? 4 : 2;
    std::string bin;
    for (int token : {7, 8, 9, 1, 2, 3})
      bin += std::string(reinterpret_cast<char *>(&token), width);
    writeFile(folder / "t.bin", bin);
    writeFile(folder / "t.idx",
              megatronIndex(code, {3, 0, 3}, {3 * width, 0, 0}));
    TokenFile file(folder / "t.bin", "");
    EXPECT_EQ(file.size(), 6u);
    int64_t tokens[4];
    file.read(1, 4, tokens);
    EXPECT_THAT(tokens, testing::ElementsAre(2, 3, 7, 8));
    // The index knows: a dtype may repeat it and not contradict it.
    EXPECT_EQ(
        TokenFile(folder / "t.bin", code == 4 ? "int32" : "uint16").size(), 6u);
    EXPECT_THAT(errorOf([&] { TokenFile(folder / "t.bin", "int64"); }),
                HasSubstr(code == 4 ? "says that its tokens are int32, "
                                      "--data-dtype says int64"
                                    : "says that its tokens are uint16"));
  }
}

TEST(TokenFile, HostileIndices) {
  TemporaryFolder folder;
  writeFile(folder / "t.bin", std::string(8, '\0'));
  auto error = [&](const std::string &index) {
    writeFile(folder / "t.idx", index);
    return errorOf([&] { TokenFile(folder / "t.bin", ""); });
  };
  std::string good = megatronIndex(8, {4}, {0});
  EXPECT_EQ(error(good), "no error");
  EXPECT_THAT(error(good.substr(0, 12)), HasSubstr("not a Megatron index"));
  EXPECT_THAT(error(good.substr(0, good.size() - 1)), HasSubstr("do not make"));
  EXPECT_THAT(error(megatronIndex(7, {4}, {0})), HasSubstr("dtype code 7"));
  EXPECT_THAT(error(megatronIndex(8, {5}, {0})),
              HasSubstr("sequence 0 (5 tokens"));
  EXPECT_THAT(error(megatronIndex(8, {-1}, {0})), HasSubstr("is outside"));
  EXPECT_THAT(error(megatronIndex(8, {1}, {-2})), HasSubstr("is outside"));
}

static void tokenModel(ProgramBuilder &b, ah_objective objective,
                       int64_t vocabulary) {
  b.batch(2, 2);
  b.header.objective = objective;
  b.header.sequence_length = 4;
  b.port(b.inputs, "ids", AH_I64, {2, 4}, AH_BIND_TOKENS, false, vocabulary);
  b.port(b.inputs, "labels", AH_I32, {2, 4}, AH_BIND_LABELS, true, vocabulary);
  b.port(b.inputs, "positions", AH_I64, {2, 4}, AH_BIND_ARANGE);
  b.stream("compute");
}

TEST(Feeder, CausalLabelsAreShiftedAndWindowsShareAToken) {
  TemporaryFolder folder;
  std::string bytes(17, '\0');
  std::iota(bytes.begin(), bytes.end(), 0);
  writeFile(folder / "t.bin", bytes);
  ProgramBuilder builder;
  tokenModel(builder, AH_CAUSAL, 256);
  Program program(builder.build());
  FeedOptions options;
  options.text.path = folder / "t.bin";
  options.text.dtype = "uint8";
  options.text.shuffled = false;
  Feeder feeder(program, options);
  EXPECT_EQ(feeder.batches(), 1u);
  int64_t ids[8], positions[8];
  int32_t labels[8];
  feeder.fill(0, 0, 2, ids);
  feeder.fill(1, 0, 2, labels);
  feeder.fill(2, 0, 2, positions);
  EXPECT_THAT(ids, testing::ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(labels, testing::ElementsAre(9, 10, 11, 12, 13, 14, 15, 16));
  EXPECT_THAT(positions, testing::ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_EQ(feeder.countLabels(0), 16u);
}

TEST(Feeder, TokensOutsideTheVocabularyAreNamed) {
  TemporaryFolder folder;
  std::string bytes(17, '\1');
  bytes[9] = 100;
  writeFile(folder / "t.bin", bytes);
  ProgramBuilder builder;
  tokenModel(builder, AH_CAUSAL, 100);
  Program program(builder.build());
  FeedOptions options;
  options.text.path = folder / "t.bin";
  options.text.dtype = "uint8";
  options.text.shuffled = false;
  Feeder feeder(program, options);
  int64_t ids[8];
  feeder.fill(0, 0, 0, ids);
  EXPECT_THAT(
      errorOf([&] { feeder.fill(0, 0, 2, ids); }),
      HasSubstr("token 9 is 100; the vocabulary has 100 entries, 0 to 99: is "
                "uint8 the dtype that its ids were written in?"));
}

TEST(Feeder, MaskedLabelsCountWhatIsHidden) {
  TemporaryFolder folder;
  writeFile(folder / "t.bin", std::string(400, '\5'));
  ProgramBuilder builder;
  tokenModel(builder, AH_MASKED, 100);
  Program program(builder.build());
  FeedOptions options;
  options.text.path = folder / "t.bin";
  options.text.dtype = "uint8";
  options.text.maskToken = 99;
  options.text.maskProbability = 0.5;
  Feeder feeder(program, options);
  uint64_t counted = 0, hidden = 0;
  for (uint64_t first : {0, 2}) {
    int64_t ids[8];
    int32_t labels[8];
    feeder.fill(0, 3, first, ids);
    feeder.fill(1, 3, first, labels);
    for (int i = 0; i < 8; ++i) {
      counted += labels[i] != -100;
      hidden += ids[i] == 99;
      EXPECT_TRUE(labels[i] == -100 || labels[i] == 5);
      EXPECT_TRUE(labels[i] != -100 || ids[i] == 5);
    }
  }
  EXPECT_EQ(counted, feeder.countLabels(3));
  EXPECT_GT(hidden, 0u);
}

TEST(Feeder, GivenLabelsAreCheckedAndCounted) {
  TemporaryFolder folder;
  std::vector<int64_t> ids(16, 1), labels(16, -100);
  auto write = [&] {
    writeSafetensors(folder / "in",
                     {{"ids", AH_I64, {4, 4}, [&] { return ids.data(); }}});
    writeSafetensors(folder / "l", {{"labels", AH_I64, {4, 4}, [&] {
                                       return labels.data();
                                     }}});
  };
  ProgramBuilder builder;
  tokenModel(builder, AH_CAUSAL, 100);
  Program program(builder.build());
  FeedOptions options;
  options.inputs = {folder / "in"};
  options.labels = folder / "l";
  write();
  EXPECT_THAT(errorOf([&] { Feeder(program, options).countLabels(0); }),
              HasSubstr("none of the labels of the global batch counts"));
  labels[3] = 99;
  write();
  EXPECT_EQ(Feeder(program, options).countLabels(0), 1u);
  labels[6] = 100;
  write();
  EXPECT_THAT(
      errorOf([&] { Feeder(program, options); }),
      HasSubstr(
          "tensor 'labels': element [1, 2] is 100; the vocabulary has 100"));
  labels[6] = -1;
  write();
  EXPECT_THAT(errorOf([&] { Feeder(program, options); }),
              HasSubstr("[1, 2] is -1"));
}

TEST(Feeder, TokensFromAFileMakeCausalLabels) {
  TemporaryFolder folder;
  std::vector<int64_t> ids(16);
  std::iota(ids.begin(), ids.end(), 0);
  writeSafetensors(folder / "in",
                   {{"ids", AH_I64, {4, 4}, [&] { return ids.data(); }}});
  ProgramBuilder builder;
  tokenModel(builder, AH_CAUSAL, 100);
  Program program(builder.build());
  FeedOptions options;
  options.inputs = {folder / "in"};
  Feeder feeder(program, options);
  int32_t labels[8];
  feeder.fill(1, 0, 0, labels);
  EXPECT_THAT(labels, testing::ElementsAre(1, 2, 3, -100, 5, 6, 7, -100));
  EXPECT_EQ(feeder.countLabels(0), 12u);
}

TEST(Box, CopiesPartsAndTransposes) {
  std::vector<int32_t> global(6 * 50), packed(2 * 40), back(6 * 50, -1);
  std::iota(global.begin(), global.end(), 0);
  Box box{{6, 50}, {3, 5}, {2, 40}};
  copyFromGlobal(box, 4, (char *)global.data(), (char *)packed.data());
  EXPECT_EQ(packed[0], 3 * 50 + 5);
  EXPECT_EQ(packed[79], 4 * 50 + 44);
  copyToGlobal(box, 4, (char *)packed.data(), (char *)back.data());
  EXPECT_EQ(back[4 * 50 + 44], 4 * 50 + 44);
  EXPECT_EQ(std::count(back.begin(), back.end(), -1), 300 - 80);
  // The same tensor, stored as [50, 6].
  std::vector<int32_t> stored(300), again(80);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 50; ++j)
      stored[j * 6 + i] = global[i * 50 + j];
  copyFromGlobal(box, 4, (char *)stored.data(), (char *)again.data(), true);
  EXPECT_EQ(again, packed);
  EXPECT_EQ(box.text(), "[3:5, 5:45] of [6, 50]");
}

TEST(Weights, IndexErrorsNameTensorAndField) {
  TemporaryFolder folder;
  auto error = [&](const std::string &tensor) {
    writeFile(folder / "weights.index",
              R"({"format":"autohet-weights","version":1,"structure_hash":)"
              R"("0000000000000000","tensors":[)" +
                  tensor + "]}");
    return errorOf([&] {
      WeightsIndex index(folder / "weights.index");
      for (auto &[name, stored] : index.tensors())
        index.verify(stored);
    });
  };
  writeFile(folder / "w.bin", "12345678");
  std::string head =
      R"({"name":"w","file":"w.bin","dtype":"float32","transform":"none",)";
  EXPECT_EQ(error(head + R"("offset":0,"bytes":8,"shape":[2]})"), "no error");
  EXPECT_THAT(error(head + R"("offset":0,"bytes":8,"shape":[3]})"),
              HasSubstr("('w'): 'bytes' is 8, dtype and shape need 12"));
  EXPECT_THAT(error(head + R"("offset":0,"bytes":8,"shape":[2],"more":1})"),
              HasSubstr("unknown key 'more'; known: name, file"));
  EXPECT_THAT(error(head + R"("offset":1,"bytes":8,"shape":[2],)"
                           R"("checksum":"xxh64:0000000000000000"})"),
              HasSubstr("is too short for 'w'"));
  EXPECT_THAT(error(head + R"("offset":0,"bytes":8,"shape":[2],)"
                           R"("checksum":"xxh64:0000000000000000"})"),
              HasSubstr("has changed since it was compiled: 'w' is xxh64:"));
  EXPECT_THAT(
      error(head + R"("offset":0,"bytes":8,"shape":[2],"checksum":"crc:1"})"),
      HasSubstr("16 hexadecimal digits"));
}

// Two halves drawn apart are the whole drawn at once.
TEST(Weights, InitDependsOnNameAndGlobalIndexAlone) {
  auto draw = [](int64_t offset, int64_t rows) {
    ProgramBuilder builder;
    builder.parameter("m", {rows, 3});
    ah_parameter &p = builder.parameters[0];
    p.global_shape[0] = 4;
    p.box_offset[0] = offset;
    builder.stream("compute");
    Program program(builder.build());
    Memory memory(program, *ah_cpu_device_table(), 0);
    WeightOptions options;
    options.draw = true;
    options.seed = 7;
    loadWeights(memory, options);
    return memory.read(p.parameter_buffer, rows * 12);
  };
  std::vector<char> whole = draw(0, 4), low = draw(0, 1), high = draw(1, 3);
  low.insert(low.end(), high.begin(), high.end());
  EXPECT_EQ(whole, low);
}

// 16 bits under a vocabulary of 119,547: wrapped ids all look right.
TEST(Feeder, NarrowDtypesAreMentioned) {
  TemporaryFolder folder;
  writeFile(folder / "t.bin", std::string(400, '\5'));
  ProgramBuilder builder;
  tokenModel(builder, AH_CAUSAL, 119547);
  Program program(builder.build());
  FeedOptions options;
  options.text.path = folder / "t.bin";
  options.text.dtype = "uint16";
  EXPECT_THAT(
      Feeder(program, options).warnings(),
      testing::ElementsAre(HasSubstr("its dtype holds ids up to 65535")));
  options.text.dtype = "int32";
  EXPECT_THAT(errorOf([&] { Feeder(program, options).countLabels(0); }),
              "no error");
}

//===- UnitTableTest.cpp - unit tables and unit specs ---------------------===//

#include "plan/Models.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(UnitTable, RoundTrip) {
  UnitTable table = test::makeChain(3, /*isTied=*/true);
  table.parameters[1].trained = false;
  table.parameters[2].divided = false;
  table.parameters[0].divided_by_rows = true;
  table.units[0].divided_extent = 12;
  test::keepWhole(table.units[0], 0.25);
  table.units[1].backward.exchanges = {{RankExchange::Gather, 8},
                                       {RankExchange::Cut, 4}};
  std::string text = formatUnitTable(table);
  llvm::Expected<UnitTable> read = parseUnitTable(text, "units.json");
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->structure_hash, table.structure_hash);
  EXPECT_EQ(read->parameters, table.parameters);
  EXPECT_EQ(read->units, table.units);
  EXPECT_EQ(formatUnitTable(*read), text);
}

TEST(UnitTable, RefusesEdgesBackwards) {
  llvm::Expected<UnitTable> read = parseUnitTable(
      R"({"format": 3, "structure_hash": "0123456789abcdef", "parameters": [],
 "units": [{"id": "a", "successors": [[0, 4]]}]})",
      "u");
  EXPECT_THAT(llvm::toString(read.takeError()),
              HasSubstr("u:2:39: error: a successor must be a later unit"));
}

static std::vector<unsigned> expand(llvm::StringRef spec) {
  llvm::Expected<std::vector<unsigned>> units =
      expandUnits(spec, test::makeChain(12));
  if (units)
    return *units;
  ADD_FAILURE() << llvm::toString(units.takeError());
  return {};
}

TEST(UnitSpecs, Expand) {
  EXPECT_THAT(expand("embed"), ElementsAre(0));
  // Not block10 and block11.
  EXPECT_THAT(expand("block1"), ElementsAre(3, 4));
  EXPECT_THAT(expand("block1.mlp"), ElementsAre(4));
  EXPECT_THAT(expand("block0..block1"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(expand("block0.mlp-block1.attn"), ElementsAre(2, 3));
  EXPECT_THAT(expand("block11-head"), ElementsAre(23, 24, 25));
}

TEST(UnitSpecs, Refuse) {
  UnitTable table = test::makeChain(2);
  auto refuse = [&](llvm::StringRef spec) {
    return llvm::toString(expandUnits(spec, table).takeError());
  };
  EXPECT_EQ(refuse("block7"),
            "unknown unit 'block7'; the model has 6 units: embed, block0.attn, "
            "block0.mlp, block1.attn, block1.mlp, head");
  table = test::makeChain(12);
  EXPECT_EQ(refuse("block17"),
            "unknown unit 'block17'; the model has 26 units from 'embed' to "
            "'head' (--emit=units lists them)");
  table = test::makeChain(2);
  EXPECT_THAT(refuse("block0..block9"), HasSubstr("unknown unit 'block9'"));
  EXPECT_THAT(refuse("head-embed"), HasSubstr("runs backwards"));
  EXPECT_THAT(refuse(""), HasSubstr("unknown unit ''"));
}

TEST(UnitSpecs, CompressIsTheInverse) {
  UnitTable table = test::makeChain(3);
  EXPECT_THAT(compressUnits({0, 1, 2, 5}, table),
              ElementsAre("embed..block0.mlp", "block2.attn"));
  EXPECT_THAT(compressUnits({7}, table), ElementsAre("head"));
  EXPECT_THAT(compressUnits({}, table), ElementsAre());
}

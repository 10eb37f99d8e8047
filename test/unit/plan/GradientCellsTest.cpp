//===- GradientCellsTest.cpp - who sums, updates and holds which slice ------===//
//
// Small cases by hand, then random boxes against a count of every element.
//
//===----------------------------------------------------------------------===//

#include "GradientCells.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <map>
#include <random>
#include <set>
#include <string>

using namespace autohet;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

using Ints = llvm::SmallVector<int64_t>;

std::vector<int64_t> list(llvm::ArrayRef<int64_t> values) {
  return values.vec();
}

class GradientCells : public testing::Test {
protected:
  mlir::MLIRContext context;
  mlir::Builder builder{&context};
  Parameters parameters;

  ParameterUses &parameter(llvm::StringRef name, Ints shape) {
    ParameterUses uses{builder.getF32Type(),
                       std::move(shape),
                       builder.getUnknownLoc(),
                       {},
                       {}};
    return parameters.insert({builder.getStringAttr(name), std::move(uses)})
        .first->second;
  }

  /// The device holds the box and adds to its gradient.
  static void trainBox(ParameterUses &uses, int64_t rank, Ints offsets,
                       Ints sizes) {
    uses.held.push_back({rank, {offsets, sizes}});
    uses.contributed.push_back({rank, {offsets, sizes}});
  }
};

TEST_F(GradientCells, BoxesThatAreEqualAreOneCell) {
  ParameterUses &w = parameter("w", {6, 4});
  trainBox(w, 0, {0, 0}, {6, 4});
  trainBox(w, 3, {0, 0}, {6, 4});
  std::vector<Cell> cells = refine(parameters);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].box, (Box{{0, 0}, {6, 4}}));
  EXPECT_THAT(list(cells[0].holders), ElementsAre(0, 3));
  EXPECT_THAT(list(cells[0].contributors), ElementsAre(0, 3));
  EXPECT_EQ(cells[0].bytes(), 96);
}

/// Replicas that cut a dim in 4 + 2 and 3 + 3 rows meet in 3 + 1 + 2.
TEST_F(GradientCells, UnlikeCutsMeetInTheirRefinement) {
  ParameterUses &w = parameter("w", {6});
  trainBox(w, 0, {0}, {4});
  trainBox(w, 1, {4}, {2});
  trainBox(w, 2, {0}, {3});
  trainBox(w, 3, {3}, {3});
  std::vector<Cell> cells = refine(parameters);
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0].box, (Box{{0}, {3}}));
  EXPECT_THAT(list(cells[0].holders), ElementsAre(0, 2));
  EXPECT_EQ(cells[1].box, (Box{{3}, {1}}));
  EXPECT_THAT(list(cells[1].holders), ElementsAre(0, 3));
  EXPECT_EQ(cells[2].box, (Box{{4}, {2}}));
  EXPECT_THAT(list(cells[2].holders), ElementsAre(1, 3));
}

/// A key/value head on two ranks is a partial sum on both; a whole gradient
/// counts at the first rank only. Both hold, so the owner may be either.
TEST_F(GradientCells, ContributorsNeedNotBeHolders) {
  ParameterUses &norm = parameter("norm", {8});
  norm.held = {{0, {{0}, {8}}}, {1, {{0}, {8}}}};
  norm.contributed = {{0, {{0}, {8}}}};
  std::vector<Cell> cells = refine(parameters);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_THAT(list(cells[0].holders), ElementsAre(0, 1));
  EXPECT_THAT(list(cells[0].contributors), ElementsAre(0));
}

/// A tied table: the embedding's stage and the head's hold and contribute; one
/// device does both, which counts it once.
TEST_F(GradientCells, TiedUsesOfOneDeviceAreOneParty) {
  ParameterUses &table = parameter("wte", {10, 2});
  trainBox(table, 0, {0, 0}, {10, 2});
  trainBox(table, 1, {0, 0}, {10, 2});
  trainBox(table, 1, {0, 0}, {5, 2}); // the head's use of a part
  std::vector<Cell> cells = refine(parameters);
  ASSERT_EQ(cells.size(), 2u);
  for (const Cell &cell : cells) {
    EXPECT_THAT(list(cell.holders), ElementsAre(0, 1));
    EXPECT_THAT(list(cell.contributors), ElementsAre(0, 1));
  }
}

/// Positions beyond the sequence are a part of their parameter; a parameter
/// without any gradient is not updated.
TEST_F(GradientCells, WhatNobodyReads) {
  ParameterUses &positions = parameter("wpe", {16, 2});
  trainBox(positions, 1, {0, 0}, {12, 2});
  ParameterUses &unused = parameter("unused", {4});
  unused.held = {{0, {{0}, {4}}}};
  std::vector<Cell> cells = refine(parameters);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[1].box, (Box{{12, 0}, {4, 2}}));
  EXPECT_THAT(list(cells[1].holders), ElementsAre(1));
  EXPECT_THAT(list(cells[1].contributors), IsEmpty());
}

/// A table beside little else: one owner would have nearly all of it.
TEST_F(GradientCells, LargeCellsAreCutIntoRowsOfTheirHolders) {
  for (int64_t rank : {1, 4, 6})
    trainBox(parameter("table", {10, 4}), rank, {0, 0}, {10, 4}); // 160 bytes
  for (int64_t rank : {1, 4, 6})
    trainBox(parameter("norm", {4}), rank, {0}, {4});
  auto rowsOf = [&](std::optional<int64_t> spreadFromBytes) {
    std::vector<int64_t> rows;
    std::vector<Cell> cells = refine(parameters, spreadFromBytes);
    chooseOwners(cells, /*spread=*/true, std::nullopt);
    std::set<int64_t> owners;
    for (const Cell &cell : cells)
      if (cell.name == "table") {
        rows.push_back(cell.box.sizes[0]);
        owners.insert(cell.owner);
      }
    EXPECT_EQ(owners.size(), rows.size());
    return rows;
  };
  EXPECT_THAT(rowsOf(std::nullopt), ElementsAre(10));
  EXPECT_THAT(rowsOf(16), ElementsAre(4, 3, 3));
  EXPECT_THAT(rowsOf(80), ElementsAre(5, 5)); // 53 bytes are too few
  EXPECT_THAT(rowsOf(81), ElementsAre(10));
}

/// A part for each holder of each cell would be many small messages.
TEST_F(GradientCells, ManyHoldersDoNotCutACellIntoAsManyParts) {
  constexpr int64_t tables = 10, holders = 12;
  for (int64_t table = 0; table < tables; ++table)
    for (int64_t rank = 0; rank < holders; ++rank)
      trainBox(parameter("table" + std::to_string(table), {100, 4}), rank,
               {0, 0}, {100, 4});
  std::vector<Cell> cells = refine(parameters, 16);
  // A share is 5/6 of a table, a quarter of it 20 5/6 rows.
  EXPECT_EQ(cells.size(), size_t(5 * tables));
  chooseOwners(cells, /*spread=*/true, std::nullopt);
  std::map<int64_t, int64_t> owned;
  for (const Cell &cell : cells) {
    EXPECT_EQ(cell.box.sizes[0], 20);
    owned[cell.owner] += cell.box.sizes[0];
  }
  for (int64_t rank = 0; rank < holders; ++rank)
    EXPECT_NEAR(double(owned[rank]), 100. * tables / holders, 20 + 5. / 6);
}

/// Parts of rows and whole cells go by the holders' shares; who has none owns
/// what nobody else holds.
TEST_F(GradientCells, StateIsSpreadByShares) {
  for (int64_t rank : {0, 1, 2})
    trainBox(parameter("table", {16, 4}), rank, {0, 0}, {16, 4});
  for (const char *name : {"a", "b", "c", "d"})
    for (int64_t rank : {0, 1, 2})
      trainBox(parameter(name, {4}), rank, {0}, {4});
  trainBox(parameter("alone", {4}), 2, {0}, {4});
  const int64_t shares[] = {3, 1, 0};
  std::vector<Cell> cells = refine(parameters, 16, {shares});
  chooseOwners(cells, /*spread=*/true, std::nullopt, {shares});
  std::map<std::string, std::vector<int64_t>> owners, rows;
  for (const Cell &cell : cells) {
    owners[cell.name.str()].push_back(cell.owner);
    rows[cell.name.str()].push_back(cell.box.sizes[0]);
  }
  EXPECT_THAT(rows["table"], ElementsAre(12, 4));
  EXPECT_THAT(owners["table"], ElementsAre(0, 1));
  // 48 and 16 elements so far: three of four to the one, one to the other.
  EXPECT_THAT((std::vector{owners["a"][0], owners["b"][0], owners["c"][0],
                           owners["d"][0]}),
              testing::UnorderedElementsAre(0, 0, 0, 1));
  EXPECT_THAT(owners["alone"], ElementsAre(2));
}

/// What others own elsewhere does not matter, so that a rank owns in proportion
/// to what it holds: one that holds two of three tables owns half of each.
TEST_F(GradientCells, EachSetOfHoldersSharesWhatItHolds) {
  for (const char *name : {"a", "b", "c", "d"})
    for (int64_t rank : {0, 1})
      trainBox(parameter(std::string("left ") + name, {8}), rank, {0}, {8});
  for (const char *name : {"a", "b"})
    for (int64_t rank : {1, 2})
      trainBox(parameter(std::string("right ") + name, {8}), rank, {0}, {8});
  std::vector<Cell> cells = refine(parameters);
  chooseOwners(cells, /*spread=*/true, std::nullopt);
  std::map<int64_t, int64_t> owned;
  for (const Cell &cell : cells)
    owned[cell.owner] += cell.box.elements();
  EXPECT_EQ(owned[0], 16);
  EXPECT_EQ(owned[1], 24); // balanced over all it were 16
  EXPECT_EQ(owned[2], 8);
}

/// A set with one table gives it to who owns least elsewhere.
TEST_F(GradientCells, OddOnesGoToWhoOwnsLeast) {
  for (int64_t rank : {0, 1})
    trainBox(parameter("a", {8}), rank, {0}, {8});
  for (int64_t rank : {0, 1, 2})
    trainBox(parameter("b", {8}), rank, {0}, {8});
  for (int64_t rank : {0, 2})
    trainBox(parameter("c", {8}), rank, {0}, {8});
  std::vector<Cell> cells = refine(parameters);
  chooseOwners(cells, /*spread=*/true, std::nullopt);
  EXPECT_EQ(cells[0].owner, 0);
  EXPECT_EQ(cells[1].owner, 1);
  EXPECT_EQ(cells[2].owner, 2);
}

/// Of two cells that share a dim 0, one is cut: the other is cut with it, so
/// that the cells remain a grid.
TEST_F(GradientCells, CutsGoThroughTheWholeParameter) {
  ParameterUses &w = parameter("w", {4, 8});
  trainBox(w, 0, {0, 0}, {4, 6});
  trainBox(w, 1, {0, 6}, {4, 2});
  trainBox(w, 2, {0, 0}, {4, 6});
  std::vector<Cell> cells = refine(parameters, 16);
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[0].box, (Box{{0, 0}, {2, 6}}));
  EXPECT_EQ(cells[1].box, (Box{{0, 6}, {2, 2}}));
  EXPECT_EQ(cells[2].box, (Box{{2, 0}, {2, 6}}));
  EXPECT_EQ(cells[3].box, (Box{{2, 6}, {2, 2}}));
}

TEST_F(GradientCells, OwnersAreSpreadFirstOrPreferred) {
  for (const char *name : {"a", "b", "c"}) {
    ParameterUses &w = parameter(name, {name[0] == 'a' ? 8 : 4});
    Ints all = w.globalShape;
    trainBox(w, 2, {0}, all);
    trainBox(w, 5, {0}, all);
  }
  auto owners = [&](bool spread, std::optional<int64_t> preferred) {
    std::vector<Cell> cells = refine(parameters);
    chooseOwners(cells, spread, preferred);
    std::vector<int64_t> ranks;
    for (const Cell &cell : cells)
      ranks.push_back(cell.owner);
    return ranks;
  };
  EXPECT_THAT(owners(true, std::nullopt), ElementsAre(2, 5, 5));
  EXPECT_THAT(owners(false, std::nullopt), ElementsAre(2, 2, 2));
  EXPECT_THAT(owners(true, 5), ElementsAre(5, 5, 5));
  EXPECT_THAT(owners(false, 7), ElementsAre(2, 2, 2)) << "7 holds nothing";
}

TEST_F(GradientCells, BucketsOfEqualPartiesFromTheLastCellOn) {
  for (const char *name : {"a", "b", "c", "d"}) {
    ParameterUses &w = parameter(name, {4}); // 16 bytes each
    trainBox(w, 0, {0}, {4});
    if (name[0] != 'b')
      trainBox(w, 1, {0}, {4});
  }
  std::vector<Cell> cells = refine(parameters);
  chooseOwners(cells, /*spread=*/false, std::nullopt);
  auto bucketsOf = [&](int64_t limit) {
    std::vector<std::vector<unsigned>> lists;
    for (const Bucket &bucket : formBuckets(cells, limit))
      lists.push_back({bucket.cells.begin(), bucket.cells.end()});
    return lists;
  };
  EXPECT_THAT(bucketsOf(1 << 20),
              ElementsAre(ElementsAre(0, 2, 3), ElementsAre(1)));
  EXPECT_THAT(bucketsOf(32),
              ElementsAre(ElementsAre(2, 3), ElementsAre(1), ElementsAre(0)));
  // A cell larger than the limit is a bucket of its own.
  EXPECT_THAT(bucketsOf(1), ElementsAre(ElementsAre(3), ElementsAre(2),
                                        ElementsAre(1), ElementsAre(0)));
}

//===----------------------------------------------------------------------===//
// Random boxes, element by element
//===----------------------------------------------------------------------===//

/// Calls `visit` with each element's position in `box`.
void forEachElement(const Box &box,
                    llvm::function_ref<void(const Ints &)> visit,
                    Ints position = {}) {
  size_t dim = position.size();
  if (dim == box.sizes.size())
    return visit(position);
  position.push_back(0);
  for (int64_t i = 0; i < box.sizes[dim]; ++i) {
    position.back() = box.offsets[dim] + i;
    forEachElement(box, visit, position);
  }
}

/// The ranks of `uses` whose boxes have the element.
Ints ranksAt(llvm::ArrayRef<BoxUse> uses, const Ints &position) {
  Box element{position, Ints(position.size(), 1)};
  std::set<int64_t> ranks;
  for (const BoxUse &use : uses)
    if (use.box.contains(element))
      ranks.insert(use.rank);
  return {ranks.begin(), ranks.end()};
}

class RandomCells : public GradientCells,
                    public testing::WithParamInterface<unsigned> {};

TEST_P(RandomCells, CoverEachElementOnce) {
  std::mt19937 random(GetParam());
  auto draw = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int64_t p = 0, count = draw(1, 5); p < count; ++p) {
    Ints shape;
    for (int64_t dim = 0, rank = draw(0, 3); dim < rank; ++dim)
      shape.push_back(draw(1, 7));
    ParameterUses &uses = parameter("p" + std::to_string(p), shape);
    for (auto *boxes : {&uses.held, &uses.contributed})
      for (int64_t use = 0, uses = draw(1, 6); use < uses; ++use) {
        Box box;
        for (int64_t extent : shape) {
          box.offsets.push_back(draw(0, extent - 1));
          box.sizes.push_back(draw(1, extent - box.offsets.back()));
        }
        boxes->push_back({draw(0, 4), box});
      }
  }
  int64_t limit = draw(4, 200);
  bool spread = draw(0, 1) == 1;
  std::vector<Cell> cells =
      refine(parameters, spread ? std::optional(draw(1, 40)) : std::nullopt);
  chooseOwners(cells, spread, std::nullopt);

  std::map<std::pair<std::string, std::vector<int64_t>>, int> covered;
  for (const Cell &cell : cells) {
    const ParameterUses &uses = parameters.find(cell.name)->second;
    EXPECT_TRUE(llvm::is_contained(cell.holders, cell.owner));
    forEachElement(cell.box, [&](const Ints &position) {
      ++covered[{cell.name.str(), list(position)}];
      Ints holders = ranksAt(uses.held, position);
      if (holders.empty()) // somebody has to own it
        holders = {uses.held.front().rank};
      EXPECT_EQ(cell.holders, holders);
      EXPECT_EQ(cell.contributors, ranksAt(uses.contributed, position));
    });
  }
  int64_t elements = 0;
  for (auto &[name, uses] : parameters)
    elements +=
        Box{Ints(uses.globalShape.size(), 0), uses.globalShape}.elements();
  EXPECT_EQ(int64_t(covered.size()), elements);
  for (auto &[element, times] : covered)
    EXPECT_EQ(times, 1);

  std::vector<int> bucketsOf(cells.size());
  for (const Bucket &bucket : formBuckets(cells, limit)) {
    EXPECT_TRUE(bucket.bytes <= limit || bucket.cells.size() == 1);
    EXPECT_TRUE(llvm::is_sorted(bucket.cells));
    int64_t bytes = 0;
    const Cell &first = cells[bucket.cells.front()];
    for (unsigned c : bucket.cells) {
      ++bucketsOf[c];
      bytes += cells[c].bytes();
      EXPECT_EQ(cells[c].owner, first.owner);
      EXPECT_EQ(cells[c].holders, first.holders);
      EXPECT_EQ(cells[c].contributors, first.contributors);
    }
    EXPECT_EQ(bytes, bucket.bytes);
  }
  EXPECT_THAT(bucketsOf, testing::Each(1));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCells, testing::Range(0u, 60u));

} // namespace

//===- JsonTests.cpp - JSON as the standard says --------------------------===//

#include "core/Json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime;
using testing::HasSubstr;

static std::string fails(const std::string &text) {
  Json value;
  std::string error;
  return parseJson(text, value, error) ? "" : error;
}

TEST(Json, ReadsValues) {
  Json value;
  std::string error;
  ASSERT_TRUE(parseJson(
      R"( {"a": [1, -2.5e3, true, null, "x\n\u00e9\ud83d\ude00"], "b": {}} )",
      value, error))
      << error;
  const Json *list = value.find("a");
  ASSERT_TRUE(list && list->items.size() == 5);
  EXPECT_EQ(list->items[0].kind, Json::Integer);
  EXPECT_EQ(list->items[0].integer, 1);
  EXPECT_EQ(list->items[1].kind, Json::Number);
  EXPECT_EQ(list->items[1].number, -2500);
  EXPECT_TRUE(list->items[2].boolean);
  EXPECT_EQ(list->items[3].kind, Json::Null);
  EXPECT_EQ(list->items[4].string, "x\n\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_TRUE(value.find("b")->fields.empty());
  EXPECT_EQ(value.find("c"), nullptr);
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char *text :
       {"", "{", "[1,]", "{\"a\":1,}", "01", "+1", "nan", "1 2", "'a'",
        "\"\\x\"", "\"a", "{a: 1}", "1e999", "\"\\ud800\"", "tru"})
    EXPECT_NE(fails(text), "") << text;
  EXPECT_THAT(fails("{\n \"a\": ?}"), HasSubstr("line 2, column 7"));
  EXPECT_THAT(fails("{\"a\": 1, \"a\": 2}"), HasSubstr("stands twice"));
  EXPECT_THAT(fails(std::string(100000, '[')), HasSubstr("too deeply"));
}

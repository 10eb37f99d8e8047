//===- ReportTest.cpp - the page holds what it should ---------------------===//

#include "autohet/Report/Report.h"
#include "plan/Models.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;
using testing::Not;

static Report planned() {
  UnitTable table = test::makeChain(8);
  Cluster cluster = test::makeCluster({4, 2, 1, 1});
  PlannerOptions options;
  options.global_batch = 16;
  auto result = planCluster(table, cluster, options);
  EXPECT_TRUE(static_cast<bool>(result));
  return describePlan("a model on four workers", *result, table, cluster);
}

static size_t count(llvm::StringRef text, llvm::StringRef part) {
  return text.count(part);
}

TEST(Report, HoldsClusterPlanTimelineAndMemory) {
  Report report = planned();
  EXPECT_EQ(report.devices.size(), 4u);
  EXPECT_EQ(report.timeline.size(), 4u);
  EXPECT_EQ(report.comparison.size(), 3u);
  std::string html = formatReport(report);
  for (const char *part : {"a model on four workers", "n3/0", "<svg",
                           "best symmetric plan", "optimizer state"})
    EXPECT_THAT(html, HasSubstr(part));
  // Every element is closed, and nothing is loaded from elsewhere.
  for (const char *tag : {"div", "span", "table", "tr", "td", "svg", "ul"})
    EXPECT_EQ(count(html, std::string("<") + tag + ">") +
                  count(html, std::string("<") + tag + " "),
              count(html, std::string("</") + tag + ">"))
        << tag;
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(Report, EscapesNames) {
  Report report;
  report.title = "a<b & c";
  EXPECT_THAT(formatReport(report), HasSubstr("<h1>a&lt;b &amp; c</h1>"));
}

TEST(Report, ThinSpansBecomeOne) {
  Report report;
  ReportLane &lane = report.timeline.emplace_back();
  lane.name = "n0/0";
  for (int i = 0; i < 50000; ++i)
    lane.spans.push_back(
        {SpanKind::Forward, "forward", i * 1e-3, (i + 1) * 1e-3});
  std::string html = formatReport(report);
  EXPECT_LT(html.size(), 20000u);
  EXPECT_THAT(html, HasSubstr("50000 × forward"));
}

TEST(Report, ShowsWhatDoesNotFit) {
  Report report;
  report.devices = {
      {"n0/0", "k", 1e9, 100, "replica 0, stage 0", 1, {{"parameters", 150}}}};
  EXPECT_THAT(formatReport(report), HasSubstr("class=\"bar over\""));
}

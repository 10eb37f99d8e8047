//===- ChromeTraceTest.cpp - traces are JSON that viewers read ------------===//

#include "simulator/Programs.h"

#include "llvm/Support/JSON.h"
#include "gmock/gmock.h"

using namespace autohet;

TEST(ChromeTrace, IsJsonWithASliceACommand) {
  Pipeline pipeline;
  pipeline.microbatches = 3;
  pipeline.stages = {{1, 2}, {1, 2}};
  pipeline.edges = {{0, 1, 100, {1e3, 0}, {1e3, 0}}};
  SimProgram program = test::makeProgram(pipeline);
  program.devices[0].name = "quote\"d/0";
  llvm::Expected<SimResult> result = simulate(program);
  ASSERT_TRUE(static_cast<bool>(result));

  auto trace = llvm::json::parse(formatChromeTrace(program, *result));
  ASSERT_TRUE(static_cast<bool>(trace));
  unsigned slices = 0, sends = 0;
  for (const llvm::json::Value &event :
       *trace->getAsObject()->getArray("traceEvents")) {
    llvm::StringRef phase = *event.getAsObject()->getString("ph");
    slices +=
        phase == "X" && event.getAsObject()->getString("cat") == "compute";
    sends += phase == "b";
  }
  EXPECT_EQ(slices, 12u);
  EXPECT_EQ(sends, 6u);
}

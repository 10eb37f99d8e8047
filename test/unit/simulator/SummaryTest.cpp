//===- SummaryTest.cpp - where a simulated step's time goes ---------------===//

#include "autohet/Simulator/Summary.h"
#include "simulator/Programs.h"

#include "gmock/gmock.h"

using namespace autohet;

static SimResult run(const SimProgram &program, SimOptions options = {}) {
  llvm::Expected<SimResult> result = simulate(program, options);
  if (result)
    return *result;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

TEST(Summary, PartsMakeTheStep) {
  Pipeline pipeline;
  pipeline.microbatches = 3;
  pipeline.stages = {{1, 2}, {1, 2}};
  pipeline.edges = {{0, 1, 500, {1e3, 0}, {1e3, 0}}};
  SimProgram program = test::makeProgram(pipeline);
  SimOptions options;
  options.steps = 2;
  SimSummary summary = summarize(program, run(program, options));
  ASSERT_EQ(summary.devices.size(), 2u);
  for (const DeviceSummary &device : summary.devices) {
    EXPECT_NEAR(device.compute_s, 9, 1e-9);
    EXPECT_GT(device.exposed_communication_s, 0);
    EXPECT_NEAR(device.compute_s + device.exposed_communication_s +
                    device.waiting_s,
                summary.step_s, 1e-9);
  }
  double all = 0;
  for (const CommandSummary &command : summary.commands)
    all += command.seconds;
  EXPECT_NEAR(all, 18, 1e-9);
}

namespace {

/// Two devices of one node send a second's worth each to another node's two.
double stepWithNic(double nicBytesPerSecond) {
  SimProgram program;
  auto add = [&](SimCommandKind kind, unsigned peer) {
    SimDevice &device = program.devices.emplace_back();
    device.name = "d" + std::to_string(program.devices.size());
    device.events.push_back({"done", false});
    SimCommand transfer, wait;
    transfer.kind = kind;
    transfer.peer = peer;
    transfer.bytes = 1e9;
    wait.kind = SimCommandKind::Wait;
    device.streams.push_back({"messages", {transfer, wait}});
  };
  for (unsigned peer : {2, 3})
    add(SimCommandKind::Send, peer);
  for (unsigned peer : {0, 1})
    add(SimCommandKind::Receive, peer);
  program.links.assign(16, {1e9, 0});
  program.nodes = {0, 0, 1, 1};
  program.nic_bytes_per_s = {nicBytesPerSecond, 0};
  return run(program).end_s;
}

} // namespace

TEST(Summary, DevicesShareTheirNodesCard) {
  EXPECT_NEAR(stepWithNic(0), 1, 1e-9);
  EXPECT_NEAR(stepWithNic(1e9), 2, 1e-9);
}

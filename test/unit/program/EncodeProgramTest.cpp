//===- EncodeProgramTest.cpp - programs written and read back ---------------===//
//
// Programs are encoded as the compiler does and loaded as an executable does:
// the reader checks every offset and index, the tests what they mean.
//
//===----------------------------------------------------------------------===//

#include "autohet/Program/EncodeProgram.h"

#include "core/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

using namespace autohet;
using testing::ElementsAre;

namespace {

/// A device's declarations; `STREAMS` stands for what it does.
const char *const kProgram = R"(
exec.program @"n0/1" rank 1 of 2 replica 3 stage 4 microbatches 4 of 2 from 8 batch 16
    bytes [512, 64, 64, 128, 64, 64] {
  exec.input "input_ids" role "input" kind "tokens" batch_dim 0 vocabulary 101 : tensor<2x12xi64>
  exec.input "targets" role "labels" kind "file" batch_dim 0 vocabulary 101 : tensor<2x12xi64>
  exec.output "logits" of [2, 6] at [0, 3] batch_dim 0 : tensor<2x3xf32>
  %ids = exec.buffer "ids" arena at 0 : !exec.buffer<tensor<2x12xi64>>
  %x = exec.buffer "x" arena slots 2 at 192 : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena at 320 : !exec.buffer<tensor<2x3xf32>>
  %l = exec.buffer "loss" arena at 384 : !exec.buffer<tensor<f32>>
  %p = exec.buffer "pair" arena at 448 : !exec.buffer<tensor<2xf32>>
  %w = exec.buffer "w" parameter at 0 : !exec.buffer<tensor<3x3xf32>>
  %g = exec.buffer "w.gradient" gradient at 0 : !exec.buffer<tensor<3x3xf32>>
  %m = exec.buffer "w.m" state at 0 : !exec.buffer<tensor<3x3xf32>>
  %v = exec.buffer "w.v" state at 64 : !exec.buffer<tensor<3x3xf32>>
  %t = exec.buffer "mask" constant at 0 : !exec.buffer<tensor<3xi1>>
  %s = exec.buffer "inverse_label_count" scalar at 0 : !exec.buffer<tensor<f32>>
  %e = exec.event "arrived" : index
  %f = exec.event "fresh" once : index
  exec.parameter "w" of [3, 6] at [0, 3] owned %w gradient %g states %m, %v : (!exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>)
  exec.parameter "mask" of [3] at [0] %t : (!exec.buffer<tensor<3xi1>>)
  STREAMS
}
func.func private @gelu_0(tensor<2x3xf32>) -> tensor<2x3xf32>
func.func private @unlisted(tensor<2x3xf32>) -> tensor<2x3xf32>
)";

/// One program, from text to the loader's view.
class Encoded {
public:
  explicit Encoded(const std::string &streams, ProgramFacts facts = {},
                   std::string program = kProgram) {
    program.replace(program.find("STREAMS"), strlen("STREAMS"), streams);
    context.loadDialect<exec::ExecDialect, mlir::func::FuncDialect>();
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
      errors += d.str() + "\n";
      return mlir::success();
    });
    auto module = mlir::parseSourceString<mlir::ModuleOp>(program, &context);
    if (!module)
      return;
    llvm::StringMap<unsigned> kernels = {{"gelu_0", 1}, {"neg_0", 0}};
    auto written = encodeProgram(*module->getOps<exec::ProgramOp>().begin(),
                                 kernels, facts);
    if (failed(written))
      return;
    bytes = *written;
    // As linked: aligned, with the kernels beside it.
    blob.resize((bytes.size() + 7) / 8);
    memcpy(blob.data(), bytes.data(), bytes.size());
    image = {reinterpret_cast<const ah_program *>(blob.data()), functions, 2,
             names};
    try {
      read.emplace(image);
    } catch (const std::exception &error) {
      errors += error.what();
    }
  }

  const runtime::Program &operator*() const { return *read; }
  const runtime::Program *operator->() const { return &*read; }

  /// `KIND 'name' at MICROBATCH (buffers) [arguments]`; `i+` in the loop.
  std::vector<std::string> commandsOf(unsigned stream) const {
    std::vector<std::string> lines;
    const ah_stream &s = read->streams[stream];
    for (unsigned i = 0; i < s.command_count; ++i) {
      const ah_command &c = read->commands[s.first_command + i];
      std::string line;
      llvm::raw_string_ostream os(line);
      os << runtime::kindName(c.kind) << " '" << read->name(c) << "' at "
         << (c.in_loop ? "i+" : "") << c.microbatch << " (";
      for (unsigned j = 0; j < c.operand_count; ++j) {
        uint32_t buffer = read->operands[c.first_operand + j];
        os << (j ? " " : "") << read->string(read->buffers[buffer].name);
      }
      os << ") [" << c.args[0] << " " << c.args[1] << " " << c.args[2] << " "
         << c.args[3] << "]";
      lines.push_back(line);
    }
    return lines;
  }

  std::string errors, bytes;
  std::optional<runtime::Program> read;

private:
  static int64_t nothing(void *const *, ah_kernel_context *) { return 0; }

  mlir::MLIRContext context;
  std::vector<uint64_t> blob;
  ah_kernel functions[2] = {nothing, nothing};
  const char *names[2] = {"neg_0", "gelu_0"};
  ah_device_image image;
};

std::vector<int64_t> shape(const int64_t *first, unsigned rank) {
  return {first, first + rank};
}

} // namespace

// Each kind of command once, in the order of ah_command_kind where a program
// allows it.
TEST(EncodeProgram, EveryCommand) {
  ProgramFacts facts;
  facts.optimizer = "adamw"; // whose update has two states
  Encoded p(R"(
  exec.stream "compute" {
    exec.hook "begin"
    exec.wait %f {microbatch = -1 : i64}
    exec.zero %g : !exec.buffer<tensor<3x3xf32>>
    exec.loop 0 to 3 {
      exec.feed "targets" %ids {microbatch = 1 : i64} : !exec.buffer<tensor<2x12xi64>>
      exec.wait %e
      exec.launch @gelu_0(%y, %x) writes 1 {microbatch = 1 : i64} : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
      exec.gemm %x, %w, %y sizes [1, 2, 3, 3] {accumulate, transpose_b} : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<2x3xf32>>
      exec.loss %l : !exec.buffer<tensor<f32>>
      exec.emit "logits" %x : !exec.buffer<tensor<2x3xf32>>
    }
    exec.copy %x to %y : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
    exec.reduce %g, %w to %g : !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>> to !exec.buffer<tensor<3x3xf32>>
    exec.norm %g : !exec.buffer<tensor<3x3xf32>>
    exec.agree
    exec.update %w, %g states %m, %v : !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>> : !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>
    exec.record %f
    exec.hook "end"
  }
  exec.stream "transfers" communication {
    exec.loop 0 to 4 {
      exec.recv %x from 0 channel 7 event %e : !exec.buffer<tensor<2x3xf32>>
    }
    exec.send %y to 0 channel 8 event %f {microbatch = 3 : i64} : !exec.buffer<tensor<2x3xf32>>
  })",
            facts);
  ASSERT_TRUE(p.read) << p.errors;
  EXPECT_THAT(p.commandsOf(0),
              ElementsAre("HOOK 'hook' at 0 () [0 0 0 0]", //
                          "WAIT 'wait fresh' at -1 () [1 0 0 0]",
                          "ZERO 'zero w.gradient' at 0 (w.gradient) [36 0 0 0]",
                          "LOOP 'loop' at 0 () [0 3 0 0]",
                          "FEED 'feed ids' at i+1 (ids) [1 0 0 0]",
                          "WAIT 'wait arrived' at i+0 () [0 0 0 0]",
                          "LAUNCH 'gelu_0 x' at i+1 (y x) [1 0 0 0]",
                          "GEMM 'gemm y' at i+0 (x w y) [0 0 0 0]",
                          "LOSS 'loss loss' at i+0 (loss) [0 0 0 0]",
                          "OUTPUT 'emit x' at i+0 (x) [0 0 0 0]",
                          "END_LOOP 'loop' at 0 () [0 0 0 0]",
                          "COPY 'copy y' at 0 (y x) [24 0 0 0]",
                          "REDUCE 'reduce w.gradient' at 0 "
                          "(w.gradient w.gradient w) [9 0 0 0]",
                          "NORM 'norm w.gradient' at 0 (w.gradient) [0 0 0 0]",
                          "AGREE 'agree' at 0 () [0 0 0 0]",
                          "UPDATE 'update w' at 0 "
                          "(w w.gradient w.m w.v) [0 0 0 0]",
                          "RECORD 'record fresh' at 0 () [1 0 0 0]",
                          "HOOK 'hook' at 0 () [1 0 0 0]"));
  EXPECT_THAT(p.commandsOf(1),
              ElementsAre("LOOP 'loop' at 0 () [0 4 0 0]",
                          "RECV 'recv arrived' at i+0 (x) [0 7 24 0]",
                          "END_LOOP 'loop' at 0 () [0 0 0 0]",
                          "SEND 'send fresh' at 3 (y) [0 8 24 1]"));
  // Every kind that the format has is among them.
  std::set<int> kinds;
  for (const ah_command &command : p->commands)
    kinds.insert(command.kind);
  EXPECT_EQ(kinds.size(), size_t(AH_HOOK) + 1);
  EXPECT_EQ(p->streams[1].is_communication, 1u);
  EXPECT_TRUE(p->communicates());
}

TEST(EncodeProgram, HeaderAndDeclarations) {
  ProgramFacts facts;
  facts.structureHash = 0x123456789abcdef0;
  facts.node = 5;
  facts.deviceIndex = 6;
  facts.optimizer = "adamw";
  facts.objective = "masked";
  facts.ignoreIndex = -1;
  facts.sequenceLength = 12;
  Encoded p(
      R"(exec.stream "compute" { exec.loss %l : !exec.buffer<tensor<f32>> })",
      facts);
  ASSERT_TRUE(p.read) << p.errors;
  const ah_program &header = p->header();
  EXPECT_EQ(header.total_bytes, p.bytes.size());
  EXPECT_EQ(header.structure_hash, facts.structureHash);
  EXPECT_EQ(header.rank, 1u);
  EXPECT_EQ(header.world_size, 2u);
  EXPECT_EQ(header.node, 5u);
  EXPECT_EQ(header.device, 6u);
  EXPECT_EQ(header.replica, 3u);
  EXPECT_EQ(header.stage, 4u);
  EXPECT_EQ(header.optimizer, uint32_t(AH_ADAMW));
  EXPECT_EQ(header.objective, uint32_t(AH_MASKED));
  EXPECT_EQ(header.ignore_index, -1);
  EXPECT_EQ(header.sequence_length, 12u);
  EXPECT_EQ(header.reports_loss, 1u);
  EXPECT_EQ(header.global_batch, 16u);
  EXPECT_EQ(header.microbatch_size, 2u);
  EXPECT_EQ(header.microbatches, 4u);
  EXPECT_EQ(header.first_sample, 8u);
  EXPECT_THAT(header.space_bytes,
              ElementsAre(512, 64, 64, 128, 64, 64 * AH_SCALAR_COUNT));

  ASSERT_EQ(p->buffers.size(), 11u);
  const ah_buffer &x = p->buffers[1];
  EXPECT_STREQ(p->string(x.name), "x");
  EXPECT_EQ(x.space, AH_SPACE_ARENA);
  EXPECT_EQ(x.dtype, AH_F32);
  EXPECT_EQ(x.slots, 2u);
  EXPECT_EQ(x.offset, 192u);
  EXPECT_EQ(x.bytes, 24u);
  EXPECT_EQ(x.slot_stride, 64u);
  EXPECT_THAT(shape(x.shape, x.rank), ElementsAre(2, 3));
  EXPECT_EQ(p->buffers[0].dtype, AH_I64);
  EXPECT_EQ(p->buffers[9].dtype, AH_BOOL);
  EXPECT_EQ(p->buffers[9].bytes, 3u); // a byte each
  EXPECT_EQ(p->buffers[10].space, AH_SPACE_SCALAR);

  ASSERT_EQ(p->parameters.size(), 2u);
  const ah_parameter &w = p->parameters[0], &mask = p->parameters[1];
  EXPECT_STREQ(p->string(w.name), "w");
  EXPECT_TRUE(w.trained && w.owned);
  EXPECT_THAT(shape(w.global_shape, w.rank), ElementsAre(3, 6));
  EXPECT_THAT(shape(w.box_offset, w.rank), ElementsAre(0, 3));
  EXPECT_THAT(shape(w.box_size, w.rank), ElementsAre(3, 3));
  EXPECT_EQ(w.parameter_buffer, 5u);
  EXPECT_EQ(w.gradient_buffer, 6u);
  EXPECT_THAT(w.state_buffers, ElementsAre(7, 8));
  EXPECT_FALSE(mask.trained || mask.owned);
  EXPECT_EQ(mask.gradient_buffer, AH_NO_INDEX);
  EXPECT_THAT(mask.state_buffers, ElementsAre(AH_NO_INDEX, AH_NO_INDEX));

  ASSERT_EQ(p->inputs.size(), 2u);
  EXPECT_EQ(p->inputs[0].kind, AH_BIND_TOKENS);
  EXPECT_EQ(p->inputs[0].role, 0);
  EXPECT_EQ(p->inputs[0].vocabulary, 101);
  EXPECT_EQ(p->inputs[1].kind, AH_BIND_FILE);
  EXPECT_EQ(p->inputs[1].role, 1);
  ASSERT_EQ(p->outputs.size(), 1u);
  EXPECT_THAT(shape(p->outputs[0].shape, 2), ElementsAre(2, 3));
  EXPECT_THAT(shape(p->outputs[0].box_offset, 2), ElementsAre(0, 3));
  EXPECT_THAT(shape(p->outputs[0].global_shape, 2), ElementsAre(2, 6));
  EXPECT_EQ(p->outputs[0].batch_dim, 0);

  ASSERT_EQ(p->events.size(), 2u);
  EXPECT_EQ(p->events[0].once_a_step, 0u);
  EXPECT_EQ(p->events[1].once_a_step, 1u);
}

// Row-major: a is stored [k, m] and b [n, k] where they are transposed.
TEST(EncodeProgram, Gemms) {
  Encoded p(R"(exec.stream "compute" {
    exec.gemm %x, %w, %y sizes [1, 2, 3, 3] : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<2x3xf32>>
    exec.gemm %x, %y, %g sizes [1, 3, 3, 2] {transpose_a, accumulate} : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<3x3xf32>>
    exec.gemm %x, %y, %p sizes [2, 1, 1, 3] {transpose_b} : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2xf32>>
  })");
  ASSERT_TRUE(p.read) << p.errors;
  auto numbers = [&](unsigned i) {
    const ah_gemm &g = p->gemms[i];
    return std::vector<int64_t>{
        g.batch,         g.m,        g.n,           g.k,
        g.lda,           g.ldb,      g.ldc,         g.stride_a,
        g.stride_b,      g.stride_c, g.transpose_a, g.transpose_b,
        g.b_is_parameter};
  };
  ASSERT_EQ(p->gemms.size(), 3u);
  EXPECT_THAT(numbers(0),
              ElementsAre(1, 2, 3, 3, 3, 3, 3, 6, 9, 6, 0, 0, /*parameter=*/1));
  EXPECT_THAT(numbers(1), ElementsAre(1, 3, 3, 2, 3, 3, 3, 6, 6, 9, 1, 0, 0));
  EXPECT_THAT(numbers(2), ElementsAre(2, 1, 1, 3, 3, 3, 1, 3, 3, 1, 0, 1, 0));
  EXPECT_EQ(p->gemms[0].beta, 0);
  EXPECT_EQ(p->gemms[1].beta, 1);
  EXPECT_EQ(p->gemms[0].alpha, 1);
}

// Equal programs are equal bytes: the hash that ranks compare covers them.
TEST(EncodeProgram, IsAFunctionOfTheProgram) {
  const char *streams = R"(exec.stream "compute" { exec.agree })";
  EXPECT_EQ(Encoded(streams).bytes, Encoded(streams).bytes);
  EXPECT_FALSE(Encoded(streams).read->communicates());
}

static std::string errorOf(const std::string &streams,
                           const std::string &from = "",
                           const std::string &to = "") {
  std::string program = kProgram;
  if (!from.empty())
    program.replace(program.find(from), from.size(), to);
  Encoded p(streams, {}, program);
  EXPECT_FALSE(p.read);
  return p.errors;
}

TEST(EncodeProgram, WhatIsNotPlannedIsRefused) {
  using testing::HasSubstr;
  const char *agree = R"(exec.stream "compute" { exec.agree })";
  EXPECT_THAT(errorOf(agree, "bytes [512, 64, 64, 128, 64, 64]"),
              HasSubstr("has no memory plan; run exec-plan-memory first"));
  EXPECT_THAT(errorOf(agree, " at 320"),
              HasSubstr("has no place; run exec-plan-memory first"));
  EXPECT_THAT(errorOf(agree, "tensor<2xf32>", "tensor<1x1x1x1x1x1x1x1x2xf32>"),
              HasSubstr("has 9 dims, the most is 8"));
}

TEST(EncodeProgram, WhatNamesNothingIsRefused) {
  using testing::HasSubstr;
  auto stream = [](const std::string &command) {
    return "exec.stream \"compute\" { " + command + " }";
  };
  EXPECT_THAT(errorOf(stream("exec.launch @unlisted(%x, %y) writes 1 : "
                             "!exec.buffer<tensor<2x3xf32>>, "
                             "!exec.buffer<tensor<2x3xf32>>")),
              HasSubstr("launches @unlisted, which is no kernel"));
  EXPECT_THAT(errorOf(stream("exec.norm %x : !exec.buffer<tensor<2x3xf32>>")),
              HasSubstr("counts a gradient that no owned parameter has"));
  EXPECT_THAT(errorOf(stream("exec.update %w, %g : "
                             "!exec.buffer<tensor<3x3xf32>>, "
                             "!exec.buffer<tensor<3x3xf32>>"),
                      "owned %w gradient %g states %m, %v : "
                      "(!exec.buffer<tensor<3x3xf32>>, "
                      "!exec.buffer<tensor<3x3xf32>>, ",
                      "%w gradient %g : ("),
              HasSubstr("updates a parameter that is not owned"));
}

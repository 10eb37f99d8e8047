//===- CompileKernelsTest.cpp - what is compiled, and what is found ---------===//
//
// A lowering that counts shows which kernels the cache spared.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/CompileKernels.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Codegen/Passes.h"
#include "autohet/Target/CPU/EmitNodeImage.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace autohet;
using namespace autohet::cpu;
using testing::HasSubstr;

namespace {

struct CompileKernels : testing::Test {
  CompileKernels() {
    context.loadDialect<het::HetDialect, mlir::func::FuncDialect>();
    target.cpu = "x86-64-v3";
    target = llvm::cantFail(resolveTarget(target));
  }

  /// Compiles the functions of `text`; `errors` says why where that fails.
  std::vector<KernelObject> compile(const std::string &text,
                                    unsigned threads = 1) {
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
      llvm::raw_string_ostream os(errors);
      os << d.getLocation() << ": " << d << "\n";
      return mlir::success();
    });
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return {};
    KernelLowering lowering{registerKernelDialects,
                            [&](mlir::OpPassManager &passes) {
                              ++compiled;
                              buildKernelPipeline(passes);
                            }};
    auto kernels = llvm::to_vector(module->getOps<mlir::func::FuncOp>());
    auto objects = compileKernels(kernels, lowering, target, cache, threads);
    if (failed(objects))
      return {};
    return {objects->begin(), objects->end()};
  }

  mlir::MLIRContext context;
  TargetOptions target;
  ObjectCache cache;
  std::atomic<unsigned> compiled = 0;
  std::string errors;
};

std::string kernel(const std::string &name, const std::string &op,
                   const std::string &attributes = "") {
  return "func.func private @" + name +
         "(%x: tensor<4xf32>) -> tensor<4xf32> " + attributes +
         " {\n  %y = het." + op +
         " %x : (tensor<4xf32>) -> tensor<4xf32>\n"
         "  return %y : tensor<4xf32>\n}\n";
}

/// The symbols of an object, and whether it defines them.
std::map<std::string, bool> symbolsOf(const std::string &object) {
  std::map<std::string, bool> symbols;
  auto buffer = llvm::MemoryBuffer::getMemBuffer(object, "", false);
  auto file = llvm::cantFail(
      llvm::object::ObjectFile::createObjectFile(buffer->getMemBufferRef()));
  for (const llvm::object::SymbolRef &symbol : file->symbols())
    symbols[llvm::cantFail(symbol.getName()).str()] =
        !(llvm::cantFail(symbol.getFlags()) &
          llvm::object::SymbolRef::SF_Undefined);
  return symbols;
}

} // namespace

// Where a kernel is used is not what it computes.
TEST_F(CompileKernels, EqualBodiesAreOneObject) {
  auto objects =
      compile(kernel("first", "neg") + kernel("other", "exp") +
              kernel("again", "neg", "attributes {het.unit = \"a\"}"));
  ASSERT_EQ(objects.size(), 3u) << errors;
  EXPECT_EQ(compiled, 2u);
  EXPECT_EQ(objects[0].symbol, objects[2].symbol);
  EXPECT_EQ(objects[0].object, objects[2].object);
  EXPECT_NE(objects[0].symbol, objects[1].symbol);
  EXPECT_TRUE(symbolsOf(objects[0].object).at(objects[0].symbol));
}

TEST_F(CompileKernels, KnownOnesAreNotCompiled) {
  auto before = compile(kernel("k", "neg"));
  auto after = compile(kernel("renamed", "neg") + kernel("new", "exp"));
  ASSERT_EQ(after.size(), 2u) << errors;
  EXPECT_EQ(compiled, 2u);
  EXPECT_EQ(before[0].object, after[0].object);
}

TEST_F(CompileKernels, AnotherTargetIsAnotherKernel) {
  auto narrow = compile(kernel("k", "neg"));
  target.preferVectorWidth = 128;
  auto wide = compile(kernel("k", "neg"));
  ASSERT_TRUE(narrow.size() == 1 && wide.size() == 1) << errors;
  EXPECT_EQ(compiled, 2u);
  EXPECT_NE(narrow[0].symbol, wide[0].symbol);
}

// The result is in the kernels' order, and the same, whoever compiled which.
TEST_F(CompileKernels, ThreadsChangeNothing) {
  std::string text;
  for (const char *op : {"neg", "exp", "abs", "sqrt", "tanh", "relu"})
    text += kernel(op, op);
  auto one = compile(text, 1);
  cache.~ObjectCache();
  new (&cache) ObjectCache();
  auto many = compile(text, 4);
  ASSERT_TRUE(one.size() == 6 && many.size() == 6) << errors;
  EXPECT_EQ(compiled, 12u);
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_EQ(one[i].symbol, many[i].symbol);
    EXPECT_EQ(one[i].object, many[i].object);
  }
}

// A failure is said at the kernel, and kept out of the cache.
TEST_F(CompileKernels, FailuresAreLocatedAndNotKept) {
  std::string bad = R"(
func.func private @bad() -> tensor<4xf32> {
  %y = het.parameter "w" : tensor<4xf32>
  return %y : tensor<4xf32>
} loc("model.onnx":7:3)
)";
  for (unsigned attempt = 1; attempt <= 2; ++attempt) {
    errors.clear();
    EXPECT_TRUE(compile(kernel("good", "neg") + bad).empty());
    EXPECT_THAT(errors, HasSubstr("model.onnx\":7:3"));
    EXPECT_THAT(errors,
                HasSubstr("cannot compile this kernel for x86-64-v3: "));
    EXPECT_THAT(errors, HasSubstr("het.parameter"));
  }
  // The good one was kept.
  unsigned before = compiled;
  EXPECT_EQ(compile(kernel("good", "neg")).size(), 1u);
  EXPECT_EQ(compiled, before);
}

// A node's tables: its image and main are here, its kernels elsewhere.
TEST(EmitNodeImage, DefinesTheImageAndNamesTheKernels) {
  NodeImage image;
  image.manifest = "{\"node\": 1}";
  image.node = 1;
  image.nodeCount = 2;
  image.devices.resize(2);
  image.devices[0] = {std::string("pro\0gram", 8), {"kernel_a"}, {"neg_0"}};
  image.devices[1] = {"other", {"kernel_a", "kernel_b"}, {"neg_0", "exp_0"}};
  auto object = emitNodeImage(image, llvm::cantFail(resolveTarget({})));
  ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
  auto symbols = symbolsOf(*object);
  for (const char *defined : {"autohet_node_image", "main"})
    EXPECT_TRUE(symbols.count(defined) && symbols[defined]) << defined;
  for (const char *needed : {"autohet_node_main", "kernel_a", "kernel_b"})
    EXPECT_TRUE(symbols.count(needed) && !symbols[needed]) << needed;
  EXPECT_THAT(*object, HasSubstr(image.manifest));
  EXPECT_THAT(*object, HasSubstr(image.devices[0].program));
}

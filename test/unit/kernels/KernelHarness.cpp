//===- KernelHarness.cpp - runs a kernel given as text --------------------===//

#include "KernelHarness.h"

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Codegen/Passes.h"
#include "autohet/Target/CPU/CompileKernels.h"
#include "autohet/Target/CPU/LinkNode.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

#include <dlfcn.h>

using namespace autohet;
using namespace autohet::test;

// The reference product that kernels under test call.
extern "C" void autohet_sgemm(int64_t transposeA, int64_t transposeB, int64_t m,
                              int64_t n, int64_t k, float alpha, const float *a,
                              int64_t lda, const float *b, int64_t ldb,
                              float beta, float *c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += double(transposeA ? a[l * lda + i] : a[i * lda + l]) *
               (transposeB ? b[j * ldb + l] : b[l * ldb + j]);
      float *target = &c[i * ldc + j];
      *target = float(alpha * sum + (beta == 0 ? 0 : beta * *target));
    }
}

namespace {

cpu::ObjectCache &cache() {
  static cpu::ObjectCache instance;
  return instance;
}

/// Compiles the one function of `text`; on failure, `message` says why.
std::optional<cpu::KernelObject> compile(const std::string &text,
                                         std::string &message) {
  mlir::MLIRContext context;
  context.loadDialect<het::HetDialect, mlir::func::FuncDialect>();
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    message += d.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return std::nullopt;
  auto target = cpu::resolveTarget({});
  if (!target) {
    message = llvm::toString(target.takeError());
    return std::nullopt;
  }
  auto kernel = *module->getOps<mlir::func::FuncOp>().begin();
  auto objects = cpu::compileKernels(
      kernel, {registerKernelDialects, buildKernelPipeline}, *target, cache());
  if (failed(objects))
    return std::nullopt;
  return objects->front();
}

} // namespace

Kernel::Kernel(const std::string &function) {
  std::string message;
  std::optional<cpu::KernelObject> object = compile(function, message);
  if (!object) {
    ADD_FAILURE() << message << "in\n" << function;
    return;
  }
  llvm::SmallString<128> path;
  llvm::sys::fs::createTemporaryFile("autohet-kernel", "so", path);
  cpu::LinkOptions options;
  options.shared = true;
  llvm::StringRef contents = object->object;
  if (llvm::Error error = cpu::linkNode(contents, path, options)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return;
  }
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  llvm::sys::fs::remove(path);
  if (!library) {
    ADD_FAILURE() << dlerror();
    return;
  }
  entry = reinterpret_cast<ah_kernel>(dlsym(library, object->symbol.c_str()));
  scratch = object->scratchBytes;
  EXPECT_TRUE(entry) << "no symbol " << object->symbol;
}

Kernel::~Kernel() {
  if (library)
    dlclose(library);
}

int64_t Kernel::operator()(std::vector<void *> operands,
                           ah_kernel_context *context) {
  if (!entry)
    return -1;
  std::vector<char> memory(scratch + 64);
  if (scratch) {
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    operands.push_back(
        reinterpret_cast<void *>((address + 63) & ~uintptr_t(63)));
  }
  ah_kernel_context none = {};
  return entry(operands.data(), context ? context : &none);
}

void autohet::test::expectCompileError(const std::string &function,
                                       const std::string &expected) {
  std::string message;
  EXPECT_FALSE(compile(function, message).has_value());
  EXPECT_NE(message.find(expected), std::string::npos) << message;
}

Floats autohet::test::random(size_t count, unsigned seed, float low,
                             float high) {
  Floats result(count);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  for (size_t i = 0; i < count; ++i)
    result[i] = distribution(generator);
  return result;
}

Longs autohet::test::randomIntegers(size_t count, unsigned seed, int64_t low,
                                    int64_t high) {
  Longs result(count);
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int64_t> distribution(low, high - 1);
  for (size_t i = 0; i < count; ++i)
    result[i] = distribution(generator);
  return result;
}

void autohet::test::expectNear(const Floats &actual,
                               const std::function<double(size_t)> &expected,
                               double tolerance, const char *what) {
  size_t wrong = 0;
  for (size_t i = 0; i < actual.size() && wrong < 5; ++i) {
    double wanted = expected(i), found = actual[i];
    bool equal = std::isnan(wanted)
                     ? std::isnan(found)
                     : found == wanted ||
                           std::abs(found - wanted) <=
                               tolerance * std::max(1.0, std::abs(wanted));
    if (!equal) {
      ADD_FAILURE() << what << "[" << i << "]: found " << found << ", wanted "
                    << wanted;
      ++wrong;
    }
  }
  EXPECT_TRUE(actual.guardsIntact()) << what << ": written out of bounds";
}

std::string autohet::test::tensorType(std::vector<int64_t> shape,
                                      const std::string &element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element + ">";
}

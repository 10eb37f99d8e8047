//===- CompileKernels.cpp - kernels to objects ----------------------------===//
//
// A kernel travels as text: that is its identity for the cache, and it lets
// each thread work in a context of its own, without locks.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/CompileKernels.h"

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Target/CPU/EmitObject.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"

#include <atomic>
#include <thread>

using namespace mlir;
using namespace autohet;
using namespace autohet::cpu;

namespace {

/// Raise when generated code changes for equal input: cached objects of older
/// versions are then not found.
constexpr StringLiteral kGeneratorVersion = "autohet-kernels-2";

/// A kernel's text without its name and attributes, which say where it is used
/// and not what it computes.
std::string canonicalText(func::FuncOp kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  func::FuncOp clone = kernel.clone();
  module->push_back(clone);
  clone.setName("kernel");
  clone.setPrivate();
  clone->setDiscardableAttrs(DictionaryAttr::get(kernel.getContext()));
  clone.removeArgAttrsAttr();
  clone.removeResAttrsAttr();
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

std::string hashOf(StringRef text, const TargetOptions &target) {
  llvm::BLAKE3 hasher;
  std::string targetText = target.str();
  for (StringRef part :
       {StringRef(kGeneratorVersion), StringRef(LLVM_VERSION_STRING),
        StringRef(targetText), text}) {
    hasher.update(part);
    hasher.update(StringRef("\0", 1)); // "ab"+"c" is not "a"+"bc"
  }
  auto digest = hasher.final<16>();
  return llvm::toHex(ArrayRef<uint8_t>(digest), /*LowerCase=*/true);
}

/// One kernel to compile, and what became of it.
struct Job {
  std::string text, key;
  func::FuncOp kernel; // where problems are reported
  KernelObject object;
  std::string error;
};

/// What a thread needs to compile kernels, made once: loading dialects costs
/// as much as a small kernel.
class Worker {
public:
  Worker(const KernelLowering &lowering, const TargetOptions &target)
      : lowering(lowering), target(target) {
    DialectRegistry registry;
    lowering.registerDialects(registry);
    registerCpuTranslations(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  void compile(Job &job) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      job.error += diagnostic.str() + "\n";
      return success();
    });
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(job.text, &context);
    if (!module)
      return;
    job.object.symbol = "autohet_kernel_" + job.key;
    auto kernel = *module->getOps<func::FuncOp>().begin();
    kernel.setName(job.object.symbol);
    PassManager passes(&context);
    lowering.buildPipeline(passes);
    if (failed(passes.run(*module))) {
      if (job.error.empty())
        job.error = "lowering failed\n";
      return;
    }
    module->walk([&](Operation *op) {
      if (auto bytes = op->getAttrOfType<IntegerAttr>(exec::kScratchBytesAttr))
        job.object.scratchBytes = bytes.getInt();
    });
    auto object = emitObject(*module, target, OptLevel::Kernels);
    if (!object) {
      job.error += llvm::toString(object.takeError()) + "\n";
      return;
    }
    job.object.object = std::move(*object);
    job.error.clear(); // remarks and warnings of a kernel that compiled
  }

private:
  const KernelLowering &lowering;
  const TargetOptions &target;
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

} // namespace

FailureOr<SmallVector<KernelObject>> autohet::cpu::compileKernels(
    ArrayRef<func::FuncOp> kernels, const KernelLowering &lowering,
    const TargetOptions &target, ObjectCache &cache, unsigned threads) {
  // Kernels that differ in name only are compiled once.
  SmallVector<std::string> keys;
  llvm::StringMap<KernelObject> objects;
  std::vector<Job> jobs;
  for (func::FuncOp kernel : kernels) {
    std::string text = canonicalText(kernel);
    std::string key = hashOf(text, target);
    keys.push_back(key);
    if (objects.count(key))
      continue;
    std::optional<KernelObject> known = cache.lookup(key);
    objects[key] = known.value_or(KernelObject());
    if (!known)
      jobs.push_back({std::move(text), key, kernel, {}, {}});
  }

  std::atomic<size_t> next = 0;
  auto work = [&] {
    std::optional<Worker> worker;
    for (size_t i = next++; i < jobs.size(); i = next++) {
      if (!worker)
        worker.emplace(lowering, target);
      worker->compile(jobs[i]);
    }
  };
  threads = std::max<size_t>(1, std::min<size_t>(threads, jobs.size()));
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();

  bool failed = false;
  for (Job &job : jobs) {
    if (!job.error.empty()) {
      job.kernel.emitError("cannot compile this kernel for ")
          << target.cpu << ": " << StringRef(job.error).rtrim();
      failed = true;
      continue;
    }
    cache.insert(job.key, job.object);
    objects[job.key] = std::move(job.object);
  }
  if (failed)
    return failure();
  SmallVector<KernelObject> result;
  for (const std::string &key : keys)
    result.push_back(objects[key]);
  return result;
}

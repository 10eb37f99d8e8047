//===- KernelHarness.h - runs a kernel given as text ------------*- C++ -*-===//
//
// A kernel goes all the way: het text, the pipeline, an object, a shared
// library, a call through the runtime's signature. Results are compared with
// plain loops in double precision.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_KERNELS_KERNELHARNESS_H
#define AUTOHET_TEST_UNIT_KERNELS_KERNELHARNESS_H

#include "autohet/runtime/program.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace autohet::test {

/// Elements of one operand with guard zones around them.
template <typename T>
class Buffer {
public:
  explicit Buffer(size_t count) : count(count), storage(count + 2 * kGuard) {
    for (size_t i = 0; i < storage.size(); ++i)
      storage[i] = guardValue();
  }
  T *data() { return storage.data() + kGuard; }
  const T *data() const { return storage.data() + kGuard; }
  T &operator[](size_t i) { return data()[i]; }
  const T &operator[](size_t i) const { return data()[i]; }
  size_t size() const { return count; }
  operator void *() { return data(); }
  bool guardsIntact() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (storage[i] != guardValue() ||
          storage[kGuard + count + i] != guardValue())
        return false;
    return true;
  }

private:
  static T guardValue() { return T(77); }
  // As large as a vector register, so that a write past the end is caught.
  static constexpr size_t kGuard = 64;
  size_t count;
  std::vector<T> storage;
};

using Floats = Buffer<float>;
using Longs = Buffer<int64_t>;
using Bools = Buffer<uint8_t>;

/// Uniform in [low, high), from a fixed seed.
Floats random(size_t count, unsigned seed, float low = -2, float high = 2);
Longs randomIntegers(size_t count, unsigned seed, int64_t low, int64_t high);

/// A compiled and loaded kernel.
class Kernel {
public:
  /// `function` is the text of one func.func. Failures are test failures.
  explicit Kernel(const std::string &function);
  ~Kernel();
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  bool isLoaded() const { return entry != nullptr; }
  int64_t scratchBytes() const { return scratch; }
  /// Calls it with inputs, then results.
  int64_t operator()(std::vector<void *> operands,
                     ah_kernel_context *context = nullptr);

private:
  void *library = nullptr;
  ah_kernel entry = nullptr;
  int64_t scratch = 0;
};

/// Compiles `function` and expects a diagnostic that contains `message`.
void expectCompileError(const std::string &function,
                        const std::string &message);

/// |actual - expected| <= tolerance * max(1, |expected|), element by element;
/// and the guards are intact.
void expectNear(const Floats &actual,
                const std::function<double(size_t)> &expected,
                double tolerance = 1e-5, const char *what = "");

/// "2x3x771xf32" from {2, 3, 771}.
std::string tensorType(std::vector<int64_t> shape,
                       const std::string &element = "f32");

} // namespace autohet::test

#endif

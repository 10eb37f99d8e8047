//===- Gemm.cpp - matrix products by oneDNN ---------------------------------===//
//
// oneDNN is opened when a program needs it, so that an executable starts
// without it and says by name what is missing. One thread: a device of a host
// is one worker, and what emulation holds back is the thread that computes.
//
//===----------------------------------------------------------------------===//

#include "autohet/runtime/program.h"

#include "core/Error.h"
#include "device/cpu/Numerics.h"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace autohet::runtime::cpu {

using SgemmFunction = int (*)(char transposeA, char transposeB, int64_t m,
                              int64_t n, int64_t k, float alpha, const float *a,
                              int64_t lda, const float *b, int64_t ldb,
                              float beta, float *c, int64_t ldc);

static const char libraryName[] = "libdnnl.so.2";
static SgemmFunction sgemm = nullptr;
static std::string loadFailure;
static std::once_flag loaded;
static thread_local std::string kernelFailure;

static void load() {
  // Read by the OpenMP runtime when it is loaded, which is now.
  setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);
  void *library = dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    loadFailure =
        format("matrix products need oneDNN's %s (Debian: libdnnl2): %s",
               libraryName, dlerror());
    return;
  }
  sgemm = reinterpret_cast<SgemmFunction>(dlsym(library, "dnnl_sgemm"));
  if (!sgemm)
    loadFailure = format("%s has no function dnnl_sgemm", libraryName);
}

void requireGemmLibrary() {
  std::call_once(loaded, load);
  if (!sgemm)
    fail(AH_ERROR_NOT_FOUND, "%s", loadFailure.c_str());
}

const char *takeGemmFailure() {
  static thread_local std::string taken;
  if (kernelFailure.empty())
    return nullptr;
  taken.swap(kernelFailure);
  kernelFailure.clear();
  return taken.c_str();
}

// Below this many multiplications a call into the library costs more than the
// product. The loops add in the order of k.
constexpr int64_t smallProduct = 2048;

static void multiplySmall(bool transposeA, bool transposeB, int64_t m,
                          int64_t n, int64_t k, float alpha, const float *a,
                          int64_t lda, const float *b, int64_t ldb, float beta,
                          float *c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += (transposeA ? a[l * lda + i] : a[i * lda + l]) *
               (transposeB ? b[j * ldb + l] : b[l * ldb + j]);
      float &to = c[i * ldc + j];
      // With beta 0 the old value may be anything, NaN included.
      to = beta == 0 ? alpha * sum : alpha * sum + beta * to;
    }
}

} // namespace autohet::runtime::cpu

using namespace autohet::runtime;

void autohet_sgemm(int64_t transpose_a, int64_t transpose_b, int64_t m,
                   int64_t n, int64_t k, float alpha, const float *a,
                   int64_t lda, const float *b, int64_t ldb, float beta,
                   float *c, int64_t ldc) {
  if (m == 0 || n == 0)
    return;
  if (k == 0 || m * n * k <= cpu::smallProduct) {
    cpu::multiplySmall(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb,
                       beta, c, ldc);
    return;
  }
  std::call_once(cpu::loaded, cpu::load);
  if (!cpu::sgemm) {
    cpu::kernelFailure = cpu::loadFailure;
    return;
  }
  int status = cpu::sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m,
                          n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (status != 0)
    cpu::kernelFailure = format(
        "oneDNN refused a product of m %lld, n %lld, k %lld with status %d",
        (long long)m, (long long)n, (long long)k, status);
}

//===- Cpu.cpp - the CPU as a device ----------------------------------------===//

#include "autohet/runtime/device.h"

#include "core/Error.h"
#include "device/cpu/Numerics.h"

#include <cstring>
#include <sys/mman.h>

using namespace autohet::runtime;

// The CPU has no state: a stream is the thread that walks it.
struct ah_device {
  uint32_t index;
};

static ah_status cpuOpen(uint32_t index, const ah_program *program,
                         ah_device **device) {
  return guarded([&] {
    if (program->gemms.count > 0)
      cpu::requireGemmLibrary();
    *device = new ah_device{index};
  });
}

static void cpuClose(ah_device *device) { delete device; }

static ah_status cpuAllocate(ah_device *, ah_space, uint64_t bytes,
                             void **memory) {
  *memory = nullptr;
  if (bytes == 0)
    return AH_OK;
  // Fresh pages are zero, and spaces of megabytes want huge ones.
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return ah_fail(AH_ERROR_NO_SPACE, "cannot allocate %.1f MiB: %s",
                   double(bytes) / (1 << 20), strerror(errno));
  if (bytes >= (4u << 20))
    madvise(mapped, bytes, MADV_HUGEPAGE);
  *memory = mapped;
  return AH_OK;
}

static void cpuRelease(ah_device *, void *memory, uint64_t bytes) {
  if (memory)
    munmap(memory, bytes);
}

static ah_status cpuTransfer(ah_device *, void *to, const void *from,
                             uint64_t bytes) {
  memcpy(to, from, bytes);
  return AH_OK;
}

static ah_status cpuLaunch(ah_device *, uint32_t, ah_kernel kernel,
                           void *const *operands, ah_kernel_context *context) {
  int64_t result = kernel(operands, context);
  if (const char *failure = cpu::takeGemmFailure())
    return ah_fail(AH_ERROR_NOT_FOUND, "%s", failure);
  if (result == 0)
    return AH_OK;
  if (result == 1)
    return ah_fail(
        AH_ERROR_INPUT, "element %lld is %lld, outside of the table it indexes",
        (long long)context->error_index, (long long)context->error_value);
  return ah_fail(AH_ERROR_INTERNAL, "kernel returned %lld", (long long)result);
}

static ah_status cpuGemm(ah_device *, uint32_t, const ah_gemm *gemm,
                         const float *a, const float *b, float *c) {
  for (int64_t batch = 0; batch < gemm->batch; ++batch)
    autohet_sgemm(gemm->transpose_a, gemm->transpose_b, gemm->m, gemm->n,
                  gemm->k, gemm->alpha, a + batch * gemm->stride_a, gemm->lda,
                  b + batch * gemm->stride_b, gemm->ldb, gemm->beta,
                  c + batch * gemm->stride_c, gemm->ldc);
  if (const char *failure = cpu::takeGemmFailure())
    return ah_fail(AH_ERROR_NOT_FOUND, "%s", failure);
  return AH_OK;
}

static ah_status cpuCopy(ah_device *, uint32_t, void *to, const void *from,
                         uint64_t bytes) {
  memmove(to, from, bytes);
  return AH_OK;
}

static ah_status cpuZero(ah_device *, uint32_t, void *to, uint64_t bytes) {
  if (bytes > 0) // of an empty space there is not even an address
    memset(to, 0, bytes);
  return AH_OK;
}

static ah_status cpuReduce(ah_device *, uint32_t, float *to,
                           const float *const *from, uint32_t count,
                           int64_t elements) {
  cpu::reduce(to, from, count, elements);
  return AH_OK;
}

static ah_status cpuAddSquares(ah_device *, uint32_t, const float *from,
                               int64_t elements, double *sum) {
  *sum += cpu::sumOfSquares(from, elements);
  return AH_OK;
}

static ah_status cpuUpdate(ah_device *, uint32_t, const ah_update *update,
                           float *parameter, const float *gradient,
                           float *const *states, int64_t elements) {
  cpu::update(*update, parameter, gradient, states, elements);
  return AH_OK;
}

static ah_status cpuFinish(ah_device *, uint32_t) { return AH_OK; }

const ah_device_table *ah_cpu_device_table(void) {
  static const ah_device_table table = {sizeof(ah_device_table),
                                        AH_DEVICE_VERSION,
                                        "cpu",
                                        cpuOpen,
                                        cpuClose,
                                        cpuAllocate,
                                        cpuRelease,
                                        cpuTransfer,
                                        cpuTransfer,
                                        cpuLaunch,
                                        cpuGemm,
                                        cpuCopy,
                                        cpuZero,
                                        cpuReduce,
                                        cpuAddSquares,
                                        cpuUpdate,
                                        cpuFinish};
  return &table;
}

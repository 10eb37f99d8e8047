/*===- device.h - what the walker asks of a device --------------*- C -*-===*
 *
 * A back end is one table of functions. The walker knows no other difference
 * between a host and an accelerator, and one suite of tests runs on all.
 *
 *===----------------------------------------------------------------------===*/

#ifndef AUTOHET_RUNTIME_DEVICE_H
#define AUTOHET_RUNTIME_DEVICE_H

#include "autohet/runtime/optimizer.h"
#include "autohet/runtime/program.h"
#include "autohet/runtime/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ah_device ah_device; /* opaque */

#define AH_DEVICE_VERSION 1u
#define AH_ALIGNMENT 64u

typedef struct ah_device_table {
  uint32_t struct_bytes;
  uint32_t version; /* AH_DEVICE_VERSION */
  const char *name; /* "cpu" */

  /* Opens device `index` of this node and the libraries that `program` needs. */
  ah_status (*open)(uint32_t index, const ah_program *program, ah_device **device);
  void (*close)(ah_device *device);

  /* Zeroed memory, aligned to AH_ALIGNMENT. The walker reads and writes the
   * memory of AH_SPACE_SCALAR directly. */
  ah_status (*allocate)(ah_device *device, ah_space space, uint64_t bytes, void **memory);
  void (*release)(ah_device *device, void *memory, uint64_t bytes);

  /* Between host and device; done when they return. */
  ah_status (*write)(ah_device *device, void *to, const void *from_host, uint64_t bytes);
  ah_status (*read)(ah_device *device, void *to_host, const void *from, uint64_t bytes);

  /* Commands. Within a stream they take effect in order. */
  ah_status (*launch)(ah_device *device, uint32_t stream, ah_kernel kernel,
                      void *const *operands, ah_kernel_context *context);
  ah_status (*gemm)(ah_device *device, uint32_t stream, const ah_gemm *gemm,
                    const float *a, const float *b, float *c);
  ah_status (*copy)(ah_device *device, uint32_t stream, void *to, const void *from,
                    uint64_t bytes);
  ah_status (*zero)(ah_device *device, uint32_t stream, void *to, uint64_t bytes);
  /* to = from[0] + from[1] + ..., left to right; `to` may be one of them. */
  ah_status (*reduce)(ah_device *device, uint32_t stream, float *to,
                      const float *const *from, uint32_t count, int64_t elements);
  /* *sum += squares, in an order that depends on `elements` alone. */
  ah_status (*add_squares)(ah_device *device, uint32_t stream, const float *from,
                           int64_t elements, double *sum);
  /* Equal bits for equal inputs on every back end. */
  ah_status (*update)(ah_device *device, uint32_t stream, const ah_update *update,
                      float *parameter, const float *gradient, float *const *states,
                      int64_t elements);
  /* Waits until everything in the stream has taken effect. */
  ah_status (*finish)(ah_device *device, uint32_t stream);
} ah_device_table;

const ah_device_table *ah_cpu_device_table(void);

#ifdef __cplusplus
}
#endif

#endif

//===- Numerics.h - loops over floats of the CPU back end --------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_DEVICE_CPU_NUMERICS_H
#define AUTOHET_RUNTIME_DEVICE_CPU_NUMERICS_H

#include "autohet/runtime/optimizer.h"

#include <cstdint>

namespace autohet::runtime::cpu {

/// to = from[0] + from[1] + ..., left to right; `to` may be one of them.
void reduce(float *to, const float *const *from, uint32_t count,
            int64_t elements);

/// Sum of squares in double, in an order that depends on `elements` alone.
double sumOfSquares(const float *from, int64_t elements);

void update(const ah_update &update, float *parameter, const float *gradient,
            float *const *states, int64_t elements);

/// Opens the library of matrix products; throws AH_ERROR_NOT_FOUND naming it.
void requireGemmLibrary();

/// The failure of a product that a kernel of this thread asked for, or null;
/// clears it. Kernels cannot report it, `autohet_sgemm` returns nothing.
const char *takeGemmFailure();

} // namespace autohet::runtime::cpu

#endif

/*===- random.h - the one generator of random numbers -----------*- C -*-===*
 *
 * Dropout masks, initial weights and the order of data are pure functions of a
 * seed and of global positions, never of who computes them: any plan draws the
 * same numbers. Generated kernels inline the same arithmetic, so this header is
 * the definition and kernels are tested against it.
 *
 *   philox4x32-10(key = seed, counter = {element lo, element hi, op, step}) -> 4 words
 *
 * `element` is the row-major index in the global tensor of the step's whole
 * batch (sample number first), `op` an id fixed before planning, `step` the
 * step's number. A draw uses word 0 alone: boxes may start anywhere, so nothing
 * depends on an element's neighbours.
 *
 *===----------------------------------------------------------------------===*/

#ifndef AUTOHET_RUNTIME_RANDOM_H
#define AUTOHET_RUNTIME_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ops with ids from here on are the runtime's; a model's op ids are below. */
#define AH_RANDOM_FIRST_RESERVED_OP 0xffffff00u
#define AH_RANDOM_INIT 0xffffff01u    /* initial weights */
#define AH_RANDOM_ORDER 0xffffff02u   /* permutation of samples */
#define AH_RANDOM_MASKING 0xffffff03u /* tokens hidden by the masked objective */
#define AH_RANDOM_TOKENS 0xffffff04u  /* tokens made up where there is no data */

typedef struct ah_random {
  uint32_t word[4];
} ah_random;

/* Philox 4x32 with ten rounds (Salmon et al., 2011; Random123's constants). */
static inline ah_random ah_philox(uint64_t key, uint64_t element, uint32_t op,
                                  uint32_t step) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint32_t c0 = (uint32_t)element, c1 = (uint32_t)(element >> 32);
  uint32_t c2 = op, c3 = step;
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c0 = n0;
    c1 = (uint32_t)p1;
    c2 = n2;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u; /* golden ratio */
    k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
  }
  ah_random result = {{c0, c1, c2, c3}};
  return result;
}

/* [0, 1) in steps of 2^-24: exact in float, so equal on all hardware. */
static inline float ah_uniform(uint32_t word) {
  return (float)(word >> 8) * 0x1p-24f;
}

/* Dropout with probability p: kept elements are then multiplied by 1 / (1 - p). */
static inline int ah_dropout_keeps(uint64_t seed, uint64_t step, uint32_t op,
                                   uint64_t element, float p) {
  return ah_uniform(ah_philox(seed, element, op, (uint32_t)step).word[0]) >= p;
}

/* Standard normal by Box-Muller on words 0 and 1. Only IEEE-exact operations
 * (no libm, whose last bits differ between machines), in double: every holder
 * of a slice draws the same bits. Defined in the runtime. */
double ah_normal(ah_random draw);

/* FNV-1a, 64 bits: turns a parameter's name into part of a key. */
static inline uint64_t ah_name_hash(const char *name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (; *name; ++name)
    hash = (hash ^ (uint8_t)*name) * 0x100000001b3ull;
  return hash;
}

/* The key under which `name` draws its initial values: element = global index. */
static inline uint64_t ah_init_key(uint64_t seed, const char *name) {
  return seed ^ ah_name_hash(name);
}

#ifdef __cplusplus
}
#endif

#endif

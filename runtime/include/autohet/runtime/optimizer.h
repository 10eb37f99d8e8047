/*===- optimizer.h - the numbers of an optimizer ----------------*- C -*-===*
 *
 * Which optimizer a program runs is compiled in; its numbers are not. They are
 * one versioned struct, read at every step and stored in checkpoints, and the
 * learning rate is a function of the step alone, so that a resumed run needs no
 * history.
 *
 *===----------------------------------------------------------------------===*/

#ifndef AUTOHET_RUNTIME_OPTIMIZER_H
#define AUTOHET_RUNTIME_OPTIMIZER_H

#include "autohet/runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ah_schedule { AH_CONSTANT = 0, AH_LINEAR = 1, AH_COSINE = 2 } ah_schedule;

#define AH_OPTIMIZER_VERSION 1u

typedef struct ah_optimizer_settings {
  uint32_t struct_bytes;
  uint32_t version;       /* AH_OPTIMIZER_VERSION */
  double learning_rate;
  double beta1, beta2, epsilon;
  double weight_decay;
  double clip_norm;       /* 0: no clipping */
  uint32_t schedule;      /* ah_schedule */
  uint32_t reserved;
  int64_t warmup_steps;
  int64_t total_steps;    /* where a linear or cosine schedule ends */
} ah_optimizer_settings;

/* PyTorch's defaults: lr 1e-3, betas 0.9 0.999, eps 1e-8, weight decay 0.01 for
 * AdamW and 0 otherwise, no clipping, constant. */
void ah_optimizer_defaults(ah_optimizer kind, ah_optimizer_settings *settings);

/* The rate of step 0, 1, ...: linear from 0 over the warm-up, then constant, or
 * linear or half a cosine down to 0 at total_steps (as transformers'
 * get_*_schedule_with_warmup). */
double ah_learning_rate(const ah_optimizer_settings *settings, int64_t step);

/* clip_norm / (norm + 1e-6), at most 1, in float like torch.nn.utils.clip_grad_norm_;
 * 1 without clipping. */
float ah_clip_factor(const ah_optimizer_settings *settings, double squared_norm);

/* What one UPDATE command applies. */
typedef struct ah_update {
  uint32_t kind;          /* ah_optimizer */
  uint32_t clips;         /* multiply gradients by `clip` first */
  double learning_rate, beta1, beta2, epsilon;
  double weight_decay;    /* 0 for parameters excluded from it */
  int64_t updates;        /* this one included: PyTorch's state["step"] */
  float clip;
  float reserved;
} ah_update;

#ifdef __cplusplus
}
#endif

#endif

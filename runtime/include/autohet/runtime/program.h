/*===- program.h - the program of one device --------------------*- C -*-===*
 *
 * The one definition of what the compiler writes and the runtime walks: a
 * position-independent blob of constant tables. Offsets are in bytes from the
 * blob's first byte; indices are into tables; all integers are little endian.
 * Kernels are an array of function pointers beside the blob.
 *
 *   header | buffers | operands | commands | gemms | parameters | ... | strings
 *
 * A program is a few streams, each an ordered list of commands, walked by one
 * thread each. Streams meet only at events. One loop over microbatches keeps a
 * program's size independent of their number: a command inside it works for
 * microbatch `i + microbatch`, one outside for an absolute one. A buffer with k
 * slots gives microbatch m of walk w the slot (w * microbatches + m) mod k: as
 * events count, so that slots go round from walk to walk without a gap.
 *
 *===----------------------------------------------------------------------===*/

#ifndef AUTOHET_RUNTIME_PROGRAM_H
#define AUTOHET_RUNTIME_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AH_PROGRAM_MAGIC 0x54454854554141ull /* "AAUTHET" */
#define AH_PROGRAM_VERSION 2u
#define AH_MAX_RANK 8
#define AH_NO_INDEX 0xffffffffu

typedef enum ah_dtype {
  AH_F32 = 0, AH_F16 = 1, AH_BF16 = 2, AH_F64 = 3,
  AH_I8 = 4, AH_U8 = 5, AH_I16 = 6, AH_U16 = 7, AH_I32 = 8, AH_I64 = 9, AH_BOOL = 10,
  AH_U32 = 11, AH_U64 = 12,
  /* Only stored and converted. One element a byte; packed in files. */
  AH_F8_E4M3FN = 13, AH_F8_E4M3FNUZ = 14, AH_F8_E5M2 = 15, AH_F8_E5M2FNUZ = 16,
  AH_U4 = 17, AH_I4 = 18, AH_F4_E2M1 = 19, AH_U2 = 20, AH_I2 = 21,
  AH_DTYPE_COUNT = 22
} ah_dtype;

/* Where a buffer lives. Each space is one allocation of the device. */
typedef enum ah_space {
  AH_SPACE_ARENA = 0,     /* activations and temporaries, planned by liveness */
  AH_SPACE_PARAMETER = 1, /* trained parameters, as held here */
  AH_SPACE_GRADIENT = 2,  /* their gradients; the walker zeroes the space before a step's first command */
  AH_SPACE_STATE = 3,     /* optimizer state of the slices owned here */
  AH_SPACE_CONSTANT = 4,  /* untrained parameters: tables and masks */
  AH_SPACE_SCALAR = 5,    /* run-time scalars, see ah_scalar */
  AH_SPACE_COUNT = 6
} ah_space;

/* Buffers of the scalar space: 64 bytes each, in this order, f32 at the front. */
typedef enum ah_scalar {
  AH_SCALAR_INVERSE_LABEL_COUNT = 0, /* 1 / counted labels of the global batch */
  AH_SCALAR_LOSS = 1,                /* f64: sum of this step's losses here */
  AH_SCALAR_SQUARED_NORM = 2,        /* f64: of the gradients owned here */
  AH_SCALAR_CLIP = 3,                /* factor that clipping asks for */
  AH_SCALAR_COUNT = 4
} ah_scalar;

typedef enum ah_optimizer { AH_SGD = 0, AH_ADAM = 1, AH_ADAMW = 2, AH_NO_OPTIMIZER = 3 } ah_optimizer;

typedef struct ah_table {
  uint64_t offset;
  uint32_t count;
  uint32_t element_bytes;
} ah_table;

typedef struct ah_buffer {
  uint32_t name;        /* offset into strings */
  uint8_t space;        /* ah_space */
  uint8_t dtype;        /* ah_dtype */
  uint8_t rank;
  uint8_t reserved;
  uint32_t slots;       /* 1: the same memory for every microbatch */
  uint32_t reserved2;
  uint64_t offset;      /* in its space, of slot 0 */
  uint64_t bytes;       /* of one slot's payload */
  uint64_t slot_stride; /* from slot to slot */
  int64_t shape[AH_MAX_RANK];
} ah_buffer;

typedef enum ah_command_kind {
  /* kind             operands                  args
   * LAUNCH           as the kernel says        [0] kernel
   * GEMM             a, b, c                   [0] gemm
   * COPY             to, from                  [0] bytes
   * ZERO             to                        [0] bytes
   * REDUCE           to, from, from, ...       [0] elements (f32); to = from + from + ..., left to right;
   *                                            `to` may be one of them
   * SEND             from, from, ...           [0] peer rank [1] channel [2] bytes [3] event set when done;
   *                                            one message of all buffers, one behind the other
   * RECV             to, to, ...               [0] peer rank [1] channel [2] bytes [3] event set when done;
   *                                            the pieces may differ from the sender's, their sum may not
   * RECORD           -                         [0] event: done for this command's microbatch
   * WAIT             -                         [0] event: until done for this command's microbatch
   * LOOP             -                         [0] first, [1] end microbatch; commands up to END_LOOP
   * END_LOOP         -
   * FEED             to                        [0] input: this microbatch's part of the data
   * LOSS             from (f32 scalar)         adds it to the step's loss; already divided by the label count
   * OUTPUT           from                      [0] output: hand it to whoever asked for outputs
   * NORM             gradient                  [0] parameter: adds the slice's squares to SQUARED_NORM
   * AGREE            -                         the one agreement a step: squared norm, loss, flags
   * UPDATE           parameter, gradient, states...  [0] parameter
   * HOOK             -                         [0] which: 0 step begins, 1 step ends (checkpoints)
   */
  AH_LAUNCH = 0, AH_GEMM = 1, AH_COPY = 2, AH_ZERO = 3, AH_REDUCE = 4,
  AH_SEND = 5, AH_RECV = 6, AH_RECORD = 7, AH_WAIT = 8, AH_LOOP = 9,
  AH_END_LOOP = 10, AH_FEED = 11, AH_LOSS = 12, AH_OUTPUT = 13, AH_NORM = 14,
  AH_AGREE = 15, AH_UPDATE = 16, AH_HOOK = 17
} ah_command_kind;

typedef struct ah_command {
  uint8_t kind;           /* ah_command_kind */
  uint8_t in_loop;        /* microbatch is relative to the loop's index */
  uint16_t operand_count;
  uint32_t first_operand; /* into operands: buffer indices */
  int32_t microbatch;     /* absolute, or relative to the loop's index */
  uint32_t name;          /* what errors and traces call it */
  int64_t args[4];
} ah_command;

/* C = alpha op(A) op(B) + beta C on row-major f32, `batch` times. */
typedef struct ah_gemm {
  int64_t batch, m, n, k;
  int64_t lda, ldb, ldc;
  int64_t stride_a, stride_b, stride_c; /* elements, from batch to batch */
  float alpha, beta;
  uint8_t transpose_a, transpose_b;     /* A is stored [k, m], B is [n, k] */
  uint8_t b_is_parameter;               /* may be packed once a step */
  uint8_t reserved[5];
} ah_gemm;

/* One box of a parameter as held by this device. */
typedef struct ah_parameter {
  uint32_t name;             /* PyTorch's */
  uint8_t dtype, rank;
  uint8_t trained;
  uint8_t owned;             /* this device updates it, counts it in the norm and saves it;
                                a frozen parameter is owned by one holder too, a table by none */
  int64_t global_shape[AH_MAX_RANK];
  int64_t box_offset[AH_MAX_RANK];
  int64_t box_size[AH_MAX_RANK];
  uint32_t parameter_buffer; /* PARAMETER or CONSTANT space */
  uint32_t gradient_buffer;  /* AH_NO_INDEX where there is none */
  uint32_t state_buffers[2]; /* Adam's m and v; AH_NO_INDEX where there is none */
} ah_parameter;

/* A model input or output as this device sees it, one microbatch at a time. */
typedef struct ah_port {
  uint32_t name;
  uint8_t dtype, rank;
  uint8_t role;              /* inputs: 0 input, 1 labels; outputs: 0 */
  uint8_t kind;              /* tokens, labels, ones, zeros, arange: ah_binding */
  int64_t shape[AH_MAX_RANK];/* of one microbatch; dim `batch_dim` is samples */
  int32_t batch_dim;         /* -1: the same for every microbatch */
  uint32_t reserved;
  int64_t vocabulary;        /* tokens and labels must be below it; 0: unknown */
  int64_t box_offset[AH_MAX_RANK]; /* outputs held in part */
  int64_t global_shape[AH_MAX_RANK]; /* of one microbatch, all devices together */
} ah_port;

typedef enum ah_binding {
  AH_BIND_FILE = 0, AH_BIND_TOKENS = 1, AH_BIND_LABELS = 2, AH_BIND_ONES = 3,
  AH_BIND_ZEROS = 4, AH_BIND_ARANGE = 5
} ah_binding;

/* AH_NO_OBJECTIVE: the program only computes outputs (inference). */
typedef enum ah_objective { AH_CAUSAL = 0, AH_MASKED = 1, AH_GIVEN = 2, AH_NO_OBJECTIVE = 3 } ah_objective;

typedef struct ah_stream {
  uint32_t name;
  uint32_t first_command, command_count;
  uint32_t is_communication; /* only SEND, RECV, REDUCE, COPY and events */
} ah_stream;

/* A monotonic counter: RECORD sets it to step * microbatches + microbatch + 1, and
 * WAIT waits for that value; once_a_step ones count with microbatches = 1 and
 * microbatch = 0, or -1 in a WAIT for the step before (arrival of new
 * parameters), whatever a loop's index. A WAIT that looks back holds at the first
 * step. */
typedef struct ah_event {
  uint32_t name;
  uint32_t once_a_step; /* not a microbatch's */
} ah_event;

typedef struct ah_program {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t total_bytes;
  uint64_t structure_hash;  /* of the model, as in plan and weights.index */
  uint32_t rank, world_size;
  uint32_t node, device;    /* "node/index" */
  uint32_t replica, stage;
  uint32_t optimizer;       /* ah_optimizer */
  uint32_t objective;       /* ah_objective */
  int64_t ignore_index;
  uint32_t sequence_length; /* tokens a sample of the model, 0 where it has none */
  uint32_t reports_loss;    /* this device computes the loss */
  uint32_t global_batch;    /* samples, all replicas */
  uint32_t microbatch_size; /* samples */
  uint32_t microbatches;    /* of this replica, a step */
  uint32_t first_sample;    /* of this replica, in the global batch */
  uint64_t space_bytes[AH_SPACE_COUNT];
  ah_table buffers, operands /* uint32_t */, commands, gemms, parameters,
      inputs, outputs, streams, events, strings /* bytes, 0-terminated */;
} ah_program;

/* What a kernel may ask besides its operands. */
typedef struct ah_kernel_context {
  uint64_t seed, step;
  uint64_t first_sample; /* global number of the microbatch's first sample in this step's batch */
  int64_t error_index;   /* set by a kernel that returns nonzero: which element */
  int64_t error_value;   /* and what it held */
  uint64_t evaluates;    /* nonzero: dropout keeps everything, unscaled */
} ah_kernel_context;

/* `operands` are the addresses of the command's buffers. 0 is success; 1 is
 * an index outside its table, described in the context. */
typedef int64_t (*ah_kernel)(void *const *operands, ah_kernel_context *context);

/* What a node's executable is made of, beside the runtime: */
typedef struct ah_device_image {
  const ah_program *program;
  const ah_kernel *kernels;
  uint32_t kernel_count;
  const char *const *kernel_names;
} ah_device_image;

typedef struct ah_node_image {
  const char *manifest; /* JSON: node, cluster, plan hash, all devices, target features */
  const ah_device_image *devices;
  uint32_t device_count;
  uint32_t node, node_count;
} ah_node_image;

/* Defined by the compiler in each node's executable. */
extern const ah_node_image autohet_node_image;

/* Called by generated kernels: row-major f32 product, beta 0 or 1. */
void autohet_sgemm(int64_t transpose_a, int64_t transpose_b, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, int64_t lda,
                   const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

#ifdef __cplusplus
}
#endif

#endif

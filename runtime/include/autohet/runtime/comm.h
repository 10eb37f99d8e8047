/*===- comm.h - how one worker reaches the others ---------------*- C -*-===*
 *
 * What the command walker (runtime/core) asks of a transport (runtime/comm) and
 * of the supervisor (runtime/supervisor). A run of one device is given neither:
 * its table is null and no communication library is opened.
 *
 * Everything is point to point. The compiler composes collectives from sends,
 * receives and REDUCE commands in an order that is a function of the plan, so a
 * transport never chooses an algorithm.
 *
 *   worker                         supervisor              other workers
 *   ah_worker_join ──addresses──►  exchanges all of them
 *        ◄── table, comm, board ──
 *   start / wait / agree  ─────────────────────────────────────►
 *   board: commands walked, step  ► heartbeats
 *        ◄── board: save, stop
 *
 *===----------------------------------------------------------------------===*/

#ifndef AUTOHET_RUNTIME_COMM_H
#define AUTOHET_RUNTIME_COMM_H

#include "autohet/runtime/program.h"
#include "autohet/runtime/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Tags ---------------------------------------------------------------===*
 * A message is matched by (sender, tag). The low 44 bits of a tag are the
 * caller's; a transport uses the upper 20 for the sender's rank. Messages of
 * equal sender and tag arrive in the order of their starts.
 *===----------------------------------------------------------------------===*/

#define AH_TAG_BITS 44
#define AH_MAX_WORLD_SIZE (1u << 20)

typedef enum ah_tag_kind {
  AH_TAG_DATA = 0,   /* SEND and RECV commands */
  AH_TAG_AGREE = 1,  /* the transport's own, inside `agree` and `barrier` */
  AH_TAG_GATHER = 2, /* whole tensors for files, outside of steps */
  AH_TAG_CHECK = 3   /* debug comparisons of copies */
} ah_tag_kind;

/* `sequence` is the number of the walk over the program (a step, an evaluation);
 * its low bits suffice, since equal tags keep their order. */
static inline uint64_t ah_tag(ah_tag_kind kind, uint32_t channel, uint64_t sequence) {
  return ((uint64_t)kind << 40) | ((uint64_t)(channel & 0xfffffu) << 20) |
         (sequence & 0xfffffu);
}

/*===-- One transfer -------------------------------------------------------===*/

/* A part of a message that is scattered over memory. */
typedef struct ah_piece {
  void *data;
  uint64_t bytes;
} ah_piece;

/* Owned by the caller, who zeroes it, fills the upper part and leaves it alone
 * until it is done. */
typedef struct ah_request {
  uint32_t peer;        /* rank */
  uint32_t is_send;
  uint64_t tag;         /* from ah_tag */
  void *data;           /* a send does not write it; unused where there are pieces */
  uint64_t bytes;       /* a message of another length is AH_ERROR_MISMATCH */
  const ah_piece *pieces; /* in the order of the message; live as long as the request */
  uint64_t piece_count; /* 0: the message is `data` */
  const char *what;     /* the command's name, for errors; outlives the request */
  uint64_t step;
  int64_t microbatch;   /* -1: not a microbatch's */
  /* Called once when the transfer has ended, from any thread; may start other
   * transfers, must not wait. Null: somebody will `test` or `wait`. On failure
   * `error` is the whole text: who, which peer, which command, which step. */
  void (*done)(struct ah_request *request, ah_status status, const char *error);
  void *user;
  /* The transport's: */
  ah_status status;     /* AH_IN_PROGRESS until ended; written with release order */
  uint32_t reserved;
  void *internal[6];
} ah_request;

/*===-- The one agreement of a step ----------------------------------------===*/

typedef enum ah_flag {
  AH_FLAG_NONFINITE = 1, /* loss or gradient norm here is NaN or infinite */
  AH_FLAG_SAVE = 2,      /* save a checkpoint after this step */
  AH_FLAG_STOP = 4       /* and stop after this step */
} ah_flag;

/* In: this rank's contribution. Out: the same bits on every rank; sums are
 * formed in rank order, flags are or-ed. */
typedef struct ah_agreement {
  uint32_t struct_bytes;
  uint32_t flags;
  uint64_t step;
  double squared_norm;
  double loss;
  uint64_t first_nonfinite_rank; /* out: lowest rank that said NONFINITE, or ~0 */
  uint64_t label_count;          /* of the whole batch: the largest of the ranks',
                                  * as those that read no labels say 0 */
} ah_agreement;

/*===-- The transport's functions ------------------------------------------===*/

typedef struct ah_comm ah_comm; /* opaque: one a worker */

/* All functions may be called from any thread at any time. A transport makes
 * progress by itself (waits that sleep; none may poll for longer than some
 * tens of microseconds), so nobody has to call it for messages to move. */
typedef struct ah_comm_table {
  uint32_t struct_bytes;
  uint32_t version;     /* AH_COMM_VERSION */
  const char *name;     /* "ucx" */

  /* Starts request->is_send ? a send : a receive. A failure to start is
   * returned and `done` is not called. A start that ends at once returns AH_OK
   * and has called `done`; otherwise AH_IN_PROGRESS. */
  ah_status (*start)(ah_comm *comm, ah_request *request);

  /* AH_OK, AH_IN_PROGRESS or the failure. Never sleeps. */
  ah_status (*test)(ah_comm *comm, ah_request *request);

  /* Sleeps until the request has ended. Ends with AH_ERROR_PEER, naming this
   * rank, the peer, the command and the step, when the peer has died, when the
   * stall clock ran out, or after `cancel`. Only for requests without `done`. */
  ah_status (*wait)(ah_comm *comm, ah_request *request);

  /* Sums and ors over all ranks; every rank calls it once a step. */
  ah_status (*agree)(ah_comm *comm, ah_agreement *agreement);

  /* Returns when all ranks have called it. */
  ah_status (*barrier)(ah_comm *comm, const char *what);

  /* Ends every transfer in progress and every later one with AH_ERROR_PEER and
   * this reason: some stream of this worker has failed. */
  void (*cancel)(ah_comm *comm, const char *reason);

  /* Ends the transport; no request may be in progress. */
  void (*destroy)(ah_comm *comm);
} ah_comm_table;

#define AH_COMM_VERSION 3u

/*===-- The board: memory that a worker shares with its supervisor ----------===*/

#define AH_BOARD_STREAMS 16

/* Written by one side, read by the other, each field by relaxed atomic accesses
 * (__atomic_*); never locked, so that a stopped process stops nobody else. The
 * supervisor finds names in the image that it shares with the worker. */
typedef struct ah_board {
  /* by the worker */
  uint64_t commands;      /* walked so far, all streams: the stall clock's counter */
  uint64_t step;          /* being computed */
  uint64_t phase;         /* ah_phase */
  uint64_t last_saved_step;
  struct {
    uint64_t position;    /* index into the program's command table */
    int64_t microbatch;
  } streams[AH_BOARD_STREAMS];
  /* by the supervisor */
  uint64_t requests;      /* ah_flag: SAVE, STOP; the walker takes part of them to `agree` */
  uint64_t reserved[8];
} ah_board;

typedef enum ah_phase {
  AH_PHASE_STARTING = 0, AH_PHASE_RUNNING = 1, AH_PHASE_SAVING = 2,
  AH_PHASE_EVALUATING = 3, AH_PHASE_FINISHED = 4
} ah_phase;

/*===-- What the supervisor offers to a node's main ------------------------===*/

/* Filled by main from the command line; the supervisor reads no options of its
 * own. Times in seconds; 0 means the default. */
typedef struct ah_supervisor_options {
  uint32_t struct_bytes;
  uint32_t check_messages;   /* 1: debug mode, a header in every message */
  double stall_timeout_s;    /* 600 */
  double death_timeout_s;    /* 10 */
  uint64_t options_hash;     /* of every option that changes numbers: all ranks must agree */
  const char *emulate;       /* path of the emulation's description, or null */
  const char *options_text;  /* the same options as "name=value" lines, so that an error can
                                name the one that differs; may be null */
  int64_t launched_node;     /* --node: what overrides the launcher's rank; -1: not given */
  uint32_t launched_nodes;   /* --nodes: and its count; 0: not given */
  uint32_t master_port;      /* --master-port; 0: MASTER_PORT, else from the job's hash */
  const char *master_address;/* --master-addr; null: MASTER_ADDR, else node 0's address */
} ah_supervisor_options;

/* Runs a node, of one device too (signals, saves and the exit status are the
 * supervisor's): starts one worker a device by executing `argv` again with ah_worker_device() set, watches, and returns the
 * exit status of the node. */
int ah_supervisor_main(const ah_node_image *image,
                       const ah_supervisor_options *options, int argc, char **argv);

/* The index into image->devices that this process is a worker of, or -1 when
 * it was not started by a supervisor. */
int64_t ah_worker_device(void);

/* What a worker holds of its job. */
typedef struct ah_worker_link {
  uint32_t struct_bytes;
  uint32_t reserved;
  const ah_comm_table *table; /* null where the world is this one device */
  ah_comm *comm;
  ah_board *board;            /* never null: private memory without a supervisor */
  double share;               /* of a core, which the device is emulated by; 0: full speed */
} ah_worker_link;

/* In a worker: reports to the supervisor, exchanges addresses and hashes with
 * all ranks, opens the transport. AH_ERROR_MISMATCH names what differs. */
ah_status ah_worker_join(const ah_node_image *image, uint32_t device,
                         const ah_supervisor_options *options, ah_worker_link *link);

/* In a worker: says how it ended (`error` is null on success) and leaves. */
void ah_worker_leave(ah_worker_link *link, ah_status status, const char *error);

#ifdef __cplusplus
}
#endif

#endif

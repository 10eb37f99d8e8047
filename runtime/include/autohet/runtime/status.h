/*===- status.h - results of runtime calls ----------------------*- C -*-===*
 *
 * Every call of the runtime's C interface returns a status; none throws or
 * aborts. The text of the last failure is kept a thread.
 *
 *===----------------------------------------------------------------------===*/

#ifndef AUTOHET_RUNTIME_STATUS_H
#define AUTOHET_RUNTIME_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ah_status {
  AH_OK = 0,
  AH_IN_PROGRESS = 1,         /* started, not finished */
  AH_ERROR_INPUT = -1,        /* the user's file, option or data is wrong */
  AH_ERROR_NOT_FOUND = -2,    /* a file, library, symbol or device is missing */
  AH_ERROR_MISMATCH = -3,     /* two parts do not belong together */
  AH_ERROR_PEER = -4,         /* another rank died, stalled or disagreed */
  AH_ERROR_NO_SPACE = -5,     /* memory or disk */
  AH_ERROR_SYSTEM = -6,       /* the operating system refused */
  AH_ERROR_NONFINITE = -7,    /* NaN or infinity where none may be */
  AH_ERROR_INTERNAL = -8      /* a bug of ours */
} ah_status;

/* Text of this thread's last failure; "" if none. Valid until the next one. */
const char *ah_last_error(void);

/* Sets this thread's text (printf style) and returns `status`. */
ah_status ah_fail(ah_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#ifdef __cplusplus
}
#endif

#endif

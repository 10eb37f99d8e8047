/*===- streams.h - standard streams that were closed ------------------------===*\
|*                                                                            *|
|* For every main(): a stream that the parent has closed leaves its number to *|
|* the next file that is opened, and what is printed would go into that file. *|
|* A file that outgrows `ulimit -f` would kill: it shall be a failed write.    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef AUTOHET_RUNTIME_STREAMS_H
#define AUTOHET_RUNTIME_STREAMS_H

#include <fcntl.h>
#include <signal.h>

/* Takes the numbers of closed standard streams. Writing to them goes on to
 * fail, so that whoever looks for errors finds them. */
static inline void ah_hold_standard_streams(void) {
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0)
      (void)!open("/dev/null", O_RDONLY); /* the lowest free number */
}

/* Programs that are started from here inherit it. */
static inline void ah_ignore_size_signal(void) { signal(SIGXFSZ, SIG_IGN); }

#endif

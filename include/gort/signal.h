/* SPDX-License-Identifier: MIT */
/*
 * gort/signal.h - signals of the process as values in a channel.
 *
 *     gort_chan *quit = gort_chan_new(sizeof(int), 1);
 *     gort_signal_notify(quit, SIGTERM);
 *     gort_chan_recv(quit, &signo);
 */
#ifndef GORT_SIGNAL_H
#define GORT_SIGNAL_H

#include "base.h"
#include "chan.h"

GORT_BEGIN_DECLS

/*
 * From now on the signal's number is sent to ch, a channel of int, instead of what the signal would do. When there is no room
 * it is dropped; several of the same kind that come close together may arrive as one. Several channels may ask for a signal,
 * each gets it. One that was blocked in the thread that called gort_run is so in all of gort's, and does not come. 0; -EINVAL:
 * a signal that cannot be caught, or that the machine raises (SIGSEGV, ...), or no channel of int; -ESRCH: no run is on. The
 * end of the run takes it back; -ECANCELED: a plain thread, and it came first. May park.
 */
GORT_API int gort_signal_notify(gort_chan *ch, int signo);
/* No more of it to ch after this; what came before is in the channel. With the last channel the signal does again what it
 * did before gort_signal_notify. 0; -ENOENT: was not registered; -ECANCELED: a plain thread, and the end of the run, which takes
 * all back, came first; -ENOMEM: a plain thread, which needs a goroutine for it. May park. */
GORT_API int gort_signal_stop(gort_chan *ch, int signo);

GORT_END_DECLS
#endif

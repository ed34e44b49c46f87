/* SPDX-License-Identifier: MIT */
/*
 * gort/signal.h - signals to the process, received from a channel.
 *
 *     int signo;
 *     gort_chan *quit = gort_chan_new(sizeof signo, 1);
 *     gort_signal_notify(quit, SIGTERM);
 *     if (gort_chan_recv(quit, &signo) == 1)
 *         printf("signal %d\n", signo);
 */
#ifndef GORT_SIGNAL_H
#define GORT_SIGNAL_H

#include "base.h"
#include "chan.h"

GORT_BEGIN_DECLS

/*
 * From now on each signal signo to the process sends the number signo to ch, a channel of int, and does
 * nothing else. If the channel is full, the number is dropped. Signals with the same number that come close
 * together may arrive as one. Several channels may be registered for a signal; each gets it. A signal that is
 * blocked in the thread that called gort_run is blocked in all threads of gort and does not arrive. The end
 * of the run unregisters all channels. Returns 0; -EINVAL: signo cannot be caught or is raised by the CPU
 * (SIGSEGV and the like), or ch is not a channel of int; -ESRCH: no run is on; -ECANCELED: the caller is a
 * plain thread, and the run has ended; another -errno. May park.
 */
GORT_API int gort_signal_notify(gort_chan *ch, int signo);
/*
 * From now on signal signo sends nothing to ch; what came before is in the channel. When no channel is
 * registered any more, the signal does again what it did before gort_signal_notify; but if the program has
 * installed a handler meanwhile, that handler stays. No signal is lost: one that comes at this moment is
 * either in the channel or does what it did before. The same holds for the end of a run. Returns 0; -ENOENT:
 * ch was not registered; -EINVAL as above; -ECANCELED: the caller is a plain thread, and the run has ended;
 * -ENOMEM: a plain thread needs a goroutine for this, and there is no memory for it. May park.
 */
GORT_API int gort_signal_stop(gort_chan *ch, int signo);

GORT_END_DECLS
#endif

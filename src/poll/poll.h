/* SPDX-License-Identifier: MIT */
/*
 * poll.h - the fd state machine, as the scheduler sees it.
 *
 * This room knows fds, their readiness and who waits for it; it never wakes anybody itself: it hands
 * out the list of those whose wait is over, and the scheduler readies them. Who waits is a record on the
 * waiter's stack; what it stands for (a goroutine) is the business of the rooms above.
 */
#ifndef GORT_SRC_POLL_POLL_H
#define GORT_SRC_POLL_POLL_H

#include "base/atomic.h"

/* One that waits for an fd. Lives on the stack of the waiting goroutine. */
struct gort__poll_waiter {
    struct gort__poll_waiter *next,
        *prev;  /* guarded by the lock of the fd; next also links gort__poll_look's list */
    void *g;    /* who waits */
    int result; /* > 0: what is ready (or fd.h: GORT__POLL_AGAIN); < 0: -errno (closed) */
    bool queued;
};

/* Asked under the lock of the fd: may the poller end this wait? False: a deadline, a context or the
 * end of the run has done so already. Set once by the scheduler, before the first gort__poll_open. */
extern bool (*gort__poll_claim)(struct gort__poll_waiter *w) GORT_HIDDEN;

/* Called by gort__poll_close, if set: what a room above has to end with the run. Set by that room, at any
 * time. */
extern void (*gort__poll_at_close)(void) GORT_HIDDEN;

/* The start and the end of a run. 0 or -errno. */
int gort__poll_open(void);
void gort__poll_close(void);

/* How many wait for fds: while it is 0 nobody needs to look. One that was claimed counts until it runs again,
 * so that it is never both unseen here and not yet in a run queue. Any thread, no lock. */
uint32_t gort__poll_pending(void);

/* Those whose wait is over, claimed and linked by next. Sleeps until there are some, until kicked, or until
 * the monotonic deadline (INT64_MIN: does not sleep, INT64_MAX: none). Several threads may call it. */
struct gort__poll_waiter *gort__poll_look(int64_t deadline);

/* An fd that can be read when there may be some; -1: none. */
int gort__poll_handle(void);

/* Makes a gort__poll_look that sleeps, or the next one that would, return. Any thread, signal handlers
 * too. */
void gort__poll_kick(void);

#endif

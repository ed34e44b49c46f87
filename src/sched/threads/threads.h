/* SPDX-License-Identifier: MIT */
/*
 * threads.h - Ms and Ps: who holds which, who looks for work, who sleeps.
 */
#ifndef GORT_SRC_SCHED_THREADS_THREADS_H
#define GORT_SRC_SCHED_THREADS_THREADS_H

#include "sched/core/core.h"
#include "sched/timers/timer.h"

/* --- block.c ------------------------------------------------------------------------------------- */
struct gort__m *gort__block_surface(struct gort__m *m); /* a call during an announced blocking call */
/* The function of a goroutine returned in one: fatal. */
__attribute__((noreturn)) void gort__block_left_open(void);
void gort__block_call_run(struct gort__m *m); /* on g0 */

/* --- find.c -------------------------------------------------------------------------------------- */
struct gort__g *gort__find(struct gort__m *m); /* on g0, with a P; NULL: the thread is to end */
void gort__find_poll(struct gort__m *m);       /* on g0, with a P: due timers and ready fds */

/* --- handoff.c ----------------------------------------------------------------------------------- */
void gort__handoff_give(struct gort__m *m);      /* gives up m's P to whoever can use it */
void gort__handoff_reacquire(struct gort__m *m); /* m's G runs without a P: waits for one */
void gort__handoff_preempt(struct gort__m *m,
                           bool in_libc); /* m's G has run long enough: waits for its turn, on its thread */
/* m is in user code, or in an announced call that sysmon has seen before: somebody else gets p. False: not
 * now. */
bool gort__handoff_retake(struct gort__p *p, struct gort__m *m, bool announced);
void gort__handoff_run_bound(struct gort__m *m, struct gort__g *g); /* hands m's P to g's own M */
bool gort__handoff_wait_bound(struct gort__m *m);                   /* false: the thread is to end */
struct gort__m *gort__handoff_grant_locked(struct gort__p *p,
                                           struct gort__g *g); /* p goes to g's own M, to be woken */
/* There is no thread for p, which is nobody's: it goes to the first queued G with an M of its own, to be
 * woken. NULL: none. */
struct gort__m *gort__handoff_grant_bound_locked(struct gort__p *p);

/* --- idle.c -------------------------------------------------------------------------------------- */
void gort__idle(struct gort__m *m);           /* nothing to run: sleeps, comes back with a P or to end */
void gort__idle_wake_p(void);                 /* gets one more M to look for work */
void gort__idle_spin_stop(struct gort__m *m); /* it found work */

/* --- m.c ----------------------------------------------------------------------------------------- */
/* An M for p, which is nobody's; returns whom to wake after unlocking, NULL: the supervisor sees to it. */
struct gort__m *gort__m_start_locked(struct gort__p *p, bool spinning);
void gort__m_spare_locked(void); /* sees to it that there will be an idle M */
void gort__m_probe_locked(void); /* the same although the kernel refused the last one: it may not this time */
void gort__m_stop(struct gort__m *m); /* sleeps until handed a P, or quit */
void gort__m_take_next_p(struct gort__m *m);
void gort__m_main(void *m); /* the thread */
struct gort__m *gort__m_make(bool plain);
void gort__m_destroy(struct gort__m *m);
void gort__m_retire_locked(struct gort__m *m); /* kept until the end of the run: dumps may look at it */
void gort__m_found_p_locked(
    struct gort__m *m); /* it has one, or nothing to run: it no longer counts in sched.ms.without_p */
char *gort__m_altstack(struct gort__m *m, size_t *size, size_t *guard); /* m.c; the guard lies below it */
bool gort__m_own_stack(const struct gort__m *m,
                       uintptr_t sp);      /* m.c: on, or just below, the thread's own stack */
extern int gort__zombie_count GORT_HIDDEN; /* threads that ended runs have left behind; atomic */

/* --- netpoll.c ----------------------------------------------------------------------------------- */
int gort__netpoll_open(void); /* 0 or -errno */
/* Readies those whose fds are ready; deadline as in poll.h. How many. m NULL or without a P: for the global
 * queue. */
uint32_t gort__netpoll(struct gort__m *m, int64_t deadline);
struct gort__glist gort__netpoll_look(int64_t deadline); /* the same, but the caller readies them */

/* --- p.c ----------------------------------------------------------------------------------------- */
struct gort__p *gort__p_idle_get_locked(void);
void gort__p_idle_put_locked(struct gort__p *p);
void gort__p_take(struct gort__m *m, struct gort__p *p);
void gort__p_free(struct gort__p *p);
int gort__p_resize(int n); /* the world is stopped; 0 or -ENOMEM */

/* --- poller.c ------------------------------------------------------------------------------------ */
/* m, in ms.idle, owns the poller from now on. False: nobody needs to be. */
bool gort__poller_take_locked(struct gort__m *m);
void gort__poller_wait(struct gort__m *m); /* instead of sleeping on the note; with a P or without */
/* After a full fence: an M should own the poller, and none does. Wakes one that sleeps too long. */
bool gort__poller_wanted(void);
/* The same, and waking an M for it pays: while timers are coalesced the former owner comes back soon. */
bool gort__poller_vacant(void);
/* The poll owner wakes for the timer that is due then, and does not come back later than it: false while
 * timers are coalesced. A hint. */
bool gort__poller_covers(int64_t when);
void gort__poller_notice(struct gort__m *m,
                         int64_t when); /* a timer became the first of its heap; after its unlock */

/* The caller is about to wait for an fd, and counts in gort__poll_pending: somebody must look. Inside. */
void gort__poller_notice_fd(struct gort__m *m);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * timer.h - something to do at a time: the verbs for the rooms above, and the heap that each P has.
 */
#ifndef GORT_SRC_SCHED_TIMER_H
#define GORT_SRC_SCHED_TIMER_H

#include "sched/core/heap.h"

struct gort__g;
struct gort__m;
struct gort__timer_node;

/* Zero-valid. May live on a stack that is left after gort__timer_del: the heap does not know it. Its owner
 * sees to it that calls for one timer do not overlap. */
struct gort__timer {
    struct gort__timer_node *node; /* NULL: never set, or taken back; or it is in its own place: */
    struct gort__timer_reserve *reserve;
    uint64_t seq; /* which use of the node, or the place, was this one's */
    uint64_t run; /* which run it was set in: nodes end with it */
};

/*
 * Calls fn(arg) once when `when` (monotonic) has come: inside, on a thread that holds no runtime lock; it
 * must not park. fn NULL: arg is a goroutine (or plain thread) with an armed wait, which ends with -ETIMEDOUT
 * unless somebody else has claimed it. The timer is not pending. 0 or -ENOMEM. Inside, in a run.
 */
int gort__timer_set(struct gort__timer *t, int64_t when, void (*fn)(void *), void *arg);
/* The same, and it is never refused: without memory it goes to its own place. at not NULL: for the time in
 * *at, which the owner may move to later (atomically) until the timer is taken back or fn runs. That is never
 * missed, but fn may be called for a time that has just been moved. */
void gort__timer_set_sure(struct gort__timer *t, struct gort__timer_reserve *reserve, int64_t when,
                          const int64_t *at, void (*fn)(void *), void *arg);
/* Readies g, which is off its stack, when the time has come: nobody else does, and it cannot be taken back. 0
 * or -ENOMEM. */
int gort__timer_ready_at(struct gort__m *m, int64_t when, struct gort__g *g);
/* Takes it back. When it returns fn is not running and will not be called. Any thread; not from fn. */
void gort__timer_del(struct gort__timer *t);
/* The same without waiting for a call that is under way. True: fn will not be called. Inside. */
bool gort__timer_cancel(struct gort__timer *t);

/* Bytes of a struct gort_timer (time/timer.c) for the allocator, to which a P gives the one in its
 * timer_cache back. */
#define GORT_TIMER_BYTES 256

/* --- for the search for work (find.c, poller.c) and sysmon ---------------------------------------- */

/* Fires what is due on any P. How many. Inside, not on a goroutine's stack. */
uint32_t gort__timer_run(struct gort__m *m, int64_t now);
/* The same for one heap. */
uint32_t gort__timer_fire(struct gort__heap *h, struct gort__m *m, int64_t now);
/* When the first of all timers is due; INT64_MAX: there is none. No lock: exact but for who sets one
 * meanwhile. */
int64_t gort__timer_next(void);
/* So many are pending on some P that waking for each of them would cost too much. */
bool gort__timer_coalesces(void);
/* Fires whatever is due, for a thread without a P. */
void gort__timer_watch(void);
/* How many are pending or just fired. Exact when no goroutine runs. */
uint32_t gort__timer_count(void);
/* A new P's heap; the end of a run, which forgets all. */
void gort__timer_heap_init(struct gort__heap *h);
void gort__timer_forget(void);

#endif

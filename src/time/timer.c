/* SPDX-License-Identifier: MIT */
/*
 * timer.c - functions that are called at a time, in a goroutine of their own.
 *
 * Why: firing and calling are two steps. When the time has come a goroutine is started for the call, and it
 * looks under the timer's lock whether its call is still wanted (the generation it was started for is the
 * current one) before it begins. So stop and reset can tell the truth until the very last moment, and nothing
 * of a former setting happens after a reset.
 *
 *     IDLE --new, reset--> PENDING --time--> STARTED --begins--> PENDING or IDLE, with calls == 1
 *      ^-------------------- stop, reset -------'
 *
 * Stopping never waits for a timer that is just firing: that one asks for the lock, and finds that the time
 * it was fired for is not, or not yet, the current setting's.
 * Invariants: (1) PENDING exactly while heap is set in the scheduler, or has fired and waits for the lock;
 * (2) gen changes with every stop and reset, unless it only moves a PENDING one to later; (3) the record
 * lives as long as it has references: its owner's, one while it is set in the scheduler, one for each started
 * call; (4) all but the owner's end with the run, and so does the state.
 *
 * Most timers are time-outs that are set to a later time again and again and never come. Such a reset writes
 * the new time into the record, where the heap reads it when the entry comes up (sched/timers/timer.c); all that it
 * touches is the record's first line.
 * Threads: any; fire by whoever sees to due timers; `_locked` functions with the
 * lock of the timer held.
 */
#include <errno.h>
#include <stddef.h>

#include <gort/time.h>

#include "base/fatal.h"
#include "mem/alloc.h"
#include "sched/timers/timer.h"
#include "sched/wait/wait.h"

#define LONG GORT_SEC /* what is at least so long may be a ten-thousandth longer */

enum { IDLE, PENDING, STARTED };

struct gort_timer {
    /* Atomic: the heap reads it without the lock. In a freed record the allocator's link lies here. */
    int64_t when;
    struct gort__lock lock; /* rank GORT_RANK_SYNC; guards the rest */
    uint32_t refs;          /* atomic, written under lock */
    uint32_t state;
    uint32_t gen;
    uint32_t calls; /* that are running now */
    int64_t period; /* 0: none */
    uint64_t run;   /* in which it was started */
    void (*fn)(void *);
    void *arg;
    struct gort__timer heap;
    struct gort__timer_reserve reserve;
    struct gort__waitq waiters; /* for the end of the running calls */
};

_Static_assert(sizeof(struct gort_timer) <= GORT_TIMER_BYTES, "see record_get");
_Static_assert(offsetof(struct gort_timer, heap) <= GORT_LINE, "what a reset touches is one line");

/* The last record that was freed on a P is the next one there: that saves the two locks of the allocator.
 * Inside; m NULL: no run is on. */
static GORT_ALWAYS_INLINE gort_timer *record_get(struct gort__m *m)
{
    struct gort__p *p = m ? m->p : NULL;
    if (!p || !p->timer_cache)
        return gort__alloc(GORT_TIMER_BYTES);
    gort_timer *t = p->timer_cache;
    p->timer_cache = NULL;
    return t;
}

static GORT_ALWAYS_INLINE void record_put(struct gort__m *m, gort_timer *t)
{
    if (!GORT_SANITIZED && m && m->p && !m->p->timer_cache)
        m->p->timer_cache = t;
    else
        gort__alloc_free(t, GORT_TIMER_BYTES);
}

static GORT_ALWAYS_INLINE void lock(gort_timer *t)
{
    gort__lock_take(&t->lock, GORT_RANK_SYNC);
    if (GORT_UNLIKELY(t->refs == 0))
        gort__fatal("use of a freed timer");
    if (GORT_UNLIKELY(t->run != gort__sched_run())) { /* it has ended */
        t->run = gort__sched_run();
        t->state = IDLE;
        t->calls = 0;
        gort__store(&t->refs, 1, RELAXED);
    }
}

static GORT_ALWAYS_INLINE void unlock(gort_timer *t)
{
    gort__lock_release(&t->lock, GORT_RANK_SYNC);
}

/* Counts references; the lock is held. */
static void refer(gort_timer *t, int n)
{
    gort__store(&t->refs, t->refs + (uint32_t)n, RELEASE); /* pairs with gort_timer_free */
}

/* Unlocks and drops the caller's reference. */
static void unlock_and_drop(gort_timer *t)
{
    refer(t, -1);
    bool last = t->refs == 0;
    unlock(t);
    if (last)
        record_put(NULL, t);
}

/* When a timer for so long is due. Most are time-outs that are not reached: see cached_now.c. m NULL: no run
 * is on. */
static GORT_ALWAYS_INLINE int64_t due_in(struct gort__m *m, int64_t ns)
{
    int64_t when;
    if (!m || ns < LONG)
        return gort_in(ns > 0 ? ns : 0);
    return __builtin_add_overflow(gort__cached_now(m), ns, &when) ? GORT_FOREVER : when;
}

static void fire(void *arg);

/* Into the heap, for t->when. Called with the lock held; or by the only one who has it, until it is in the
 * heap: so nothing is written after that. */
static void arm_locked(gort_timer *t)
{
    t->state = PENDING;
    refer(t, 1);
    gort__timer_set_sure(&t->heap, &t->reserve, t->when, &t->when, fire, t);
}

/* The next time of a periodic one, not before now. */
static void advance_locked(gort_timer *t)
{
    int64_t now = gort__os_now(), missed = now > t->when ? (now - t->when) / t->period : 0;
    if (__builtin_add_overflow(t->when, (missed + 1) * t->period, &t->when))
        t->when = GORT_FOREVER;
}

enum { ARG_TIMER, ARG_GEN, ARG_BEGUN }; /* of the goroutine of a call */

/* The goroutine of a call ends, by gort_exit perhaps. */
static void end_call(void *arg)
{
    gort_timer *t = arg;
    struct gort__glist woken = {0};
    struct gort__waiter *w;
    struct gort__m *m = gort__enter();
    if (!m)
        return; /* the run is over, and takes its references along */
    lock(t);
    if (m->g->arg[ARG_BEGUN] && --t->calls == 0)
        while ((w = gort__waitq_take(&t->waiters)) != NULL) {
            w->result = 0;
            gort__runq_list_add(&woken, w->g);
        }
    unlock_and_drop(t);
    if (woken.n)
        gort__ready_list(m, woken);
    gort__leave(m);
}

/* Whether g is the goroutine of a call of t. */
static bool is_call_of(const struct gort__g *g, const gort_timer *t)
{
    return (g->flags & GORT_G_FINALLY) && g->arg[3] == (uintptr_t)end_call && g->arg[4] == (uintptr_t)t;
}

/* The goroutine of one call. */
static void call(gort_timer *t, uintptr_t gen)
{
    struct gort__m *m = gort__enter();
    lock(t);
    bool wanted = t->gen == (uint32_t)gen && t->state == STARTED;
    if (wanted) {
        t->calls++;
        m->g->arg[ARG_BEGUN] = 1;
        t->state = IDLE;
        if (t->period > 0) {
            advance_locked(t);
            arm_locked(t);
        }
    }
    unlock(t);
    gort__leave(m);
    if (wanted)
        t->fn(t->arg);
}

static void fire_locked(gort_timer *t)
{
    uintptr_t args[] = {[ARG_TIMER] = (uintptr_t)t, [ARG_GEN] = t->gen, [ARG_BEGUN] = 0};
    int64_t now = gort__os_now();
    if (now < t->when) { /* set anew, or to later */
        arm_locked(t);
    } else if (t->calls && t->period > 0) { /* the one before still runs: this call is left out */
        advance_locked(t);
        arm_locked(t);
    } else {
        t->state = STARTED;
        refer(t, 1);
        if (gort__spawn_finally(gort__m_self(), (void (*)(void))call, args, 3, end_call, t)) {
            /* No memory: try again soon. */
            refer(t, -1);
            t->when = now + GORT_MS;
            arm_locked(t);
        }
    }
}

/* The time has come. */
static void fire(void *arg)
{
    gort_timer *t = arg;
    lock(t);
    if (t->state == PENDING) {            /* else it was stopped just now */
        if (gort__timer_cancel(&t->heap)) /* it was set anew just now */
            refer(t, -1);
        fire_locked(t);
    }
    unlock_and_drop(t);
}

/* One by one: of a whole record of zeros compilers make a string instruction that takes longer than all the
 * rest. */
static void init(gort_timer *t, void (*fn)(void *), void *arg)
{
    t->lock = (struct gort__lock){0};
    t->refs = 1;
    t->state = IDLE;
    t->gen = t->calls = 0;
    t->run = gort__sched_run();
    t->fn = fn;
    t->arg = arg;
    t->heap = (struct gort__timer){0};
    t->reserve = (struct gort__timer_reserve){0};
    t->waiters = (struct gort__waitq){0};
}

gort_timer *gort_timer_new(int64_t first, int64_t period, void (*fn)(void *), void *arg)
{
    GORT_NEED("gort_timer_new", "function", fn);
    struct gort__m *m = gort__enter(), *light = m ? NULL : gort__enter_light();
    gort_timer *t = record_get(m);
    gort__leave_light(&light);
    if (t) {
        init(t, fn, arg);
        t->period = period > 0 ? period : 0;
        t->when = due_in(m, first);
        if (m) /* it may fire at once, but nobody else has it so far: the heap's lock orders what was written */
            arm_locked(t);
    }
    if (m)
        gort__leave(m);
    return t;
}

/* Takes back what has been set and not begun. True: there was something. m NULL: no run is on, or it is just
 * ending, and takes its timers along. */
static GORT_ALWAYS_INLINE bool cancel_locked(struct gort__m *m, gort_timer *t)
{
    bool active = t->state != IDLE;
    if (t->state == PENDING && m && gort__timer_cancel(&t->heap))
        refer(t, -1); /* the owner has one still */
    t->state = IDLE;
    t->gen++;
    return active;
}

bool gort_timer_stop(gort_timer *t)
{
    GORT_NEED("gort_timer_stop", "timer", t);
    struct gort__m *m = gort__enter();
    lock(t);
    bool active = cancel_locked(m, t);
    unlock(t);
    if (m)
        gort__leave(m);
    return active;
}

bool gort_timer_reset(gort_timer *t, int64_t first, int64_t period)
{
    GORT_NEED("gort_timer_reset", "timer", t);
    struct gort__m *m = gort__enter();
    int64_t when = due_in(m, first);
    lock(t);
    bool active = t->state != IDLE;
    bool stays = t->state == PENDING && m && when >= t->when; /* its entry of the heap */
    if (!stays)
        cancel_locked(m, t);
    t->period = period > 0 ? period : 0;
    gort__store(&t->when, when, RELAXED); /* the heap, or fire, sees it in time */
    if (!stays && m)                      /* else no run is on to be called in */
        arm_locked(t);
    unlock(t);
    if (m)
        gort__leave(m);
    return active;
}

int gort_timer_stop_wait(gort_timer *t)
{
    GORT_NEED("gort_timer_stop_wait", "timer", t);
    struct gort__m *m = gort__enter();
    int err = 0;
    lock(t);
    cancel_locked(m, t);
    if (t->calls && m && is_call_of(m->g, t))
        err = -EDEADLK;
    else if (t->calls)
        err = gort__wait_refused(m, GORT_FOREVER, true, "gort_timer_stop_wait");
    if (err || !t->calls || !m) {
        unlock(t);
    } else {
        struct gort__waiter w = {.g = m->g, .needs_claim = gort__wait_needs_claim(m->g, GORT_FOREVER, true)};
        struct gort__wait how = {&t->lock,     gort__wait_lock_sync, gort__wait_unlock_sync,
                                 GORT_FOREVER, GORT_WAIT_TIMER,      true};
        gort__waitq_push(&t->waiters, &w);
        err = gort__wait(&m, &how, &t->waiters, &w);
    }
    if (m)
        gort__leave(m);
    return err;
}

void gort_timer_free(gort_timer *t)
{
    if (!t)
        return;
    struct gort__m *m = gort__enter(), *light = m ? NULL : gort__enter_light();
    /* Nobody else has it, and whoever had is not just about to unlock it. Pairs with refer and unlock. */
    if (gort__load(&t->refs, ACQUIRE) == 1 && gort__load(&t->lock.word, ACQUIRE) == 0) {
        gort__store(&t->refs, 0, RELAXED); /* who uses it after this is told (lock) */
        record_put(m, t);
    } else {
        lock(t);
        cancel_locked(m, t);
        unlock_and_drop(t);
    }
    gort__leave_light(&light);
    if (m)
        gort__leave(m);
}

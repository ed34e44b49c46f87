/* SPDX-License-Identifier: MIT */
/*
 * timer.c - functions that are called at a time, in a goroutine of their own.
 *
 * Why: firing and calling are two steps. When the time has come a goroutine is started for the
 * call, and it looks under the timer's lock whether its call is still wanted (the turn it was started for is the
 * current one) before it begins. So stop and reset can tell the truth until the very last
 * moment, and nothing of a former setting happens after a reset.
 *
 *     IDLE --new, reset--> PENDING --time--> STARTED --begins--> PENDING or IDLE, with calls == 1
 *      ^-------------------- stop, reset -------'
 *
 * Stopping never waits for a timer that is just firing: that one asks for the lock, and finds that the time it was
 * fired for is not, or not yet, the current setting's.
 * Invariants: (1) PENDING exactly while heap is set in the scheduler, or has fired and waits for the lock; (2) turn
 * changes with every stop and reset, unless it only moves a PENDING one to later; (3) the record lives as long as it has
 * references: its owner's, one while it is set in the scheduler, one for each started call; (4) all but the owner's end with the run, and so does the state.
 *
 * Time-outs by the million lie in no cache, and what moving one to later costs is the memory that it touches. So that is
 * a record of 32 bytes among others of its kind, and all the rest is somewhere else: a reset of one of a million takes two thirds of
 * the time that it takes with records of 256 bytes, and a timer 80 bytes less.
 * Threads: any; fire by whoever sees to due timers.
 */
#include <errno.h>

#include <gort/time.h>

#include "base/fatal.h"
#include "mem/alloc.h"
#include "sched/timer.h"
#include "sched/wait.h"

#define LONG GORT_SEC /* what is at least so long may be a ten-thousandth longer */

enum { IDLE, PENDING, STARTED };

struct gort_timer {
    struct gort__lock lock; /* rank GORT_RANK_SYNC; guards the rest, and the other half */
    uint32_t lease;         /* that when was taken from; 0: from a clock */
    int64_t when;           /* atomic: the heap reads it without the lock */
    uint64_t run;           /* in which it was started */
    uint32_t state;
    bool periodic; /* the other half has a period */
};

/* The other half: what is not needed to move a time-out to later. */
struct cold {
    uint32_t refs; /* atomic, written under lock */
    uint32_t turn;
    uint32_t calls; /* that are running now */
    int64_t period; /* valid if it is periodic */
    void (*fn)(void *);
    void *arg;
    struct gort__timer heap;
    struct gort__timer_own own;
    struct gort__waitq waiters; /* for the end of the running calls */
};

_Static_assert(sizeof(struct gort_timer) == GORT_SPLIT_HOT, "see gort_timer_new");
_Static_assert(sizeof(struct cold) <= GORT_SPLIT_COLD, "see gort_timer_new");

static GORT_ALWAYS_INLINE struct cold *cold(gort_timer *t)
{
    return gort__alloc_cold(t);
}

static GORT_ALWAYS_INLINE void lock(gort_timer *t)
{
    gort__lock_take(&t->lock, GORT_RANK_SYNC);
    if (GORT_UNLIKELY(t->run != gort__load(&gort__sched.run, RELAXED))) { /* it has ended */
        t->run = gort__load(&gort__sched.run, RELAXED);
        t->state = IDLE;
        cold(t)->calls = 0;
        gort__store(&cold(t)->refs, 1, RELAXED);
    }
}

static GORT_ALWAYS_INLINE void unlock(gort_timer *t)
{
    gort__lock_drop(&t->lock, GORT_RANK_SYNC);
}

/* Counts references; the lock is held. */
static void refer(gort_timer *t, int n)
{
    gort__store(&cold(t)->refs, cold(t)->refs + (uint32_t)n, RELEASE); /* pairs with gort_timer_free */
}

/* Unlocks and drops the caller's reference. */
static void unlock_and_drop(gort_timer *t)
{
    refer(t, -1);
    bool last = cold(t)->refs == 0;
    unlock(t);
    if (last)
        gort__spare_free(NULL, t);
}

/* When a timer for so long is due. Most are time-outs that are not reached: see rough.c, lease.c. m NULL: no run is on. */
static GORT_ALWAYS_INLINE int64_t due_in(struct gort__m *m, int64_t ns, uint32_t *lease)
{
    int64_t when, end = gort__load(&gort__lease.end, RELAXED);
    *lease = gort__lease_fits(ns) && m ? gort__lease_of(end) : 0;
    if (*lease)
        return end + ns;
    if (!m || ns < LONG)
        return gort_in(ns > 0 ? ns : 0);
    return __builtin_add_overflow(gort__rough_now(m), ns, &when) ? GORT_FOREVER : when;
}

static void fire(void *arg);

/* Into the heap, for t->when. Called with the lock held, or by the only one who has it. */
static void arm_locked(gort_timer *t)
{
    t->state = PENDING;
    refer(t, 1);
    gort__timer_set_sure(&cold(t)->heap, &cold(t)->own, t->when, &t->when, fire, t);
}

/* The next time of a periodic one, not before now. */
static void advance_locked(gort_timer *t)
{
    t->lease = 0;
    int64_t period = cold(t)->period, now = gort__os_now();
    int64_t missed = now > t->when ? (now - t->when) / period : 0;
    if (__builtin_add_overflow(t->when, (missed + 1) * period, &t->when))
        t->when = GORT_FOREVER;
}

enum { ARG_TIMER, ARG_TURN, ARG_BEGUN }; /* of the goroutine of a call */

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
    if (m->g->arg[ARG_BEGUN] && --cold(t)->calls == 0)
        while ((w = gort__waitq_take(&cold(t)->waiters)) != NULL) {
            w->result = 0;
            gort__glist_add(&woken, w->g);
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
static void call(gort_timer *t, uintptr_t turn)
{
    struct gort__m *m = gort__enter();
    lock(t);
    bool wanted = cold(t)->turn == (uint32_t)turn && t->state == STARTED;
    if (wanted) {
        cold(t)->calls++;
        m->g->arg[ARG_BEGUN] = 1;
        t->state = IDLE;
        if (t->periodic) {
            advance_locked(t);
            arm_locked(t);
        }
    }
    unlock(t);
    gort__leave(m);
    if (wanted)
        cold(t)->fn(cold(t)->arg);
}

/* The time has come, or so it seems: when is right from now on. */
static void settle_locked(gort_timer *t, int64_t now)
{
    int64_t when;
    if (t->lease && now >= t->when) {
        bool never = __builtin_add_overflow(t->when, gort__lease_slip(t->lease), &when);
        gort__store(&t->when, never ? GORT_FOREVER : when, RELAXED);
        t->lease = 0;
    }
}

/* The time has come. */
static void fire(void *arg)
{
    gort_timer *t = arg;
    lock(t);
    if (t->state == PENDING) { /* else it was stopped just now */
        uintptr_t args[] = {[ARG_TIMER] = (uintptr_t)t, [ARG_TURN] = cold(t)->turn, [ARG_BEGUN] = 0};
        if (gort__timer_cancel(&cold(t)->heap)) /* it was set anew just now */
            refer(t, -1);
        int64_t now = gort__os_now();
        settle_locked(t, now);
        if (now < t->when) { /* set anew, or moved */
            arm_locked(t);
        } else if (cold(t)->calls && t->periodic) { /* the one before still runs: this call is left out */
            advance_locked(t);
            arm_locked(t);
        } else {
            t->state = STARTED;
            refer(t, 1);
            if (gort__go_finally(gort__m_self(), (void (*)(void))call, args, 3, end_call, t)) {
                /* No memory: try again soon. */
                refer(t, -1);
                t->when = now + GORT_MS;
                arm_locked(t);
            }
        }
    }
    unlock_and_drop(t);
}

/* One by one: of a whole record of zeros compilers make a string instruction that takes longer than all the rest. */
static void init(gort_timer *t, void (*fn)(void *), void *arg)
{
    struct cold *c = cold(t);
    t->lock = (struct gort__lock){0};
    t->run = gort__load(&gort__sched.run, RELAXED);
    t->state = IDLE;
    c->refs = 1;
    c->turn = c->calls = 0;
    c->fn = fn;
    c->arg = arg;
    c->heap = (struct gort__timer){0};
    c->own = (struct gort__timer_own){0};
    c->waiters = (struct gort__waitq){0};
}

static GORT_ALWAYS_INLINE void set_period(gort_timer *t, int64_t period)
{
    t->periodic = period > 0;
    if (t->periodic)
        cold(t)->period = period;
}

gort_timer *gort_timer_new(int64_t first, int64_t period, void (*fn)(void *), void *arg)
{
    if (!fn)
        gort__fatal("gort_timer_new: NULL function");
    struct gort__m *m = gort__enter(), *held = m ? NULL : gort__hold();
    gort_timer *t = gort__spare_alloc(m);
    gort__unhold(&held);
    if (t) {
        init(t, fn, arg);
        set_period(t, period);
        t->when = due_in(m, first, &t->lease);
        if (m) /* it may fire at once, but nobody else has it so far: the heap's lock orders what was written */
            arm_locked(t);
    }
    if (m)
        gort__leave(m);
    return t;
}

/* Takes back what has been set and not begun. True: there was something. m NULL: no run is on, or it is just ending, and
 * takes its timers along. */
static GORT_ALWAYS_INLINE bool cancel_locked(struct gort__m *m, gort_timer *t)
{
    bool active = t->state != IDLE;
    if (t->state == PENDING && m && gort__timer_cancel(&cold(t)->heap))
        refer(t, -1); /* the owner has one still */
    t->state = IDLE;
    cold(t)->turn++;
    return active;
}

bool gort_timer_stop(gort_timer *t)
{
    if (!t)
        gort__fatal("gort_timer_stop: NULL timer");
    struct gort__m *m = gort__enter();
    lock(t);
    bool active = cancel_locked(m, t);
    unlock(t);
    if (m)
        gort__leave(m);
    return active;
}

/* Any reset. */
static GORT_NOINLINE bool reset(gort_timer *t, int64_t first, int64_t period)
{
    struct gort__m *m = gort__enter();
    uint32_t lease;
    int64_t when = due_in(m, first, &lease);
    lock(t);
    set_period(t, period);
    t->lease = lease;
    bool active = t->state != IDLE;
    if (t->state == PENDING && m && when >= t->when) {
        gort__store(&t->when, when, RELAXED); /* the heap, or fire, sees it in time */
    } else {
        cancel_locked(m, t);
        t->when = when;
        if (m) /* else no run is on to be called in */
            arm_locked(t);
    }
    unlock(t);
    if (m)
        gort__leave(m);
    return active;
}

/* What the call below leaves to do. None of them has the lock when it enters or leaves: it could be stopped there. */
static GORT_NOINLINE bool unlock_and_reset(gort_timer *t, int64_t first, int64_t period)
{
    unlock(t);
    return reset(t, first, period);
}

static GORT_NOINLINE bool dropped_and_leave(struct gort__m *m, gort_timer *t)
{
    gort__lock_dropped(&t->lock);
    gort__leave(m);
    return true;
}

static GORT_NOINLINE bool leave_slowly(struct gort__m *m)
{
    gort__leave_slow(m);
    return true;
}

/*
 * Time-outs are moved to later again and again, with all their memory in no cache. Waiting for that is most of the time, and the processor
 * can do so for some of them at once, as many as it can look ahead: so the common case has few instructions and no call.
 */
bool gort_timer_reset(gort_timer *t, int64_t first, int64_t period)
{
    if (!t)
        gort__fatal("gort_timer_reset: NULL timer");
    struct gort__m *m = gort__enter_at_once();
    int64_t end = gort__load(&gort__lease.end, RELAXED), when;
    uint32_t lease = gort__lease_of(end);
    if (GORT_UNLIKELY(!gort__lease_fits(first) || period > 0 || !m || !lease ||
                      !gort__lock_try(&t->lock, GORT_RANK_SYNC)))
        return reset(t, first, period);
    when = end + first;
    if (GORT_UNLIKELY(t->state != PENDING || t->periodic || when < t->when ||
                      t->run != gort__load(&gort__sched.run, RELAXED)))
        return unlock_and_reset(t, first, period);
    t->lease = lease;
    gort__store(&t->when, when, RELAXED); /* as in reset */
    if (GORT_UNLIKELY(gort__lock_free(&t->lock, GORT_RANK_SYNC)))
        return dropped_and_leave(m, t);
    if (GORT_UNLIKELY(gort__leave_looks(m)))
        return leave_slowly(m);
    return true;
}

int gort_timer_stop_wait(gort_timer *t)
{
    if (!t)
        gort__fatal("gort_timer_stop_wait: NULL timer");
    struct gort__m *m = gort__enter();
    int err = 0;
    lock(t);
    cancel_locked(m, t);
    if (cold(t)->calls && m && is_call_of(m->g, t))
        err = -EDEADLK;
    else if (cold(t)->calls)
        err = gort__wait_refused(m, GORT_FOREVER, false, "gort_timer_stop_wait");
    if (err || !cold(t)->calls || !m) {
        unlock(t);
    } else {
        struct gort__waiter w = {.g = m->g, .shared = gort__wait_shared(m->g, GORT_FOREVER, false)};
        struct gort__wait how = {&t->lock,     gort__wait_lock_sync, gort__wait_unlock_sync,
                                 GORT_FOREVER, GORT_WAIT_TIMER,      false};
        gort__waitq_push(&cold(t)->waiters, &w);
        err = gort__wait(&m, &how, &cold(t)->waiters, &w);
    }
    if (m)
        gort__leave(m);
    return err;
}

void gort_timer_free(gort_timer *t)
{
    if (!t)
        return;
    struct gort__m *m = gort__enter(), *held = m ? NULL : gort__hold();
    /* Nobody else has it, and whoever had is not just about to unlock it. Pairs with refer and unlock. */
    if (gort__load(&cold(t)->refs, ACQUIRE) == 1 && gort__load(&t->lock.word, ACQUIRE) == 0) {
        gort__spare_free(m, t);
    } else {
        lock(t);
        cancel_locked(m, t);
        unlock_and_drop(t);
    }
    gort__unhold(&held);
    if (m)
        gort__leave(m);
}

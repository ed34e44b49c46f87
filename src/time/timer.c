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
 * One that may have been moved (move.h) is PENDING for a millisecond more when its time has come, and then perhaps for longer.
 *
 * Stopping never waits for a timer that is just firing: that one asks for the lock, and finds that the time it was
 * fired for is not, or not yet, the current setting's.
 * Invariants: (1) PENDING exactly while heap is set in the scheduler, or has fired and waits for the lock; (2) turn
 * changes with every stop and reset, unless it only moves a PENDING one to later; (3) the record lives as long as it has
 * references: its owner's, one while it is set in the scheduler, one for each started call; (4) all but the owner's end with the run, and so does the state.
 *
 * Time-outs by the million lie in no cache, and what moving one to later costs is the memory that it touches: 16 bytes, which lie among
 * others of their kind (move.h). All the rest is the other half of a timer, somewhere else.
 * Threads: any; fire by whoever sees to due timers.
 */
#include <errno.h>

#include <gort/time.h>

#include "base/fatal.h"
#include "mem/alloc.h"
#include "sched/timer.h"
#include "sched/wait.h"
#include "time/move.h"

#define LONG GORT_SEC /* what is at least so long may be a ten-thousandth longer */

enum { IDLE, PENDING, STARTED };

struct gort_timer {
    struct gort__move move;
};

/* The other half: what is not needed to move a time-out to later. */
struct cold {
    struct gort__lock lock; /* rank GORT_RANK_SYNC; guards the rest */
    uint32_t refs;          /* atomic, written under lock */
    uint32_t state;
    uint32_t turn;
    uint32_t calls; /* that are running now */
    uint32_t lease; /* that when was taken from; 0: from a clock */
    uint32_t shut;  /* what gort__move_shut returned, if settling */
    bool movable;   /* PENDING: may be open */
    bool settling;  /* PENDING: was shut when its time had come, and is set for a moment later */
    int64_t when;   /* atomic: the heap reads it without the lock */
    int64_t period; /* 0: none */
    uint64_t run;   /* in which it was started */
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
    struct cold *c = cold(t);
    gort__lock_take(&c->lock, GORT_RANK_SYNC);
    if (GORT_UNLIKELY(c->run != gort__load(&gort__sched.run, RELAXED))) { /* it has ended */
        c->run = gort__load(&gort__sched.run, RELAXED);
        c->state = IDLE;
        c->calls = 0;
        c->settling = false;
        gort__move_close(&t->move);
        gort__store(&c->refs, 1, RELAXED);
    }
}

static GORT_ALWAYS_INLINE void unlock(gort_timer *t)
{
    gort__lock_drop(&cold(t)->lock, GORT_RANK_SYNC);
}

/* Counts references; the lock is held. */
static void refer(struct cold *c, int n)
{
    gort__store(&c->refs, c->refs + (uint32_t)n, RELEASE); /* pairs with gort_timer_free */
}

/* Unlocks and drops the caller's reference. */
static void unlock_and_drop(gort_timer *t)
{
    refer(cold(t), -1);
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

/* Into the heap, for its time; it may be moved even before it is there. Called with the lock held; or by the only one who has it, until it is in the
 * heap: so nothing is written after that. */
static void arm_locked(gort_timer *t, struct cold *c)
{
    c->state = PENDING;
    refer(c, 1);
    if (c->movable)
        gort__move_open(&t->move, c->when);
    gort__timer_set_sure(&c->heap, &c->own, c->when, &c->when, fire, t);
}

/* The next time of a periodic one, not before now. */
static void advance_locked(struct cold *c)
{
    c->lease = 0;
    int64_t now = gort__os_now(), missed = now > c->when ? (now - c->when) / c->period : 0;
    if (__builtin_add_overflow(c->when, (missed + 1) * c->period, &c->when))
        c->when = GORT_FOREVER;
}

enum { ARG_TIMER, ARG_TURN, ARG_BEGUN }; /* of the goroutine of a call */

/* The goroutine of a call ends, by gort_exit perhaps. */
static void end_call(void *arg)
{
    gort_timer *t = arg;
    struct cold *c = cold(t);
    struct gort__glist woken = {0};
    struct gort__waiter *w;
    struct gort__m *m = gort__enter();
    if (!m)
        return; /* the run is over, and takes its references along */
    lock(t);
    if (m->g->arg[ARG_BEGUN] && --c->calls == 0)
        while ((w = gort__waitq_take(&c->waiters)) != NULL) {
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
    struct cold *c = cold(t);
    lock(t);
    bool wanted = c->turn == (uint32_t)turn && c->state == STARTED;
    if (wanted) {
        c->calls++;
        m->g->arg[ARG_BEGUN] = 1;
        c->state = IDLE;
        if (c->period > 0) {
            advance_locked(c);
            arm_locked(t, c);
        }
    }
    unlock(t);
    gort__leave(m);
    if (wanted)
        c->fn(c->arg);
}

/* Its time has come, or so it seems: whether it was moved is known in a moment. */
static void shut_locked(gort_timer *t, struct cold *c)
{
    c->shut = gort__move_shut(&t->move);
    c->settling = true;
    refer(c, 1);
    gort__timer_set_sure(&c->heap, &c->own, gort__os_now() + GORT_MS, NULL, fire, t);
}

/* That moment, or the time, has come: when is right from now on. */
static void settle_locked(gort_timer *t, struct cold *c, int64_t now)
{
    int64_t when = c->when, to = c->settling ? gort__move_settle(&t->move, c->shut) : 0;
    c->settling = false;
    if (to > when) {
        when = to;
        c->lease = gort__lease_of(to);
    }
    if (c->lease && now >= when) {
        if (__builtin_add_overflow(when, gort__lease_slip(c->lease), &when))
            when = GORT_FOREVER;
        c->lease = 0;
    }
    gort__store(&c->when, when, RELAXED);
}

static void fire_locked(gort_timer *t, struct cold *c)
{
    uintptr_t args[] = {[ARG_TIMER] = (uintptr_t)t, [ARG_TURN] = c->turn, [ARG_BEGUN] = 0};
    int64_t now = gort__os_now();
    settle_locked(t, c, now);
    if (now < c->when) { /* set anew, or moved */
        arm_locked(t, c);
    } else if (c->calls && c->period > 0) { /* the one before still runs: this call is left out */
        advance_locked(c);
        arm_locked(t, c);
    } else {
        c->state = STARTED;
        refer(c, 1);
        if (gort__go_finally(gort__m_self(), (void (*)(void))call, args, 3, end_call, t)) {
            /* No memory: try again soon. */
            refer(c, -1);
            c->when = now + GORT_MS;
            arm_locked(t, c);
        }
    }
}

/* The time has come. */
static void fire(void *arg)
{
    gort_timer *t = arg;
    struct cold *c = cold(t);
    lock(t);
    if (c->state == PENDING) {            /* else it was stopped just now */
        if (gort__timer_cancel(&c->heap)) /* it was set anew just now */
            refer(c, -1);
        if (gort__move_is_open(&t->move))
            shut_locked(t, c);
        else
            fire_locked(t, c);
    }
    unlock_and_drop(t);
}

/* One by one: of a whole record of zeros compilers make a string instruction that takes longer than all the rest. */
static void init(gort_timer *t, void (*fn)(void *), void *arg)
{
    struct cold *c = cold(t);
    gort__store(&t->move.open, 0, RELAXED); /* whatever was there before */
    c->lock = (struct gort__lock){0};
    c->refs = 1;
    c->state = IDLE;
    c->turn = c->calls = 0;
    c->settling = false;
    c->run = gort__load(&gort__sched.run, RELAXED);
    c->fn = fn;
    c->arg = arg;
    c->heap = (struct gort__timer){0};
    c->own = (struct gort__timer_own){0};
    c->waiters = (struct gort__waitq){0};
}

/* What it is set to, from now on. The lock is held, or nobody else has it. */
static GORT_ALWAYS_INLINE void set_to(gort_timer *t, struct cold *c, int64_t first, int64_t period,
                                      int64_t when, uint32_t lease)
{
    c->period = period > 0 ? period : 0;
    c->movable = period <= 0 && gort__lease_fits(first) && gort__move_possible();
    c->lease = lease;
    gort__store(&c->when, when, RELAXED); /* the heap, or fire, sees it in time */
    gort__move_forget(&t->move);
}

gort_timer *gort_timer_new(int64_t first, int64_t period, void (*fn)(void *), void *arg)
{
    if (!fn)
        gort__fatal("gort_timer_new: NULL function");
    struct gort__m *m = gort__enter(), *held = m ? NULL : gort__hold();
    gort_timer *t = gort__spare_alloc(m);
    gort__unhold(&held);
    if (t) {
        uint32_t lease;
        int64_t when = due_in(m, first, &lease);
        init(t, fn, arg);
        set_to(t, cold(t), first, period, when, lease);
        if (m) /* it may fire at once, but nobody else has it so far: the heap's lock orders what was written */
            arm_locked(t, cold(t));
    }
    if (m)
        gort__leave(m);
    return t;
}

/* Takes back what has been set and not begun. True: there was something. m NULL: no run is on, or it is just ending, and
 * takes its timers along. */
static GORT_ALWAYS_INLINE bool cancel_locked(struct gort__m *m, gort_timer *t, struct cold *c)
{
    bool active = c->state != IDLE;
    if (c->state == PENDING && m && gort__timer_cancel(&c->heap))
        refer(c, -1); /* the owner has one still */
    c->state = IDLE;
    c->settling = false;
    c->turn++;
    gort__move_close(&t->move);
    return active;
}

bool gort_timer_stop(gort_timer *t)
{
    if (!t)
        gort__fatal("gort_timer_stop: NULL timer");
    struct gort__m *m = gort__enter();
    lock(t);
    bool active = cancel_locked(m, t, cold(t));
    unlock(t);
    if (m)
        gort__leave(m);
    return active;
}

/* Any reset. */
static GORT_NOINLINE bool reset(gort_timer *t, int64_t first, int64_t period)
{
    struct gort__m *m = gort__enter();
    struct cold *c = cold(t);
    uint32_t lease;
    int64_t when = due_in(m, first, &lease);
    lock(t);
    bool active = c->state != IDLE;
    if (c->state == PENDING && m && when >= c->when && !c->settling) { /* its entry may stay where it is */
        set_to(t, c, first, period, when, lease);
        if (c->movable)
            gort__move_open(&t->move, when);
        else
            gort__move_close(&t->move);
    } else {
        cancel_locked(m, t, c);
        set_to(t, c, first, period, when, lease);
        if (m) /* else no run is on to be called in */
            arm_locked(t, c);
    }
    unlock(t);
    if (m)
        gort__leave(m);
    return active;
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
    if (GORT_UNLIKELY(!m || period > 0) || !gort__lease_fits(first) || !gort__move_later(&t->move, first))
        return reset(t, first, period); /* which enters once more: to be inside is a flag, not a count */
    if (GORT_UNLIKELY(gort__leave_looks(m)))
        return leave_slowly(m);
    return true;
}

int gort_timer_stop_wait(gort_timer *t)
{
    if (!t)
        gort__fatal("gort_timer_stop_wait: NULL timer");
    struct gort__m *m = gort__enter();
    struct cold *c = cold(t);
    int err = 0;
    lock(t);
    cancel_locked(m, t, c);
    if (c->calls && m && is_call_of(m->g, t))
        err = -EDEADLK;
    else if (c->calls)
        err = gort__wait_refused(m, GORT_FOREVER, false, "gort_timer_stop_wait");
    if (err || !c->calls || !m) {
        unlock(t);
    } else {
        struct gort__waiter w = {.g = m->g, .shared = gort__wait_shared(m->g, GORT_FOREVER, false)};
        struct gort__wait how = {&c->lock,     gort__wait_lock_sync, gort__wait_unlock_sync,
                                 GORT_FOREVER, GORT_WAIT_TIMER,      false};
        gort__waitq_push(&c->waiters, &w);
        err = gort__wait(&m, &how, &c->waiters, &w);
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
    struct cold *c = cold(t);
    /* Nobody else has it, and whoever had is not just about to unlock it. Pairs with refer and unlock. */
    if (gort__load(&c->refs, ACQUIRE) == 1 && gort__load(&c->lock.word, ACQUIRE) == 0) {
        gort__spare_free(m, t);
    } else {
        lock(t);
        cancel_locked(m, t, c);
        unlock_and_drop(t);
    }
    gort__unhold(&held);
    if (m)
        gort__leave(m);
}

/* SPDX-License-Identifier: MIT */
/*
 * mutex.c - mutexes of one word.
 *
 * Why: 8 bytes that may lie in any struct, and one compare-and-swap each way without contention.
 * The waiters' records are on their stacks; the word points at the first of them:
 *
 *     | 63 .. 48: the run | 47 .. 3: the first waiter, whose prev is the last one | 2: WOKEN | 1: QUEUE | 0: LOCKED |
 *
 * The run (its last 16 bits) tells whether the waiters are still there. LOCKED: somebody owns it. QUEUE: somebody changes the queue. WOKEN: a waiter was woken to try
 * again and has not yet done so, so there is no need to wake another.
 *
 * Normally an unlock makes the mutex free and wakes the first waiter, which competes with whoever
 * runs: they take it many times over while it is on its way, which is what makes mutexes fast. A
 * waiter that has waited for a millisecond is served by hand-over instead: LOCKED stays set and is
 * its own. (Hand-over always was rejected: each would cost a switch.)
 * Invariants: (1) who holds QUEUE alone changes the pointer and WOKEN; LOCKED may be set by anybody, and is its own if it
 * was clear; it is cleared by its owner only while it holds QUEUE, or nobody does and there is no queue or
 * WOKEN; (2) the unlocker touches nothing after its last store to the word but the waiter it took out; (3) WOKEN is
 * cleared by the woken one when it takes the lock, so its own unlock wakes the next, or by pass_on, which wakes the
 * next if the mutex is free then. So while somebody waits, the mutex is locked or somebody is on the way. (WOKEN of
 * an ended run promises nothing, and its waiters need nothing.)
 * Threads: any.
 */
#include <errno.h>

#include <gort/sync.h>

#include "base/fatal.h"
#include "sync/object.h"

#define LOCKED  UINT64_C(1)
#define QUEUE   UINT64_C(2)
#define WOKEN   UINT64_C(4)
#define POINTER UINT64_C(0x0000fffffffffff8)

#define STARVING_AFTER GORT_MS
#define SPIN_ROUNDS    4
#define SPIN_PAUSES    8

enum { TRY_AGAIN, HANDED_OVER }; /* what a waiter's result says */

/* The state without what an ended run left in it: its waiters are gone, and so are their records. */
static uint64_t current(uint64_t state)
{
    return state >> 48 == (uint16_t)gort__load(&gort__sched.run, RELAXED) ? state : state & (LOCKED | QUEUE);
}

/* The waiters as a queue, while the caller holds QUEUE. */
static struct gort__waitq open_queue(uint64_t state)
{
    struct gort__waitq q = {NULL, NULL, gort__load(&gort__sched.run, RELAXED)};
    struct gort__waiter *first = (struct gort__waiter *)(uintptr_t)(state & POINTER);
    if (first) {
        q.first = first;
        q.last = first->prev;
        first->prev = NULL;
    }
    return q;
}

/* The part of the word that tells of waiters. */
static uint64_t close_queue(struct gort__waitq q, uint64_t woken)
{
    if (q.first)
        q.first->prev = q.last;
    return q.first || woken ? (uint64_t)(uintptr_t)q.first | woken | q.run << 48 : 0;
}

/* Takes QUEUE; the state before. */
static uint64_t lock_queue(gort_mutex *mu)
{
    for (int spins = 0;; spins++) {
        uint64_t s = gort__load(&mu->gort_priv_state, RELAXED);
        if (!(s & QUEUE) &&
            gort__cas(&mu->gort_priv_state, &s, s | QUEUE, ACQUIRE)) /* pairs with unlock_queue */
            return current(s);
        if (spins < 100)
            gort__arch_pause();
        else
            gort__os_thread_yield();
    }
}

/* Puts the queue back; keeps LOCKED as it is now, and WOKEN as given. */
static void unlock_queue(gort_mutex *mu, struct gort__waitq q, uint64_t woken)
{
    uint64_t s = gort__load(&mu->gort_priv_state, RELAXED), waiters = close_queue(q, woken);
    while (!gort__cas(&mu->gort_priv_state, &s, waiters | (s & LOCKED), RELEASE)) /* pairs with lock_queue */
        ;
}

/* A wait under way; on the stack of the waiter. */
struct attempt {
    gort_mutex *mu;
    struct gort__waitq q;
    uint64_t woken;
};

static void relock(void *arg)
{
    struct attempt *a = arg;
    uint64_t s = lock_queue(a->mu);
    a->q = open_queue(s);
    a->woken = s & WOKEN;
}

static void release(void *arg)
{
    struct attempt *a = arg;
    unlock_queue(a->mu, a->q, a->woken);
}

/* Spins while the owner is likely to be running on another P. True: it has the lock. */
static bool spin(gort_mutex *mu)
{
    if (gort__alone())
        return false;
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        uint64_t s = gort__load(&mu->gort_priv_state, RELAXED);
        if (!(s & LOCKED) && gort__cas(&mu->gort_priv_state, &s, s | LOCKED, ACQUIRE)) /* pairs with unlock */
            return true;
        for (int k = 0; k < SPIN_PAUSES; k++)
            gort__arch_pause();
    }
    return false;
}

/* A woken waiter gives up: somebody else must be woken in its place if the mutex is free. */
static void pass_on(struct gort__m *m, gort_mutex *mu)
{
    uint64_t s = lock_queue(mu);
    struct gort__waitq q = open_queue(s);
    struct gort__waiter *w = NULL;
    if (!(gort__load(&mu->gort_priv_state, RELAXED) & LOCKED))
        w = gort__waitq_take(&q);
    if (w)
        w->result = TRY_AGAIN;
    unlock_queue(mu, q, w ? WOKEN : 0);
    if (w)
        gort__ready(m, w->g);
}

static GORT_NOINLINE int lock_slow(gort_mutex *mu, int64_t deadline, bool stubborn)
{
    struct gort__m *m = gort__enter();
    struct gort__waiter w = {.since = 0};
    bool woken = false;
    int err = 0;
    if (deadline == GORT_TRY || !spin(mu))
        for (;;) {
            uint64_t s = gort__load(&mu->gort_priv_state, RELAXED);
            if (!(s & LOCKED)) {
                /* Pairs with unlock. A woken waiter takes back its mark, but never while somebody has QUEUE. */
                if ((!woken || !(s & QUEUE)) &&
                    gort__cas(&mu->gort_priv_state, &s, (s | LOCKED) & ~(woken ? WOKEN : 0), ACQUIRE))
                    break;
                gort__arch_pause();
                continue;
            }
            err = gort__wait_refused(m, deadline, stubborn, "gort_mutex_lock");
            if (err) {
                if (woken)
                    pass_on(m, mu);
                break;
            }
            if ((s & QUEUE) ||
                !gort__cas(&mu->gort_priv_state, &s, s | QUEUE, ACQUIRE)) { /* pairs with unlock_queue */
                gort__arch_pause();
                continue;
            }
            s = current(s);
            struct attempt a = {mu, open_queue(s), woken ? 0 : s & WOKEN};
            struct gort__wait how = {&a, relock, release, deadline, GORT_WAIT_MUTEX, stubborn};
            w.g = m->g;
            w.shared = gort__wait_shared(m->g, deadline, stubborn);
            if (!w.since) {
                w.since = gort__os_now();
                gort__waitq_push(&a.q, &w);
            } else {
                gort__waitq_push_front(&a.q, &w);
            }
            err = gort__wait(&m, &how, &a.q, &w);
            if (err == HANDED_OVER) {
                err = 0;
                break;
            }
            if (err < 0)
                break;
            woken = true;
        }
    if (m)
        gort__leave(m);
    return err;
}

/* Whoever runs may take it, waiters or not. (x86-64: a bit is tested and set in 0.3 ns less than a compare-and-swap.) */
static inline bool lock_fast(gort_mutex *mu)
{
    if (gort__or(&mu->gort_priv_state, LOCKED, ACQUIRE) & LOCKED) /* pairs with unlock */
        return false;
    return true;
}

/* Not those of the header: they come here when there is more to do. */
#undef gort_mutex_lock
#undef gort_mutex_unlock

int gort_mutex_lock(gort_mutex *mu)
{
    return GORT_LIKELY(lock_fast(mu)) ? 0 : lock_slow(mu, GORT_FOREVER, true);
}

bool gort_mutex_trylock(gort_mutex *mu)
{
    return lock_fast(mu);
}

int gort_mutex_lock_until(gort_mutex *mu, int64_t deadline)
{
    return GORT_LIKELY(lock_fast(mu)) ? 0 : lock_slow(mu, deadline, false);
}

/* There are waiters, or it is not locked. m: the caller's, inside; NULL: outside of runs. */
static GORT_NOINLINE void unlock_slow(struct gort__m *m, gort_mutex *mu)
{
    if (!(gort__load(&mu->gort_priv_state, RELAXED) & LOCKED))
        gort__fatal("gort_mutex_unlock: the mutex is not locked");
    struct gort__m *joined = NULL;
    uint64_t s = lock_queue(mu);
    struct gort__waitq q = open_queue(s);
    for (int tries = GORT_ENTER_TRIES; gort__run_began(m) && tries > 0; tries--) {
        gort__store(&mu->gort_priv_state, close_queue(q, s & WOKEN) | LOCKED,
                    RELEASE); /* pairs with lock_queue */
        m = joined = gort__enter();
        s = lock_queue(mu);
        q = open_queue(s);
    }
    struct gort__waiter *w = s & WOKEN ? NULL : gort__waitq_take(&q);
    bool hand_over = w && gort__os_now() - w->since > STARVING_AFTER;
    if (w)
        w->result = hand_over ? HANDED_OVER : TRY_AGAIN;
    uint64_t woken = (s & WOKEN) | (w && !hand_over ? WOKEN : 0);
    /* Nobody else changes the word now: LOCKED and QUEUE are both ours. Pairs with lock and lock_queue. */
    gort__store(&mu->gort_priv_state, close_queue(q, woken) | (hand_over ? LOCKED : 0), RELEASE);
    gort__fuzz_unlock();
    if (w)
        gort__ready(m, w->g);
    if (joined)
        gort__leave(joined);
}

/* Nobody needs to be woken: nobody waits, or one who was woken has not tried yet; it will wake the next (3). */
static inline bool unlock_fast(gort_mutex *mu)
{
    uint64_t s = LOCKED;
    do
        if (gort__cas(&mu->gort_priv_state, &s, s & ~LOCKED, RELEASE)) /* pairs with lock */
            return true;
    while ((s & (LOCKED | QUEUE | WOKEN)) == (LOCKED | WOKEN));
    return false;
}

void gort__mutex_unlock(struct gort__m *m, gort_mutex *mu)
{
    if (!unlock_fast(mu))
        unlock_slow(m, mu);
}

void gort_mutex_unlock(gort_mutex *mu)
{
    if (GORT_LIKELY(unlock_fast(mu)))
        return;
    struct gort__m *m = gort__enter();
    unlock_slow(m, mu);
    if (m)
        gort__leave(m);
}

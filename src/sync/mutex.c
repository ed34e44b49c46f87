/* SPDX-License-Identifier: MIT */
/*
 * mutex.c - mutexes of one word.
 *
 * Why: 8 bytes that may lie in any struct, and one atomic operation on one byte of them each way without
 * contention. The waiters' records are on their stacks; the word points at the first of them:
 *
 *     | 63 .. 52: the run | 51 .. 10: the first waiter, whose prev is the last one | 9: QUEUE | 8: WOKEN | 7 .. 0: the byte |
 *
 *     the byte:  0x00  free: whoever makes it 0x01 has the mutex, whatever is in the rest of the word
 *                0x01  LOCKED: somebody owns it, whose unlock need not wake anybody
 *                0x81  LOCKED | SLOW: somebody owns it, whose unlock must look at the queue
 *                0x80  SLOW: its owner is unlocking it and looks at the queue; nobody can take it yet
 *
 * The run (half its number, the last 12 bits) tells whether the waiters are still there. QUEUE: somebody
 * changes the queue. WOKEN: a waiter was woken to try again and has not yet done so, so there is no need to
 * wake another.
 *
 * An unlock takes 1 from the byte. What is left is 0, and the mutex was free from that moment on, so it is
 * not touched again; or 0x80, and it still is the unlocker's, until the one store that ends unlock_slow.
 * Anything else was not locked. The value that was there is not asked for, only whether it is 0 now, which is
 * what makes the subtraction cheaper than a compare-and-swap; and lock and unlock both use the byte, because
 * an operation on 8 bytes right after one on 1 of them waits for it to reach the cache.
 *
 * Normally an unlock makes the mutex free and wakes the first waiter, which competes with whoever
 * runs: they take it many times over while it is on its way, which is what makes mutexes fast. A
 * waiter that has waited for a millisecond is served by hand-over instead: LOCKED stays set and is
 * its own. (Hand-over always was rejected: each would cost a switch.)
 *
 * Invariants: (1) who holds QUEUE alone changes the pointer and WOKEN. (2) While QUEUE is held the byte
 * changes only from 0 to LOCKED (anybody), from LOCKED to 0 and from LOCKED | SLOW to SLOW (its owner), and
 * as the holder of QUEUE wants it: so once that has seen LOCKED | SLOW or SLOW, the mutex does not become
 * free before QUEUE is. A waiter sets QUEUE and SLOW in one step, while somebody owns the mutex: it cannot be
 * overlooked. (3) Who has made the byte SLOW and holds QUEUE is the only one that changes the word; it
 * touches nothing after its last store but the waiter it took out. (4) While QUEUE is free and somebody
 * waits, SLOW or WOKEN is set: whoever queues up sees to it, taking WOKEN back goes with setting SLOW
 * (lock_woken), and unlock_slow clears SLOW only if it leaves WOKEN, or nobody waits. (5) WOKEN is taken back
 * by the woken one: when it gets the lock or queues up again, and then the owner's unlock wakes the next by
 * (4), or by pass_on, which does that itself if the mutex is free then. So while somebody waits, the mutex is
 * owned by one who will wake it, or somebody is on the way. (WOKEN of an ended run promises nothing, and its
 * waiters need nothing; SLOW of an ended run costs a look. A goroutine that its run takes along while the
 * byte is SLOW leaves a mutex that nobody will ever unlock, as does one that is taken along with the lock
 * held.)
 * Threads: any.
 */
#include <errno.h>

#include <gort/sync.h>

#include "base/fatal.h"
#include "sync/object.h"

#define LOCKED  UINT64_C(0x01)
#define SLOW    UINT64_C(0x80)
#define OWNED   UINT64_C(0xff) /* the byte: any bit there */
#define WOKEN   UINT64_C(0x100)
#define QUEUE   UINT64_C(0x200)
#define POINTER UINT64_C(0x000ffffffffffc00)

#define RECORD_ALIGNED 64
#define POINTER_SHIFT  4 /* of an address that ends in six zeros, to bit 10 */
#define RUN_SHIFT      52

_Static_assert(sizeof(gort_mutex) == 8, "ABI");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the byte is the word's first one");

#define STARVING_AFTER GORT_MS
#define SPIN_ROUNDS    4
#define SPIN_PAUSES    8
#ifndef GORT_MUTEX_SPINS /* before the thread yields to whoever holds QUEUE; fewer in tests/model */
#define GORT_MUTEX_SPINS 100
#endif

enum { TRY_AGAIN, HANDED_OVER }; /* what a waiter's result says */

/* Whoever runs may take it, waiters or not. */
static inline bool lock_fast(gort_mutex *mu)
{
    unsigned char free_byte = 0;
    return gort__cas(GORT_PRIV_BYTE(mu), &free_byte, LOCKED,
                     ACQUIRE); /* pairs with unlock_fast, unlock_slow */
}

/* False: the byte is SLOW now, and there is more to do; or the mutex was not locked. */
static inline bool unlock_fast(gort_mutex *mu)
{
    return gort__sub(GORT_PRIV_BYTE(mu), LOCKED, RELEASE) == LOCKED; /* pairs with lock_fast, lock_slow */
}

/* A run's number is up by two from one run to the next, and even while none is on: so the end of a run is a
 * new stamp. */
static uint64_t run_stamp(uint64_t run)
{
    return run >> 1 << RUN_SHIFT;
}

/* The state without what an ended run left in it: its waiters are gone, and so are their records. */
static uint64_t current(uint64_t state)
{
    uint64_t stamp = run_stamp(gort__sched_run());
    return state >> RUN_SHIFT == stamp >> RUN_SHIFT ? state : state & (OWNED | QUEUE);
}

/* The waiters as a queue, while the caller holds QUEUE. */
static struct gort__waitq open_queue(uint64_t state)
{
    struct gort__waitq q = {NULL, NULL, gort__sched_run()};
    struct gort__waiter *first = (struct gort__waiter *)(uintptr_t)((state & POINTER) >> POINTER_SHIFT);
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
    return q.first || woken ? (uint64_t)(uintptr_t)q.first << POINTER_SHIFT | woken | run_stamp(q.run) : 0;
}

/* Takes QUEUE; the state before. */
static uint64_t lock_queue(gort_mutex *mu)
{
    for (int spins = 0;;) {
        uint64_t s = gort__load(&mu->gort_priv_state, RELAXED);
        if (!(s & QUEUE) &&
            gort__cas(&mu->gort_priv_state, &s, s | QUEUE, ACQUIRE)) /* pairs with unlock_queue */
            return current(s);
        if (spins < GORT_MUTEX_SPINS) {
            spins++;
            gort__arch_pause();
        } else {
            gort__os_thread_yield();
        }
    }
}

/*
 * Puts the queue back, with WOKEN as given. The mutex stays as it is, but SLOW is taken from an owner whose
 * unlock need not wake anybody. If it must, SLOW has been set since this queue was taken, or before: the
 * mutex has not become free (2).
 */
static void unlock_queue(gort_mutex *mu, struct gort__waitq q, uint64_t woken)
{
    uint64_t s = gort__load(&mu->gort_priv_state, RELAXED), byte;
    uint64_t waiters = close_queue(q, woken), slow = q.first && !woken ? SLOW : 0;
    do {
        byte = s & LOCKED ? LOCKED | slow : s & OWNED;
        gort__check(byte || !slow);
    } while (!gort__cas(&mu->gort_priv_state, &s, waiters | byte, RELEASE)); /* pairs with lock_queue */
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
    if (gort__sched_alone())
        return false;
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (!gort__load(GORT_PRIV_BYTE(mu), RELAXED) && lock_fast(mu))
            return true;
        for (int k = 0; k < SPIN_PAUSES; k++)
            gort__arch_pause();
    }
    return false;
}

/*
 * A woken waiter gives up: somebody else must be woken in its place. If the mutex is free, now; else its
 * owner does that, who cannot get away once SLOW is set (2).
 */
static void pass_on(struct gort__m *m, gort_mutex *mu)
{
    struct gort__waitq q = open_queue(lock_queue(mu));
    struct gort__waiter *w = NULL;
    uint64_t s = gort__load(&mu->gort_priv_state, RELAXED);
    while ((s & OWNED) && !gort__cas(&mu->gort_priv_state, &s, s | SLOW, RELAXED))
        ;
    if (!(s & OWNED))
        w = gort__waitq_take(&q);
    if (w) {
        w->result = TRY_AGAIN;
        w->until = gort__os_now();
    }
    unlock_queue(mu, q, w ? WOKEN : 0);
    if (w)
        gort__ready(m, w->g);
}

/* A free mutex, found by a waiter that was woken: it takes its mark back, but never while somebody has
 * QUEUE. */
static bool lock_woken(gort_mutex *mu, uint64_t s)
{
    uint64_t slow = s & POINTER ? SLOW : 0;
    return !(s & QUEUE) && gort__cas(&mu->gort_priv_state, &s, (s & ~WOKEN) | LOCKED | slow,
                                     ACQUIRE); /* pairs with unlock_fast, unlock_slow */
}

static GORT_NOINLINE int lock_slow(gort_mutex *mu, int64_t deadline, bool no_cancel)
{
    struct gort__m *m = gort__enter();
    _Alignas(RECORD_ALIGNED) struct gort__waiter w = {.since = 0};
    bool woken = false;
    int err = 0;
    if (deadline == GORT_TRY || !spin(mu))
        for (;;) {
            uint64_t s = gort__load(&mu->gort_priv_state, RELAXED);
            if (!(s & OWNED)) {
                if (woken ? lock_woken(mu, s) : lock_fast(mu))
                    break;
                gort__arch_pause();
                continue;
            }
            err = gort__wait_refused(m, deadline, no_cancel, "gort_mutex_lock");
            if (err) {
                if (woken)
                    pass_on(m, mu);
                break;
            }
            if ((s & QUEUE) || !gort__cas(&mu->gort_priv_state, &s, s | QUEUE | SLOW,
                                          ACQUIRE)) { /* pairs with unlock_queue */
                gort__arch_pause();
                continue;
            }
            s = current(s);
            struct attempt a = {mu, open_queue(s), woken ? 0 : s & WOKEN};
            struct gort__wait how = {&a, relock, release, deadline, GORT_WAIT_MUTEX, no_cancel};
            w.g = m->g;
            w.needs_claim = gort__wait_needs_claim(m->g, deadline, no_cancel);
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
    if (m) {
        if (w.until)
            gort__latency_mutex(m, w.until - w.since);
        gort__leave(m);
    }
    return err;
}

/* Not those of the header: they come here when there is more to do. */
#undef gort_mutex_lock
#undef gort_mutex_unlock

int gort_mutex_lock(gort_mutex *mu)
{
    GORT_NEED("gort_mutex_lock", "mutex", mu);
    return GORT_LIKELY(lock_fast(mu)) ? 0 : lock_slow(mu, GORT_FOREVER, true);
}

bool gort_mutex_trylock(gort_mutex *mu)
{
    GORT_NEED("gort_mutex_trylock", "mutex", mu);
    return lock_fast(mu);
}

int gort_mutex_lock_until(gort_mutex *mu, int64_t deadline)
{
    GORT_NEED("gort_mutex_lock", "mutex", mu);
    return GORT_LIKELY(lock_fast(mu)) ? 0 : lock_slow(mu, deadline, false);
}

/* The owner of a lock that is held for ever, because its goroutine went with its run: also in the middle of
 * an unlock. */
void gort__mutex_inherit(gort_mutex *mu)
{
    gort__or(GORT_PRIV_BYTE(mu), LOCKED, ACQUIRE); /* pairs with unlock_fast */
}

/* After unlock_fast. m: the caller's, inside; NULL: outside of runs. call: what the program called. */
static GORT_NOINLINE void unlock_slow(struct gort__m *m, gort_mutex *mu, const char *call)
{
    if (gort__load(GORT_PRIV_BYTE(mu), RELAXED) != SLOW)
        gort__fatal("%s: the mutex is not locked", call);
    struct gort__m *joined = NULL;
    uint64_t s = lock_queue(mu);
    struct gort__waitq q = open_queue(s);
    for (int tries = GORT_ENTER_TRIES; gort__enter_run_began(m) && tries > 0; tries--) {
        gort__store(&mu->gort_priv_state, close_queue(q, s & WOKEN) | SLOW,
                    RELEASE); /* pairs with lock_queue */
        m = joined = gort__enter();
        s = lock_queue(mu);
        q = open_queue(s);
    }
    struct gort__waiter *w = s & WOKEN ? NULL : gort__waitq_take(&q);
    int64_t now = w ? gort__os_now() : 0;
    bool hand_over = w && now - w->since > STARVING_AFTER;
    if (w) {
        w->result = hand_over ? HANDED_OVER : TRY_AGAIN;
        w->until = now;
    }
    uint64_t woken = (s & WOKEN) | (w && !hand_over ? WOKEN : 0);
    uint64_t byte = !hand_over ? 0 : q.first ? LOCKED | SLOW : LOCKED;
    /* Nobody else changes the word now (3). Pairs with lock_fast, lock_slow and lock_queue. */
    gort__store(&mu->gort_priv_state, close_queue(q, woken) | byte, RELEASE);
    gort__fuzz_released();
    if (w)
        gort__ready(m, w->g);
    if (joined)
        gort__leave(joined);
}

void gort__mutex_unlock(struct gort__m *m, gort_mutex *mu)
{
    if (!unlock_fast(mu))
        unlock_slow(m, mu, "gort_cond_wait");
}

void gort_priv_mutex_unlocked(gort_mutex *mu)
{
    GORT_NEED("gort_mutex_unlock", "mutex", mu);
    struct gort__m *m = gort__enter();
    unlock_slow(m, mu, "gort_mutex_unlock");
    if (m)
        gort__leave(m);
}

void gort_mutex_unlock(gort_mutex *mu)
{
    GORT_NEED("gort_mutex_unlock", "mutex", mu);
    if (GORT_UNLIKELY(!unlock_fast(mu)))
        gort_priv_mutex_unlocked(mu);
}

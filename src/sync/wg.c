/* SPDX-License-Identifier: MIT */
/*
 * wg.c - wait groups.
 *
 * Why: a wait group often lives on the stack of the goroutine that waits, and is gone the moment
 * wait returns. So the last done takes everybody out of the queue and makes the state zero in that
 * order, and touches nothing of the group afterwards; only then does it wake anybody.
 *
 *     state:  | 33: there is a queue | 32: it is being changed | 31 .. 0: the count |
 *
 * Invariants: (1) the queue is changed only by whoever set LOCK; (2) with the count at zero and LOCK
 * clear, the queue is empty.
 * Threads: any.
 */
#include <errno.h>

#include "base/fatal.h"
#include "sync/object.h"

#define LOCK         (UINT64_C(1) << 32)
#define WAITED       (UINT64_C(1) << 33)
#define COUNT(state) ((int32_t)(uint32_t)(state))

#ifndef GORT_WG_SPINS /* before the thread yields to whoever has set LOCK; fewer in tests/model */
#define GORT_WG_SPINS 100
#endif

static uint64_t take_lock(gort_wg *wg)
{
    for (int spins = 0;;) {
        uint64_t s = gort__load(&wg->gort_priv_state, RELAXED);
        if (!(s & LOCK) && gort__cas(&wg->gort_priv_state, &s, s | LOCK, ACQUIRE)) /* pairs with unlock */
            return s;
        if (spins < GORT_WG_SPINS) {
            spins++;
            gort__arch_pause();
        } else {
            gort__os_thread_yield();
        }
    }
}

static void lock(void *wg)
{
    take_lock(wg);
}

static void unlock(void *arg)
{
    gort_wg *wg = arg;
    gort__and(&wg->gort_priv_state, ~LOCK, RELEASE); /* pairs with take_lock */
}

/* Drops LOCK and tells of the queue at once: while LOCK is set nobody else changes these two. */
static bool commit_unlock(struct gort__g *g, void *arg)
{
    (void)g;
    gort_wg *wg = arg;
    uint64_t waited = gort__load(&wg->gort_priv_state, RELAXED) & WAITED;
    gort__add(&wg->gort_priv_state, (waited ^ WAITED) - LOCK, RELEASE); /* pairs with take_lock */
    return true;
}

/* A wait with a deadline or under a context, or of a plain thread. Called with LOCK set. */
static GORT_NOINLINE int wait_claimed(gort_wg *wg, int64_t deadline, bool no_cancel, struct gort__m **m)
{
    struct gort__waitq *q = gort__object_queue(&wg->gort_priv_waiters);
    int err = gort__wait_refused(*m, deadline, no_cancel, "gort_wg_wait");
    if (err || !*m) {
        unlock(wg);
        return err;
    }
    struct gort__wait how = {wg, lock, unlock, deadline, GORT_WAIT_WG, no_cancel};
    struct gort__waiter w = {.g = (*m)->g, .needs_claim = true};
    gort__or(&wg->gort_priv_state, WAITED, RELAXED);
    gort__waitq_push(q, &w);
    return gort__wait(m, &how, q, &w);
}

static GORT_ALWAYS_INLINE int wait_for_zero(gort_wg *wg, int64_t deadline, bool no_cancel)
{
    if (gort__load(&wg->gort_priv_state, ACQUIRE) ==
        0) /* pairs with wake_all: with LOCK set it is still in use */
        return 0;
    struct gort__m *m = gort__enter();
    int err = 0;
    if (COUNT(take_lock(wg)) == 0) {
        unlock(wg);
    } else if (GORT_UNLIKELY(!m || gort__wait_needs_claim(m->g, deadline, no_cancel))) {
        err = wait_claimed(wg, deadline, no_cancel, &m);
    } else {
        struct gort__waiter w;
        w.g = m->g;
        w.needs_claim = false;
        gort__waitq_push(gort__object_queue(&wg->gort_priv_waiters), &w);
        m = gort__park(commit_unlock, wg, GORT_WAIT_WG);
        err = w.result;
    }
    if (m)
        gort__leave(m);
    return err;
}

int gort_wg_wait(gort_wg *wg)
{
    GORT_NEED("gort_wg_wait", "wait group", wg);
    return wait_for_zero(wg, GORT_FOREVER, true);
}

int gort_wg_wait_until(gort_wg *wg, int64_t deadline)
{
    GORT_NEED("gort_wg_wait", "wait group", wg);
    return wait_for_zero(wg, deadline, false);
}

/* The count went to zero with somebody in the queue. LOCK is ours. */
static GORT_NOINLINE void wake_all(struct gort__m *m, gort_wg *wg)
{
    struct gort__glist woken = {0};
    struct gort__waiter *w;
    while ((w = gort__waitq_take(gort__object_queue(&wg->gort_priv_waiters))) != NULL) {
        w->result = 0;
        gort__runq_list_add(&woken, w->g);
    }
    /* Pairs with take_lock; the group may be gone now. */
    gort__and(&wg->gort_priv_state, ~(LOCK | WAITED), RELEASE);
    if (woken.n == 1)
        gort__ready(m, woken.first);
    else if (woken.n)
        gort__ready_list(m, woken);
}

enum { ADDED, MUST_ENTER, MUST_WAKE };

/* MUST_WAKE: LOCK is taken and the waiters are to be woken. Whoever would take it must be inside already,
 * because waiters spin on it: MUST_ENTER, nothing was done. */
static inline int add(gort_wg *wg, int n, bool inside)
{
    for (uint64_t s = gort__load(&wg->gort_priv_state, RELAXED);;) {
        int64_t count = (int64_t)COUNT(s) + n;
        if (GORT_UNLIKELY(count < 0 || count > INT32_MAX))
            gort__fatal(count < 0 ? "gort_wg: the count went below zero" : "gort_wg: the count is too large");
        bool last = count == 0 && n != 0;
        if (last && (s & LOCK)) { /* somebody is about to wait: let it */
            gort__arch_pause();
            s = gort__load(&wg->gort_priv_state, RELAXED);
            continue;
        }
        bool wake = last && (s & WAITED);
        if (wake && !inside)
            return MUST_ENTER;
        uint64_t to = (s & ~(uint64_t)UINT32_MAX) | (uint32_t)count | (wake ? LOCK : 0);
        if (gort__cas(&wg->gort_priv_state, &s, to, ACQ_REL)) /* pairs with gort_wg_wait */
            return wake ? MUST_WAKE : ADDED;
    }
}

/* Somebody is to be woken, it seems. */
static GORT_NOINLINE void add_inside(gort_wg *wg, int n)
{
    struct gort__m *m = gort__enter();
    int then = add(wg, n, true);
    /* If a run began meanwhile (gort__enter_run_began) LOCK must be dropped once more. Then nothing was done: who
     * comes and finds a count of zero would go, and take the group along. Pairs with take_lock. */
    for (int tries = GORT_ENTER_TRIES; then == MUST_WAKE && gort__enter_run_began(m) && tries > 0; tries--) {
        gort__sub(&wg->gort_priv_state, LOCK + (uint64_t)n, RELEASE);
        m = gort__enter();
        then = add(wg, n, true);
    }
    if (then == MUST_WAKE)
        wake_all(m, wg);
    if (m)
        gort__leave(m);
}

void gort_wg_add(gort_wg *wg, int n)
{
    GORT_NEED("gort_wg_add", "wait group", wg);
    if (GORT_UNLIKELY(add(wg, n, false) != ADDED))
        add_inside(wg, n);
}

void gort_wg_done(gort_wg *wg)
{
    GORT_NEED("gort_wg_done", "wait group", wg);
    if (GORT_UNLIKELY(add(wg, -1, false) != ADDED))
        add_inside(wg, -1);
}

static void done(void *wg)
{
    gort_wg_done(wg);
}

int gort_wg_go(gort_wg *wg, void (*fn)(void *), void *arg)
{
    GORT_NEED("gort_wg_go", "wait group", wg);
    GORT_NEED("gort_wg_go", "function", fn);
    struct gort__m *m = gort__enter();
    if (!m)
        return -ESRCH;
    uintptr_t word = (uintptr_t)arg;
    add(wg, 1, true);
    int err = gort__spawn_finally(m, (void (*)(void))fn, &word, 1, done, wg);
    if (err && add(wg, -1, true) == MUST_WAKE)
        wake_all(m, wg);
    gort__leave(m);
    return err;
}

/* SPDX-License-Identifier: MIT */
/*
 * wg.c - wait groups.
 *
 * Why: a wait group often lives on the stack of the goroutine that waits, and is gone the moment
 * wait returns. So the last done takes the list of waiters and makes the state zero in that order,
 * and touches nothing of the group afterwards; only then does it wake anybody.
 *
 *     state:  | 62 .. 33 | 32: the list is being changed | 31 .. 0: the count |
 *
 * Invariants: (1) the list is changed only by whoever set the lock bit; (2) with the count at zero
 * and the bit clear, the list is empty.
 * Threads: any.
 */
#include <gort/sync.h>

#include <errno.h>

#include "base/fatal.h"
#include "sched/verbs.h"

#define LOCK (UINT64_C(1) << 32)
#define COUNT(state) ((int32_t)(uint32_t)(state))

/* One that waits; on its own stack. */
struct waiter {
    struct waiter *next;
    struct gort__g *g;
};

static uint64_t lock(gort_wg *wg)
{
    for (;;) {
        uint64_t s = gort__load(&wg->gort_priv_state, RELAXED);
        if (!(s & LOCK) && gort__cas(&wg->gort_priv_state, &s, s | LOCK, ACQUIRE)) /* pairs with the unlocks */
            return s;
        gort__arch_pause();
    }
}

static bool commit_unlock(struct gort__g *g, void *arg)
{
    gort_wg *wg = arg;
    (void)g;
    gort__and(&wg->gort_priv_state, ~LOCK, RELEASE); /* pairs with lock */
    return true;
}

int gort_wg_wait(gort_wg *wg)
{
    if (COUNT(gort__load(&wg->gort_priv_state, ACQUIRE)) == 0) /* pairs with gort_wg_add */
        return 0;
    struct gort__m *m = gort__enter();
    if (!m)
        gort__fatal("gort_wg_wait: would wait, but no run is on");
    uint64_t s = lock(wg);
    if (COUNT(s) == 0) {
        commit_unlock(m->g, wg);
    } else {
        struct waiter w = {wg->gort_priv_waiters, m->g};
        wg->gort_priv_waiters = &w;
        m = gort__park(commit_unlock, wg, GORT_WAIT_WG);
    }
    gort__leave(m);
    return 0;
}

/* The count went to zero: wakes everybody. Called with the lock bit set; releases it. */
static void wake_all(gort_wg *wg)
{
    struct gort__m *m = gort__enter();
    struct waiter *w = wg->gort_priv_waiters;
    wg->gort_priv_waiters = NULL;
    gort__and(&wg->gort_priv_state, ~LOCK, RELEASE); /* pairs with lock; the group may be gone now */
    while (w) {
        struct waiter *next = w->next;
        gort__ready(m, w->g); /* its record is on its stack: read next before */
        w = next;
    }
    if (m)
        gort__leave(m);
}

void gort_wg_add(gort_wg *wg, int n)
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
        uint64_t to = (s & LOCK) | (uint32_t)count | (last ? LOCK : 0);
        if (!gort__cas(&wg->gort_priv_state, &s, to, ACQ_REL)) /* pairs with gort_wg_wait */
            continue;
        if (last)
            wake_all(wg);
        return;
    }
}

void gort_wg_done(gort_wg *wg)
{
    gort_wg_add(wg, -1);
}

static void run_and_done(void (*fn)(void *), void *arg, gort_wg *wg)
{
    fn(arg);
    gort_wg_done(wg);
}

int gort_wg_go(gort_wg *wg, void (*fn)(void *), void *arg)
{
    if (!fn)
        gort__fatal("gort_wg_go: NULL function");
    struct gort__m *m = gort__enter();
    if (!m)
        return -ESRCH;
    gort_wg_add(wg, 1);
    uintptr_t args[3] = {(uintptr_t)fn, (uintptr_t)arg, (uintptr_t)wg};
    int err = gort__go(m, NULL, (void (*)(void))run_and_done, args, 3);
    if (err)
        gort_wg_add(wg, -1);
    gort__leave(m);
    return err;
}

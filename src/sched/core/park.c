/* SPDX-License-Identifier: MIT */
/*
 * park.c - the one way to wait and the one way to wake.
 *
 * Why: every primitive sleeps through gort__park and is woken through gort__ready, so the rules for lost
 * wake-ups stand in one place: the waiter is findable only after its commit function ran (or under a lock
 * that the commit function releases), and then it is off its stack; or, with one P, nobody but its own M can
 * resume it (verbs.h: gort__park_early).
 * A plain thread takes part through its stand-in G: it sleeps on its M's note instead of switching.
 * Invariants: (1) one gort__ready a park; (2) commit false means that nobody will call it. tests/model/chan.c
 * explores parking and readying at the same time.
 * Threads: park by the waiter; ready by anybody inside.
 */
#include "base/fatal.h"
#include "sched/core/core.h"

static GORT_NOINLINE struct gort__m *park_thread(struct gort__m *m, gort__commit commit, void *arg)
{
    struct gort__g *g = m->g;
    gort__commit then = commit;
    if (!then || then(g, arg))
        gort__note_sleep(m);
    gort__g_set(g, GORT_G_RUNNING);
    return m;
}

/* In a function of its own, as park_thread, so that gort__park itself needs no stack. */
static GORT_NOINLINE struct gort__m *park_checked(struct gort__m *m, struct gort__g *g)
{
    gort__hooks.outer.overflow_check(g);
    return gort__schedule_switch_away(m, g);
}

struct gort__m *gort__park(gort__commit commit, void *arg, enum gort__reason reason)
{
    struct gort__m *m = gort__m_self();
    struct gort__g *g = m->g;
    gort__store(&g->reason, (uint8_t)reason, RELAXED);
    gort__g_set(g, GORT_G_WAITING);
    if (GORT_UNLIKELY(g->flags & GORT_G_THREAD))
        return park_thread(m, commit, arg);
    m->commit.fn = commit;
    m->commit.arg = arg;
    if (GORT_UNLIKELY(g->flags & GORT_G_CHECKED))
        return park_checked(m, g);
    return gort__schedule_switch_away(m, g);
}

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
#include "sched/verbs.h"

static GORT_NOINLINE struct gort__m *park_thread(struct gort__m *m, gort__commit commit, void *arg)
{
    struct gort__g *g = m->g;
    gort__commit then = commit;
    if (!then || then(g, arg))
        gort__m_sleep(m);
    gort__g_set(g, GORT_G_RUNNING);
    return m;
}

/* In a function of its own, as park_thread, so that gort__park itself needs no stack. */
static GORT_NOINLINE struct gort__m *park_checked(struct gort__m *m, struct gort__g *g)
{
    gort__overflow_check(g);
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
    m->commit = commit;
    m->commit_arg = arg;
    if (GORT_UNLIKELY(g->flags & GORT_G_CHECKED))
        return park_checked(m, g);
    return gort__schedule_switch_away(m, g);
}

void gort__ready(struct gort__m *m, struct gort__g *g)
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.fuzz, RELAXED)) && m)
        gort__fuzz_point(m);
    if (GORT_UNLIKELY(gort__load(&g->flags, RELAXED) & GORT_G_THREAD)) {
        gort__m_wake(g->m);
        return;
    }
    gort__g_set(g, GORT_G_RUNNABLE);
    if (GORT_LIKELY(m && m->p)) {
        gort__g_prefetch_arg(g);
        gort__local_put_next(m->p, g);
    } else {
        gort__queue_put_woken((struct gort__glist){g, g, 1});
        gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
        gort__idle_wake();
    }
}

/* Goroutines go to m's P as `put` does it, those without a P to the global queue, plain threads wake. */
static GORT_ALWAYS_INLINE void ready_each(struct gort__p *p, struct gort__glist list,
                                          void (*put)(struct gort__p *, struct gort__g *))
{
    struct gort__glist elsewhere = {0};
    struct gort__g *next;
    for (struct gort__g *g = list.first; g; g = next) {
        next = g->link;
        if (gort__load(&g->flags, RELAXED) & GORT_G_THREAD) {
            gort__m_wake(g->m);
            continue;
        }
        gort__g_set(g, GORT_G_RUNNABLE);
        if (p)
            put(p, g);
        else
            gort__glist_add(&elsewhere, g);
    }
    if (elsewhere.n)
        gort__queue_put_woken(elsewhere);
}

void gort__ready_list_no_wake(struct gort__m *m, struct gort__glist list)
{
    ready_each(m ? m->p : NULL, list, gort__local_put);
}

void gort__ready_list(struct gort__m *m, struct gort__glist list)
{
    gort__ready_list_no_wake(m, list);
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__idle_wake();
}

/* In the order in which they came: behind those in sched.woken, if there are some. A ring that overflows
 * would give its oldest away. */
void gort__ready_events_no_wake(struct gort__m *m, struct gort__glist list)
{
    struct gort__p *p = m ? m->p : NULL;
    if (p && (gort__load(&gort__sched.woken_n, RELAXED) || !gort__local_put_woken_fits(p, list.n)))
        p = NULL;
    ready_each(p, list, gort__local_put_woken);
}

void gort__ready_events(struct gort__m *m, struct gort__glist list)
{
    gort__ready_events_no_wake(m, list);
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__idle_wake();
}

/* SPDX-License-Identifier: MIT */
/*
 * ready.c - makes waiting goroutines runnable, each exactly once a park (park.c).
 *
 * Why: what a goroutine wakes runs next on its P, while the line of the cache that they share is still there; many at
 * once go to the tail, and what fds and timers wake goes to a ring of its own (turn.c).
 * Threads: any, inside.
 */
#include "base/fatal.h"
#include "sched/core/core.h"

/* g has one of the two flags. True: it is a plain thread, which is awake now. */
static GORT_NOINLINE bool ready_special(struct gort__g *g)
{
    if (gort__load(&g->flags, RELAXED) & GORT_G_THREAD) {
        gort__note_wake(g->m);
        return true;
    }
    gort__latency_begin(g);
    return false;
}

void gort__ready(struct gort__m *m, struct gort__g *g)
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.fuzz, RELAXED)) && m)
        gort__fuzz_point(m);
    if (GORT_UNLIKELY(gort__load(&g->flags, RELAXED) & (GORT_G_THREAD | GORT_G_TRACKED)) && ready_special(g))
        return;
    gort__g_set(g, GORT_G_RUNNABLE);
    if (GORT_LIKELY(m && m->p)) {
        gort__g_prefetch_arg(g);
        gort__local_put_next(m->p, g);
    } else {
        gort__queue_put_woken((struct gort__glist){g, g, 1});
        gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
        gort__wake_idle();
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
        if ((gort__load(&g->flags, RELAXED) & (GORT_G_THREAD | GORT_G_TRACKED)) && ready_special(g))
            continue;
        gort__g_set(g, GORT_G_RUNNABLE);
        if (p)
            put(p, g);
        else
            gort__runq_list_add(&elsewhere, g);
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
    gort__wake_idle();
}

/* In the order in which they came: behind those in sched.woken, if there are some. A ring that overflows
 * would give its oldest away. */
void gort__ready_events_no_wake(struct gort__m *m, struct gort__glist list)
{
    struct gort__p *p = m ? m->p : NULL;
    if (p && (gort__load(&gort__sched.events.n, RELAXED) || !gort__local_put_woken_fits(p, list.n)))
        p = NULL;
    ready_each(p, list, gort__local_put_woken);
}

void gort__ready_events(struct gort__m *m, struct gort__glist list)
{
    gort__ready_events_no_wake(m, list);
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__wake_idle();
}

/* SPDX-License-Identifier: MIT */
/*
 * local.c - a P's own queues: its ring, the goroutine that is to run next, and the ring of woken ones.
 *
 * Why: runq.c knows one ring; here is what a P does with its two, and where goroutines go that do not fit: to
 * the global queue (queue.c).
 * Threads: by the M that holds the P; `_locked` functions with sched.lock held.
 */
#include "base/fatal.h"
#include "sched/core/core.h"

void gort__local_drain_locked(struct gort__p *p)
{
    struct gort__g *g;
    while ((g = gort__runq_get(&p->events)))
        gort__queue_put_woken_locked(g);
    while ((g = gort__runq_get_next(&p->runq)) || (g = gort__runq_get(&p->runq)))
        gort__queue_put_locked(g);
}

void gort__local_put(struct gort__p *p, struct gort__g *g)
{
    struct gort__glist overflow;
    gort__runq_put(&p->runq, g, &overflow);
    if (GORT_UNLIKELY(overflow.n))
        gort__queue_put_overflow(p, overflow);
}

bool gort__local_put_woken_fits(struct gort__p *p, uint32_t n)
{
    return gort__runq_length(&p->events) + n <= GORT_RUNQ_SIZE;
}

void gort__local_put_woken(struct gort__p *p, struct gort__g *g)
{
    struct gort__glist overflow;
    gort__p_mode_on(p, GORT_MODE_EVENTS);
    gort__runq_put(&p->events, g, &overflow);
    if (GORT_UNLIKELY(overflow.n))
        gort__queue_put_woken(overflow);
}

void gort__local_put_next(struct gort__p *p, struct gort__g *g)
{
    if (gort__sched_alone()) {
        struct gort__g *old = gort__runq_put_next_alone(&p->runq, g);
        if (old)
            gort__local_put(p, old);
        gort__wake_note_work();
        return;
    }
    struct gort__g *old = gort__runq_put_next(&p->runq, g);
    if (old) {
        gort__local_put(p, old);
        gort__fence(SEQ_CST); /* pairs with idle.c: it came after the exchange */
    }
    gort__wake_idle();
}

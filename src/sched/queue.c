/* SPDX-License-Identifier: MIT */
/*
 * queue.c - the global run queue, and putting goroutines into a P's own.
 *
 * Why: what does not fit a P's ring, what plain threads start, and what loses its P waits in one
 * list under the scheduler's lock. Takers take their share at once, so the lock is rarely taken.
 * Invariants: (1) sched.queued is the length of sched.queue; (2) everything in it is runnable.
 * Threads: any; `_locked` functions with sched.lock held.
 */
#include "base/fatal.h"
#include "sched/sched.h"

void gort__queue_put_list_locked(struct gort__glist list)
{
    struct gort__sched *s = &gort__sched;
    if (s->queue.n)
        s->queue.last->link = list.first;
    else
        s->queue.first = list.first;
    s->queue.last = list.last;
    s->queue.n += list.n;
    gort__store(&s->queued, s->queue.n, RELEASE); /* pairs with the looks at queued in find.c */
}

void gort__queue_put_locked(struct gort__g *g)
{
    g->link = NULL;
    gort__queue_put_list_locked((struct gort__glist){g, g, 1});
}

void gort__queue_put(struct gort__g *g)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__queue_put_locked(g);
    gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
}

static struct gort__g *pop_locked(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *g = s->queue.first;
    if (g) {
        s->queue.first = g->link;
        s->queue.n--;
    }
    return g;
}

struct gort__g *gort__queue_take(struct gort__p *p, uint32_t most)
{
    struct gort__sched *s = &gort__sched;
    struct gort__glist ignored;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    /* A fair share for each P, and never more than half a ring, which always has room: the caller's
     * own queue is empty, or it takes one. */
    uint32_t n = s->queue.n / (uint32_t)s->procs + 1;
    if (n > s->queue.n)
        n = s->queue.n;
    if (n > GORT_RUNQ_SIZE / 2)
        n = GORT_RUNQ_SIZE / 2;
    if (n > most)
        n = most;
    struct gort__g *first = pop_locked();
    for (uint32_t i = 1; first && i < n; i++)
        gort__runq_put(&p->runq, pop_locked(), &ignored);
    gort__store(&s->queued, s->queue.n, RELAXED);
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    return first;
}

static GORT_NOINLINE void put_overflow(struct gort__glist list)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__queue_put_list_locked(list);
    gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
}

void gort__p_put(struct gort__p *p, struct gort__g *g)
{
    struct gort__glist overflow;
    gort__runq_put(&p->runq, g, &overflow);
    if (GORT_UNLIKELY(overflow.n))
        put_overflow(overflow);
}

void gort__p_put_next(struct gort__p *p, struct gort__g *g)
{
    if (gort__alone()) {
        struct gort__g *old = gort__runq_put_next_alone(&p->runq, g);
        if (old)
            gort__p_put(p, old);
        return;
    }
    struct gort__g *old = gort__runq_put_next(&p->runq, g);
    if (old)
        gort__p_put(p, old);
    gort__wake_if_idle();
}

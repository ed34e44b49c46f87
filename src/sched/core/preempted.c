/* SPDX-License-Identifier: MIT */
/*
 * preempted.c - the line of preempted goroutines, whose threads wait with them for a P.
 *
 * Why: a goroutine that was stopped in the middle of user code stays on its thread: whoever picks it here hands its P to
 * that thread (handoff.c).
 * Threads: any; `_locked` functions with sched.lock held.
 */
#include "base/fatal.h"
#include "sched/core/core.h"

void gort__preempted_put_locked(struct gort__g *g, enum gort__place place)
{
    struct gort__sched *s = &gort__sched;
    g->link = NULL;
    g->m->handoff.cpu = gort__os_cpu();
    if (!s->preempted.list.first) {
        s->preempted.list.first = s->preempted.list.last = g;
    } else if (place == GORT_PLACE_FIRST) {
        g->link = s->preempted.list.first;
        s->preempted.list.first = g;
    } else if (place == GORT_PLACE_SECOND && s->preempted.list.first->link) {
        g->link = s->preempted.list.first->link;
        s->preempted.list.first->link = g;
    } else {
        s->preempted.list.last->link = g;
        s->preempted.list.last = g;
    }
    s->preempted.list.n++;
    gort__store(&s->preempted.n, s->preempted.list.n,
                RELEASE); /* pairs with the looks at preempted_n in find.c */
    gort__tight_update_locked();
}

/* The one before the first of the next few whose thread sleeps on this CPU (m.c says why), or for which
 * others may wait. NULL: the first is to go, because it is one, there is none, or it was passed often
 * enough. */
static struct gort__g *before_near_locked(void)
{
    struct gort__sched *s = &gort__sched;
    int cpu = gort__os_cpu();
    struct gort__g *before = NULL, *g = s->preempted.list.first;
    if (s->preempted.boost_n || s->preempted.passed >= GORT_M_NEAR)
        return NULL;
    for (int i = 0; g && i < GORT_M_NEAR; i++, before = g, g = g->link)
        if (g->m->handoff.cpu == cpu || g->m->handoff.boosted)
            return before;
    return NULL;
}

static struct gort__g *preempted_pop_locked(struct gort__g *before)
{
    struct gort__sched *s = &gort__sched;
    if (!s->preempted.list.first)
        return NULL;
    struct gort__g *g = before ? before->link : s->preempted.list.first;
    if (before)
        before->link = g->link;
    else
        s->preempted.list.first = g->link;
    if (s->preempted.list.last == g)
        s->preempted.list.last = before;
    s->preempted.passed = before ? s->preempted.passed + 1 : 0;
    s->preempted.list.n--;
    if (gort__load(&s->preempted.boost_n, RELAXED))
        gort__store(&s->preempted.boost_n, s->preempted.boost_n - 1, RELAXED);
    gort__store(&s->preempted.n, s->preempted.list.n,
                RELEASE); /* pairs with the looks at preempted_n in find.c */
    gort__tight_update_locked();
    return g;
}

struct gort__g *gort__preempted_pop_locked(void)
{
    return preempted_pop_locked(before_near_locked());
}

struct gort__g *gort__preempted_take_first(void)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    struct gort__g *g = preempted_pop_locked(NULL);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    return g;
}

struct gort__g *gort__preempted_take(void)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    struct gort__g *g = gort__preempted_pop_locked();
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    return g;
}

/* SPDX-License-Identifier: MIT */
/*
 * ready.h - waking: a goroutine that waits becomes runnable.
 */
#ifndef GORT_SRC_SCHED_CORE_READY_H
#define GORT_SRC_SCHED_CORE_READY_H

#include "sched/core/wake.h"

/* Makes a waiting goroutine runnable: it runs next on this P. Exactly once a park. Inside; m NULL: the
 * supervisor, or a thread outside of runs. */
void gort__ready(struct gort__m *m, struct gort__g *g);

/* The same without a call, for the only P and if nobody is to run next. False: gort__ready is to be called. m
 * is not NULL, and schedules are not fuzzed. */
static inline bool gort__ready_at_once(struct gort__m *m, struct gort__g *g)
{
    struct gort__p *p = m->p;
    if (GORT_UNLIKELY(!p || !gort__sched_alone() || gort__load(&p->runq.next, RELAXED) ||
                      (gort__load(&g->flags, RELAXED) & (GORT_G_THREAD | GORT_G_TRACKED))))
        return false;
    gort__g_set(g, GORT_G_RUNNABLE);
    gort__g_prefetch_arg(g);
    gort__runq_put_next_alone(&p->runq, g);
    gort__wake_note_work();
    return true;
}

/* The same as ready for many, linked: they go to the tail, and other Ps are told. */
void gort__ready_list(struct gort__m *m, struct gort__glist list);
/* The same without waking an M for them: see wake_defer.c. */
void gort__ready_list_no_wake(struct gort__m *m, struct gort__glist list);
/* The same for those that fds or timers wake: they go before all that wait for their turn (turn.c). */
void gort__ready_events(struct gort__m *m, struct gort__glist list);
void gort__ready_events_no_wake(struct gort__m *m, struct gort__glist list); /* see wake_defer.c */

#endif

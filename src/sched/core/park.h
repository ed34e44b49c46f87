/* SPDX-License-Identifier: MIT */
/*
 * park.h - waiting: the calling goroutine leaves its M, which runs another one.
 */
#ifndef GORT_SRC_SCHED_CORE_PARK_H
#define GORT_SRC_SCHED_CORE_PARK_H

#include "sched/core/sched.h"

/*
 * The calling goroutine (or plain thread) waits until gort__ready(g) is called for it. commit runs
 * once it is off its stack: that is the place to unlock what its waker needs. Returns the M it is
 * on now. Inside, no lock held but what commit releases.
 */
struct gort__m *gort__park(gort__commit commit, void *arg, enum gort__reason reason);

/* To the next G, or to g0. */
struct gort__m *gort__schedule_switch_away(struct gort__m *m, struct gort__g *g);

/*
 * The same for a goroutine, and a commit that always returns true and is known here. With one P it need not
 * wait until the stack is left: whoever readies g meanwhile, a plain thread, only queues it, and nobody but
 * this M, which holds the P and is inside, resumes what is queued. It may even pick g itself.
 */
static GORT_ALWAYS_INLINE struct gort__m *gort__park_early(struct gort__m *m, gort__commit commit, void *arg,
                                                           enum gort__reason reason)
{
    struct gort__g *g = m->g;
    if (GORT_UNLIKELY(!gort__sched_alone() || (g->flags & GORT_G_CHECKED)))
        return gort__park(commit, arg, reason);
    gort__store(&g->reason, (uint8_t)reason, RELAXED);
    gort__g_set(g, GORT_G_WAITING);
    commit(g, arg);
    return gort__schedule_switch_away(m, g);
}

#endif

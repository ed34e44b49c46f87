/* SPDX-License-Identifier: MIT */
/*
 * sleep.c - sleeping: a wait that nobody but the clock (or a context) ends.
 * Threads: any; outside runs the thread itself sleeps.
 */
#include <errno.h>

#include <gort/time.h>

#include "sched/core/scope.h"
#include "sched/wait/wait.h"

/* Until a time that has not come. */
static int sleep_until(struct gort__m *m, int64_t deadline)
{
    bool context = m->g->flags & GORT_G_CONTEXT;
    int err = context ? gort__scope_refuses(m->g->scope) : 0;
    if (!err) /* for ever is a time as well: who sleeps so long waits for the clock, not for a peer that never comes */
        err = gort__wait_alone(&m, deadline < GORT_FOREVER ? deadline : GORT_FOREVER - 1, GORT_WAIT_SLEEP);
    gort__leave(m);
    /* The end of the sleep, or the earlier one of the context. */
    return err == -ETIMEDOUT && (!context || gort__os_now() >= deadline) ? 0 : err;
}

int gort_sleep_until(int64_t deadline)
{
    struct gort__m *m = gort__enter();
    if (m && deadline > gort__os_now())
        return sleep_until(m, deadline);
    if (m)
        gort__leave(m);
    else
        for (int64_t now; (now = gort__os_now()) < deadline;)
            gort__os_nap(deadline - now);
    return 0;
}

int gort_sleep(int64_t ns)
{
    if (ns <= 0)
        return 0;
    struct gort__m *m = gort__enter();
    return m ? sleep_until(m, gort_in(ns)) : gort_sleep_until(gort_in(ns));
}

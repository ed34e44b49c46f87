/* SPDX-License-Identifier: MIT */
/*
 * sleep.c - sleeping: a wait that nobody but the clock (or a context) ends.
 * Threads: any; outside runs the thread itself sleeps.
 */
#include <errno.h>

#include <gort/time.h>

#include "sched/wait.h"

int gort_sleep_until(int64_t deadline)
{
    struct gort__m *m = gort__enter();
    if (!m) {
        for (int64_t now; (now = gort__os_now()) < deadline;)
            gort__os_nap(deadline - now);
        return 0;
    }
    int err = deadline <= gort__os_now() ? -ETIMEDOUT : gort__wait_refused(m, deadline, false, "gort_sleep");
    if (!err) /* for ever is a time as well: who sleeps so long waits for the clock, not for a peer that never comes */
        err = gort__wait_alone(&m, deadline < GORT_FOREVER ? deadline : GORT_FOREVER - 1, GORT_WAIT_SLEEP);
    gort__leave(m);
    /* The end of the sleep, or the earlier one of the context. */
    return err == -ETIMEDOUT && gort__os_now() >= deadline ? 0 : err;
}

int gort_sleep(int64_t ns)
{
    return ns <= 0 ? 0 : gort_sleep_until(gort_in(ns));
}

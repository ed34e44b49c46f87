/* SPDX-License-Identifier: MIT */
/*
 * timer_calls.c - how calls of timers end, and what they know of themselves.
 * Covers: src/time/timer.c
 */
#include "waiting.h"

static atomic_long ends;
static atomic_int waited;
static gort_timer *subject;

static void end_by_exit(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ends, 1);
    gort_exit();
}

/* gort_exit ends a call like a return. */
TEST_GO(a_call_that_exits, .procs = "1,2", .fuzz = true)
{
    gort_timer *t = gort_timer_new(0, 100 * GORT_US, end_by_exit, NULL);
    await(&ends, 5);
    CHECK_EQ(gort_timer_stop_wait(t), 0);
    gort_timer_free(t);
    settle();
}

static void wait_in_the_first(void *unused)
{
    (void)unused;
    if (atomic_fetch_add(&ends, 1) == 0) {
        gort_timer_reset(subject, 0, 0);
        await(&ends, 2);
        atomic_store(&waited, gort_timer_stop_wait(subject));
    }
    atomic_fetch_add(&ends, 1);
}

/* Two calls at once, and the older one asks. */
TEST_GO(every_call_knows_that_it_is_one, .procs = "1,2", .fuzz = true)
{
    subject = gort_timer_new(3600 * GORT_SEC, 0, wait_in_the_first, NULL);
    gort_timer_reset(subject, 0, 0);
    await(&ends, 4);
    CHECK_EQ(waited, -EDEADLK);
    CHECK_EQ(gort_timer_stop_wait(subject), 0);
    gort_timer_free(subject);
    settle();
}

/* SPDX-License-Identifier: MIT */
/*
 * timer_reset.c - a timer is pushed into the future again and again, as an idle connection's.
 */
#include "bench.h"

static void never(void *unused)
{
    (void)unused;
    bench_die("a timer that was reset was called", 0);
}

static double work(long n)
{
    gort_timer *t = must_have(gort_timer_new(3600 * GORT_SEC, 0, never, NULL));
    for (long i = 0; i < n; i++)
        gort_timer_reset(t, 3600 * GORT_SEC, 0);
    gort_timer_free(t);
    return 0;
}

BENCH_MAIN("timer_reset", 100, work)

/* SPDX-License-Identifier: MIT */
/*
 * timer_startstop.c - a timer is started and stopped before its time: what nearly all timers do.
 */
#include "bench.h"

static void never(void *unused)
{
    (void)unused;
    bench_die("a stopped timer was called", 0);
}

static double work(long n)
{
    for (long i = 0; i < n; i++) {
        gort_timer *t = must_have(gort_timer_new(3600 * GORT_SEC, 0, never, NULL));
        gort_timer_stop(t);
        gort_timer_free(t);
    }
    return 0;
}

BENCH_MAIN("timer_startstop", 100, work)

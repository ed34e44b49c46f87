/* SPDX-License-Identifier: MIT */
/*
 * timer_resets.c - a million timers are pending, and 100,000 of them a second are reset: CPU time a reset.
 *
 * Why: that is a server with a million connections that each have a time-out. They come in bursts, ten a second, so
 * that resets are measured and not the sleeps in between: one of these takes a bare C program 15 to 50 us, and with 1,000 of
 * them a second that alone is a quarter of what Go needs for all of it (docs/design/0009).
 */
#include "bench.h"

#include <sys/resource.h>

enum { TIMERS = 1000000, BURST = 10000, PAUSE_MS = 100 };

static gort_timer *timers[TIMERS];
static uint32_t at;

static void never(void *unused)
{
    (void)unused;
    bench_die("a timer that was reset was called", 0);
}

static double cpu_ns(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e9 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e3;
}

static double work(long n)
{
    for (long i = 0; !timers[TIMERS - 1] && i < TIMERS; i++)
        timers[i] = must_have(gort_timer_new(600 * GORT_SEC, 0, never, NULL));
    double cpu = cpu_ns();
    for (long i = 0; i < n; i += BURST) {
        for (int k = 0; k < BURST; k++) {
            at = at * 1664525 + 1013904223;
            gort_timer_reset(timers[(at >> 8) % TIMERS], 600 * GORT_SEC, 0);
        }
        must(gort_sleep(PAUSE_MS * GORT_MS));
    }
    return (cpu_ns() - cpu) / (double)n;
}

BENCH_MAIN("timer_resets", 10000, work)

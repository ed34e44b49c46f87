/* SPDX-License-Identifier: MIT */
/*
 * wakeup.c - how long a goroutine that sleeps in a receive takes to run again when another P is
 * idle and its thread asleep; the figure is the median (p50) over all wake-ups.
 *
 * Why: throughput is easy to buy with latency. This is the price of "nobody spins": a futex wake, a
 * thread that comes out of its sleep, and a steal from a P that is busy.
 *
 * The waker computes before each send for long enough that the other thread has given up looking
 * for work, and keeps computing after it, so that the woken goroutine can only run on the other P.
 */
#include "bench.h"

#include <stdatomic.h>

enum { PAUSE = 300 * 1000, GIVE_UP = 100 * 1000 * 1000 };
/* GIVE_UP: never seen where two CPUs are free; then the waker lets go of its P. */

static _Atomic int64_t latency;

static void sleeper(void *arg)
{
    gort_chan *ch = arg;
    int64_t stamp;
    while (must(gort_chan_recv(ch, &stamp)) == 1)
        atomic_store(&latency, bench_now() - stamp);
    gort_chan_unref(ch);
}

static double work(long n)
{
    double *seen = must_have(calloc((size_t)n, sizeof *seen));
    gort_chan *ch = must_have(gort_chan_new(sizeof(int64_t), 0));
    must(gort_go(sleeper, ch));
    for (long i = 0; i < n; i++) {
        for (int64_t start = bench_now(); bench_now() - start < PAUSE;)
            continue;
        atomic_store(&latency, 0);
        int64_t stamp = bench_now();
        must(gort_chan_send(ch, &stamp));
        while (atomic_load(&latency) == 0) {
            if (bench_now() - stamp > GIVE_UP)
                must(gort_yield());
        }
        seen[i] = (double)atomic_load(&latency);
    }
    must(gort_chan_close(ch));
    bench_sort(seen, n);
    double p50 = seen[n / 2];
    free(seen);
    return p50;
}

BENCH_MAIN("wakeup", 100, work)

/* SPDX-License-Identifier: MIT */
/*
 * world_stop.c - stopping the world and starting it again, beside as many goroutines that compute as there are Ps; the
 * median of the stops alone.
 */
#include "bench.h"

static volatile bool stop;

static void hog(void *arg)
{
    while (!stop)
        ;
    gort_wg_done(arg);
}

static double work(long n)
{
    gort_wg wg = {0};
    int hogs = gort_maxprocs(0);
    double *took = must_have(malloc((size_t)n * sizeof *took));
    stop = false;
    gort_wg_add(&wg, hogs);
    for (int i = 0; i < hogs; i++)
        must(gort_go(hog, &wg));
    for (long i = 0; i < n; i++) {
        must(gort_sleep(100 * GORT_US));
        int64_t from = bench_now();
        must(gort_world_stop());
        took[i] = (double)(bench_now() - from);
        must(gort_world_start());
    }
    stop = true;
    must(gort_wg_wait(&wg));
    bench_sort(took, n);
    double median = took[n / 2];
    free(took);
    return median;
}

BENCH_MAIN("world_stop", 20, work)

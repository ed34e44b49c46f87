/* SPDX-License-Identifier: MIT */
/*
 * sleep50us.c - how long a sleep of 50 us takes when nothing else goes on; the median (p50).
 */
#include "bench.h"

static double work(long n)
{
    double *took = must_have(calloc((size_t)n, sizeof *took));
    for (long i = 0; i < n; i++) {
        int64_t from = bench_now();
        must(gort_sleep(50 * GORT_US));
        took[i] = (double)(bench_now() - from);
    }
    bench_sort(took, n);
    double p50 = took[n / 2];
    free(took);
    return p50;
}

BENCH_MAIN("sleep50us", 10, work)

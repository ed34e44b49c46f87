/* SPDX-License-Identifier: MIT */
/*
 * yield2.c - two goroutines that do nothing but yield to each other; one operation is one yield.
 *
 * Why: the bare cost of a trip through the scheduler: queue, pick, switch. Nothing else can be
 * faster than this.
 */
#include "bench.h"

static gort_wg wg;

static void yielder(void *arg)
{
    long n = (long)(intptr_t)arg;
    for (long i = 0; i < n; i++)
        must(gort_yield());
    gort_wg_done(&wg);
}

static double work(long n)
{
    gort_wg_add(&wg, 2);
    must(gort_go(yielder, (void *)(intptr_t)(n / 2)));
    must(gort_go(yielder, (void *)(intptr_t)(n / 2)));
    must(gort_wg_wait(&wg));
    return 0;
}

BENCH_MAIN("yield2", 2, work)

/* SPDX-License-Identifier: MIT */
/*
 * parked_million.c - the first million goroutines of a process: start, run, park; one operation is one goroutine.
 *
 * Why: this is what a server pays for a flood of connections. Nothing is reused, so it is page faults more than
 * anything; the first million counts, later calls tell that figure again.
 */
#include "bench.h"

enum { MILLION = 1000000 };

static gort_wg arrived, gate, left;

static void child(void *unused)
{
    (void)unused;
    gort_wg_done(&arrived);
    gort_wg_wait(&gate);
    gort_wg_done(&left);
}

static double work(long n)
{
    static double first;
    (void)n;
    if (first > 0)
        return first;
    gort_wg_add(&gate, 1);
    gort_wg_add(&arrived, MILLION);
    gort_wg_add(&left, MILLION);
    int64_t start = bench_now();
    for (int i = 0; i < MILLION; i++)
        must(gort_go(child, NULL));
    must(gort_wg_wait(&arrived));
    first = (double)(bench_now() - start) / MILLION;
    gort_wg_done(&gate);
    must(gort_wg_wait(&left));
    return first;
}

BENCH_MAIN("parked_million", MILLION, work)

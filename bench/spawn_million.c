/* SPDX-License-Identifier: MIT */
/*
 * spawn_million.c - start a million goroutines, then wait for all; one operation is one goroutine.
 *
 * Why: what is not reused at once has to come from somewhere. This shows what a waiting goroutine
 * costs in memory, and at 2 procs how well one spawner feeds another P.
 */
#include "bench.h"

enum { MILLION = 1000000 };

static void child(void *arg)
{
    gort_wg_done(arg);
}

static double work(long n)
{
    gort_wg wg = {0};
    for (long done = 0; done < n; done += MILLION) {
        gort_wg_add(&wg, MILLION);
        for (int i = 0; i < MILLION; i++)
            must(gort_go(child, &wg));
        must(gort_wg_wait(&wg));
    }
    return 0;
}

BENCH_MAIN("spawn_million", MILLION, work)

/* SPDX-License-Identifier: MIT */
/*
 * spawn_batch.c - start goroutines that end at once, 1000 at a time, and wait for each batch; one
 * operation is one goroutine.
 *
 * Why: programs start a goroutine for a small piece of work and expect it to cost next to nothing.
 * A thousand overflow the local queue of 256, so the way through the global queue is in the figure.
 */
#include "bench.h"

enum { BATCH = 1000 };

static void child(void *arg)
{
    gort_wg_done(arg);
}

static double work(long n)
{
    gort_wg wg = {0};
    for (long done = 0; done < n; done += BATCH) {
        gort_wg_add(&wg, BATCH);
        for (int i = 0; i < BATCH; i++)
            must(gort_go(child, &wg));
        must(gort_wg_wait(&wg));
    }
    return 0;
}

BENCH_MAIN("spawn_batch", BATCH, work)

/* SPDX-License-Identifier: MIT */
/*
 * pipeline_sha.c - SHA3-256 of 200 chunks of 1 MiB: a reader, two workers and an ordered printer as
 * goroutines, connected by channels; one operation is one chunk.
 *
 * Why: at two Ps two of the four compute without a pause, and the others have a little to do for each chunk.
 * Threads that the kernel schedules are the measure: pthreads/pipeline_sha.c is the same with mutexes and
 * condition variables.
 */
#include "bench.h"
#include "pipeline_sha.h"

static void put(struct queue *q, struct chunk *c)
{
    must(gort_chan_send((gort_chan *)q, &c));
}

static struct chunk *take(struct queue *q)
{
    struct chunk *c;
    must(gort_chan_recv((gort_chan *)q, &c));
    return c;
}

static void reads(void *wg)
{
    reader();
    gort_wg_done(wg);
}

static void works(void *wg)
{
    worker();
    gort_wg_done(wg);
}

static void prints(void *wg)
{
    printer();
    gort_wg_done(wg);
}

static struct queue *new_queue(void)
{
    return must_have(gort_chan_new(sizeof(struct chunk *), CHUNKS));
}

static double work(long n)
{
    gort_wg wg = {0};
    if (!source) {
        todo = new_queue();
        done = new_queue();
        empty = new_queue();
        pipeline_open();
    }
    wanted = n;
    gort_wg_add(&wg, WORKERS + 2);
    must(gort_go(reads, &wg));
    for (int i = 0; i < WORKERS; i++)
        must(gort_go(works, &wg));
    must(gort_go(prints, &wg));
    must(gort_wg_wait(&wg));
    return 0;
}

BENCH_MAIN("pipeline_sha", 200, work)

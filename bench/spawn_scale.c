/* SPDX-License-Identifier: MIT */
/*
 * spawn_scale.c - as many spawners as procs, each starting batches of 1000 and waiting for them;
 * one operation is one goroutine, and the total is the same however many spawners share it.
 *
 * Why: spawning must scale. The figure that counts is the time at 2 procs divided by the time at 1
 * proc: 0.5 would be perfect, 1 means that the Ps only get into each other's way (a shared list, a
 * lock, a line that bounces).
 */
#include "bench.h"

enum { BATCH = 1000 };

struct spawner {
    gort_wg *all;
    long n;
};

static void child(void *arg)
{
    gort_wg_done(arg);
}

static void spawner(void *arg)
{
    const struct spawner *s = arg;
    gort_wg wg = {0};
    for (long done = 0; done < s->n; done += BATCH) {
        gort_wg_add(&wg, BATCH);
        for (int i = 0; i < BATCH; i++)
            must(gort_go(child, &wg));
        must(gort_wg_wait(&wg));
    }
    gort_wg_done(s->all);
}

static double work(long n)
{
    gort_wg wg = {0};
    int spawners = gort_maxprocs(0);
    struct spawner s = {&wg, n / spawners};
    gort_wg_add(&wg, spawners);
    for (int i = 0; i < spawners; i++)
        must(gort_go(spawner, &s));
    must(gort_wg_wait(&wg));
    return 0;
}

BENCH_MAIN("spawn_scale", BATCH * 64, work)

/* SPDX-License-Identifier: MIT */
/*
 * mutex_8.c - eight goroutines lock one mutex, count and unlock; one operation is one lock and
 * unlock.
 *
 * Why: contention. At 1 proc nobody is ever in the way; at 2 procs it shows how well spinning,
 * overtaking and parking are balanced.
 */
#include "bench.h"

enum { GOROUTINES = 8 };

static gort_mutex mutex;
static gort_wg wg;
static volatile int64_t counter;

static void locker(void *arg)
{
    long n = (long)(intptr_t)arg;
    for (long i = 0; i < n; i++) {
        gort_mutex_lock(&mutex);
        counter++;
        gort_mutex_unlock(&mutex);
    }
    gort_wg_done(&wg);
}

static double work(long n)
{
    counter = 0;
    gort_wg_add(&wg, GOROUTINES);
    for (int i = 0; i < GOROUTINES; i++)
        must(gort_go(locker, (void *)(intptr_t)(n / GOROUTINES)));
    must(gort_wg_wait(&wg));
    if (counter != n)
        bench_die("counts lost", 0);
    return 0;
}

BENCH_MAIN("mutex_8", GOROUTINES * 100, work)

/* SPDX-License-Identifier: MIT */
/*
 * hogs.h - four goroutines that compute without end, and one that sleeps for a millisecond again and again: how late it wakes.
 */
#ifndef BENCH_HOGS_H
#define BENCH_HOGS_H

#include "bench.h"

enum { HOGS = 4 };

static volatile bool hogs_stop;

static inline void hogs_hog(void *arg)
{
    while (!hogs_stop)
        ;
    gort_wg_done(arg);
}

/* Sleeps for a millisecond: how late it was. */
static inline double hogs_sleep(void)
{
    int64_t due = bench_now() + 1000000;
    must(gort_sleep(1000000));
    return (double)(bench_now() - due);
}

/* The lateness of n sleeps that `part` of all are below. */
static inline double hogs_lateness(long n, double part)
{
    gort_wg wg = {0};
    double *late = must_have(malloc((size_t)n * sizeof *late));
    hogs_stop = false;
    gort_wg_add(&wg, HOGS);
    for (int i = 0; i < HOGS; i++)
        must(gort_go(hogs_hog, &wg));
    for (long i = 0; i < n; i++)
        late[i] = hogs_sleep();
    hogs_stop = true;
    must(gort_wg_wait(&wg));
    bench_sort(late, n);
    double result = late[(long)((double)n * part)];
    free(late);
    return result;
}

#endif

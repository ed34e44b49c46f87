/* SPDX-License-Identifier: MIT */
/*
 * sleepers.h - 100,000 goroutines that each sleep once, for half a second to one and a half: how late they wake, and
 * what they cost. The rows sleepers_p50, sleepers_p99 and sleepers_cpu are one each of its figures.
 */
#ifndef BENCH_SLEEPERS_H
#define BENCH_SLEEPERS_H

#include "bench.h"

#include <sys/resource.h>

enum { SLEEPERS = 100000 };

static double lateness[SLEEPERS]; /* ns; each sleeper writes its own */
static gort_wg sleepers_wg;

static inline double cpu_ns(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e9 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e3;
}

/* 0.5 to 1.5 s, the same on both sides. */
static inline int64_t sleep_of(uint64_t i)
{
    return 500000000 + (int64_t)((i * 2654435761u) % 1000000000u);
}

static inline void sleeper(void *arg)
{
    uintptr_t i = (uintptr_t)arg;
    int64_t length = sleep_of(i), from = bench_now();
    must(gort_sleep(length));
    lateness[i] = (double)(bench_now() - from - length);
    gort_wg_done(&sleepers_wg);
}

/* One batch; the CPU time of one sleeper. lateness is sorted. */
static inline double sleepers(void)
{
    double cpu = cpu_ns();
    gort_wg_add(&sleepers_wg, SLEEPERS);
    for (uintptr_t i = 0; i < SLEEPERS; i++)
        must(gort_go(sleeper, (void *)i));
    must(gort_wg_wait(&sleepers_wg));
    cpu = cpu_ns() - cpu;
    bench_sort(lateness, SLEEPERS);
    return cpu / SLEEPERS;
}

#endif

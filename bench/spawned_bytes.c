/* SPDX-License-Identifier: MIT */
/*
 * spawned_bytes.c - memory of a goroutine that was started and has not run, of a million: resident pages and the kernel's
 * page tables.
 *
 * Its figure is bytes, not nanoseconds. One P: nobody runs while the main goroutine starts the others.
 */
#include "bench.h"
#include "bench_memory.h"

enum { MILLION = 1000000 };

static void child(void *arg)
{
    gort_wg_done(arg);
}

static double work(long n)
{
    static double first;
    gort_wg wg = {0};
    (void)n;
    if (first > 0)
        return first;
    gort_wg_add(&wg, MILLION);
    double before = bench_memory();
    for (int i = 0; i < MILLION; i++)
        must(gort_go(child, &wg));
    first = (bench_memory() - before) / MILLION;
    must(gort_wg_wait(&wg));
    return first;
}

BENCH_MAIN("spawned_bytes", MILLION, work)

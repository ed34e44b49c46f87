/* SPDX-License-Identifier: MIT */
/*
 * parked_bytes.c - memory of a parked goroutine, of a million: resident pages and the kernel's page tables.
 *
 * Its figure is bytes, not nanoseconds.
 */
#include "bench.h"
#include "bench_memory.h"

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
    double before = bench_memory();
    for (int i = 0; i < MILLION; i++)
        must(gort_go(child, NULL));
    must(gort_wg_wait(&arrived));
    first = (bench_memory() - before) / MILLION;
    gort_wg_done(&gate);
    must(gort_wg_wait(&left));
    return first;
}

BENCH_MAIN("parked_bytes", MILLION, work)

/* SPDX-License-Identifier: MIT */
/*
 * shares_1us_1ms.c - a pair of goroutines with 1 us of work a message beside a pair with 1 ms: how evenly
 * they share the CPU.
 *
 * The figure is no time: ns_per_op is 1000 times the larger share divided by the smaller one, 1000 is fair. A
 * share is the work that a pair has done in half a second; what its hand-offs cost is not counted.
 */
#include "pair.h"

static double work(long n)
{
    (void)n; /* always half a second */
    struct pair brief, lengthy;
    pair_stop = false;
    pair_start(&brief, 1, 0);
    pair_start(&lengthy, 1000, 0);
    must(gort_sleep(500 * GORT_MS));
    pair_stop = true;
    pair_wait(&brief);
    pair_wait(&lengthy);
    double a = (double)brief.rounds + 1, b = (double)lengthy.rounds * 1000 + 1;
    return 1000 * (a > b ? a / b : b / a);
}

BENCH_MAIN("shares_1us_1ms", 1, work)

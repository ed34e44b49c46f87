/* SPDX-License-Identifier: MIT */
/*
 * sleepers_p99.c - how late 99 of 100 among 100,000 sleeping goroutines wake at most.
 */
#include "sleepers.h"

static double work(long n)
{
    (void)n; /* always one batch: it takes longer than a sample */
    sleepers();
    return lateness[SLEEPERS / 100 * 99];
}

BENCH_MAIN("sleepers_p99", SLEEPERS, work)

/* SPDX-License-Identifier: MIT */
/*
 * sleepers_p50.c - how late half of 100,000 sleeping goroutines wake at most.
 */
#include "sleepers.h"

static double work(long n)
{
    (void)n; /* always one batch: it takes longer than a sample */
    sleepers();
    return lateness[SLEEPERS / 2];
}

BENCH_MAIN("sleepers_p50", SLEEPERS, work)

/* SPDX-License-Identifier: MIT */
/*
 * sleepers_cpu.c - the CPU time of one of 100,000 goroutines that sleep once.
 */
#include "sleepers.h"

static double work(long n)
{
    (void)n; /* always one batch: it takes longer than a sample */
    return sleepers();
}

BENCH_MAIN("sleepers_cpu", SLEEPERS, work)

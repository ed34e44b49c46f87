/* SPDX-License-Identifier: MIT */
/*
 * blocked_announced.c - 50 goroutines in blocking reads, announced: how long until another one has run.
 */
#include "blocked.h"

static double work(long n)
{
    return blocked_rounds(n, true);
}

BENCH_MAIN("blocked_announced", 1, work)

/* SPDX-License-Identifier: MIT */
/*
 * blocked_unannounced.c - 50 goroutines in blocking reads of which nobody told the runtime: how long until another one has run.
 */
#include "blocked.h"

static double work(long n)
{
    return blocked_rounds(n, false);
}

BENCH_MAIN("blocked_unannounced", 1, work)

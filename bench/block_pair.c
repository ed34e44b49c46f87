/* SPDX-License-Identifier: MIT */
/*
 * block_pair.c - gort_block_enter and gort_block_leave around nothing: what it costs to announce a call.
 */
#include "bench.h"

static double work(long n)
{
    for (long i = 0; i < n; i++) {
        gort_block_enter();
        gort_block_leave();
    }
    return 0;
}

BENCH_MAIN("block_pair", 1000, work)

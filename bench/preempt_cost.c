/* SPDX-License-Identifier: MIT */
/*
 * preempt_cost.c - a goroutine that only computes, and nobody waits: what it loses because it could be interrupted.
 *
 * Its twin is itself with preemption switched off (targets.json).
 */
#include "bench.h"

static volatile uint64_t sink;

static double work(long n)
{
    uint64_t x = 1;
    for (long i = 0; i < n; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    sink = x;
    return 0;
}

BENCH_MAIN("preempt_cost", 100000, work)

/* SPDX-License-Identifier: MIT */
/*
 * hogs_p99.c - beside four hogs at one P, how late 99 of 100 sleeps of a millisecond end at most.
 */
#include "hogs.h"

static double work(long n)
{
    return hogs_lateness(n, 0.99);
}

BENCH_MAIN("hogs_p99", 100, work)

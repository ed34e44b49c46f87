/* SPDX-License-Identifier: MIT */
/*
 * hogs_p50.c - beside four hogs at one P, how late 50 of 100 sleeps of a millisecond end at most.
 */
#include "hogs.h"

static double work(long n)
{
    return hogs_lateness(n, 0.50);
}

BENCH_MAIN("hogs_p50", 100, work)

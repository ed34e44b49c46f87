/* SPDX-License-Identifier: MIT */
/*
 * mutex_uncontended.c - lock and unlock a mutex that nobody else wants; one operation is one pair.
 *
 * Why: most locks are free most of the time. Two atomic operations and two calls: there is no way
 * to be much faster than Go, and no excuse to be slower.
 */
#include "bench.h"

static gort_mutex mutex;
static volatile int64_t counter; /* so that the compiler leaves the critical section inside the loop */

static double work(long n)
{
    for (long i = 0; i < n; i++) {
        gort_mutex_lock(&mutex);
        counter++;
        gort_mutex_unlock(&mutex);
    }
    return 0;
}

BENCH_MAIN("mutex_uncontended", 1000, work)

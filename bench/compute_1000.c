/* SPDX-License-Identifier: MIT */
/*
 * compute_1000.c - 1,000 goroutines that compute for 50 ms of CPU time each, all started at once: the time of one, from the
 * start to the end of all, times the number of Ps.
 *
 * Back to back each would take 50 ms. Also says how many threads there were at most (a line on standard error).
 */
#include "bench.h"

#include <dirent.h>

enum { GOROUTINES = 1000, EACH_MS = 50 };

static void compute(void *arg)
{
    struct timespec t;
    for (int64_t from = -1, now = 0; now - from < EACH_MS * INT64_C(1000000);) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
        if (from < 0)
            from = now;
    }
    gort_wg_done(arg);
}

static int threads(void)
{
    int n = -2;
    DIR *d = opendir("/proc/self/task");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static double work(long n)
{
    static double result; /* once a process: it takes half a minute */
    gort_wg wg = {0};
    int most = 0;
    if (result > 0)
        return result;
    gort_wg_add(&wg, n);
    int64_t from = bench_now();
    for (long i = 0; i < n; i++)
        must(gort_go(compute, &wg));
    while (gort_wg_wait_until(&wg, gort_in(100 * GORT_MS)) != 0) {
        int now = threads();
        most = now > most ? now : most;
    }
    fprintf(stderr, "at most %d threads\n", most);
    result = (double)(bench_now() - from) * gort_maxprocs(0) / (double)n;
    return result;
}

BENCH_MAIN("compute_1000", GOROUTINES, work)

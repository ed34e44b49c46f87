/* SPDX-License-Identifier: MIT */
/*
 * 06-maxprocs.c - how many goroutines run at the same time.      cc 06-maxprocs.c -o 06-maxprocs -lgort
 *
 * The default is the number of CPUs that the process may use: its affinity mask and its container's
 * CPU limit. GORT_MAXPROCS in the environment or gort_config says otherwise, and gort_maxprocs
 * changes it at any time, under full load.
 */
#include <gort.h>
#include <stdio.h>

enum { PARTS = 32 };

static void compute(void *arg)
{
    volatile unsigned sum = 0; /* on the goroutine's own stack: cores do not fight over its cache line */
    for (unsigned i = 0; i < 4000000; i++)
        sum += i;
    *(unsigned *)arg = sum;
}

static double milliseconds(int procs)
{
    unsigned sums[PARTS] = {0};
    gort_wg wg = {0};
    gort_maxprocs(procs);
    int64_t from = gort_now();
    for (int i = 0; i < PARTS; i++)
        if (gort_wg_go(&wg, compute, &sums[i]) < 0)
            return -1;
    gort_wg_wait(&wg);
    return (double)(gort_now() - from) / GORT_MS;
}

static int start(void *arg)
{
    int cpus = gort_maxprocs(0); /* asks only */
    (void)arg;
    for (int n = 1; n <= cpus; n = n < cpus && 2 * n > cpus ? cpus : 2 * n)
        printf("maxprocs %d: %.0f ms\n", n, milliseconds(n));
    return gort_maxprocs(0) == cpus ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

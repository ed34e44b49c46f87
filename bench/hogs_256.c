/* SPDX-License-Identifier: MIT */
/*
 * hogs_256.c - 256 goroutines that compute for about 20 ms each, all started at once, and one that sleeps for
 * a millisecond again and again until all have computed: how late it wakes.
 *
 *     hogs_256_p50, hogs_256_p99, hogs_256_worst
 *
 * Why: at first 255 of them have not begun, later many have been preempted. Neither may be a reason to be
 * late.
 */
#include "hogs.h"

enum { GOROUTINES = 256, EACH_MS = 20, MOST = 1 << 20 };

static void computing(void *wg)
{
    bench_compute(INT64_C(1000) * BENCH_STEPS_US * EACH_MS);
    gort_wg_done(wg);
}

static void all(const struct bench *b)
{
    double *late = must_have(malloc(MOST * sizeof *late));
    gort_wg wg = {0};
    long n = 0;
    gort_wg_add(&wg, GOROUTINES);
    for (int i = 0; i < GOROUTINES; i++)
        must(gort_go(computing, &wg));
    do
        late[n++] = hogs_sleep();
    while (n < MOST && gort_wg_wait_until(&wg, GORT_TRY) != 0);
    must(gort_wg_wait(&wg));
    bench_sort(late, n);
    bench_figure(b, "hogs_256_p50", late[n / 2]);
    bench_figure(b, "hogs_256_p99", late[n * 99 / 100]);
    bench_figure(b, "hogs_256_worst", late[n - 1]);
    free(late);
}

BENCH_ALL(all)

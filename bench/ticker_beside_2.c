/* SPDX-License-Identifier: MIT */
/*
 * ticker_beside_2.c - two goroutines that compute a fixed amount, about 1.5 s each, beside one that sleeps
 * for 5 ms in a loop.
 *
 *     ticker_beside_2        until both have computed
 *     ticker_beside_2_cpu    CPU time of the process until then
 *     monitor_cpu            CPU time of the monitor thread in a second of that
 *     monitor_cpu_idle       the same in a second in which nobody runs
 *
 * Why: at two Ps the one that sleeps takes a turn on one of them 200 times a second. What that costs beyond
 * its own few microseconds shows against the program itself with preempt=off, where it sleeps until one has
 * finished, and against Go.
 */
#include "bench.h"
#include "monitor.h"

#include <stdatomic.h>

enum { HOGS = 2, EACH_MS = 1500, TICK_MS = 5 };

static atomic_bool stop;

static void hog(void *wg)
{
    bench_compute(INT64_C(1000) * BENCH_STEPS_US * EACH_MS);
    gort_wg_done(wg);
}

static void ticker(void *wg)
{
    while (!atomic_load(&stop))
        must(gort_sleep(TICK_MS * GORT_MS));
    gort_wg_done(wg);
}

static void all(const struct bench *b)
{
    gort_wg hogs = {0}, others = {0};
    int monitor = 0;
    must(gort_sleep(20 * GORT_MS)); /* the monitor has a name by now */
    count_threads(&monitor);
    gort_wg_add(&hogs, HOGS);
    gort_wg_add(&others, 1);
    must(gort_go(ticker, &others));
    int64_t from = bench_now(), monitor_from = thread_cpu(monitor);
    double cpu = bench_cpu();
    for (int i = 0; i < HOGS; i++)
        must(gort_go(hog, &hogs));
    must(gort_wg_wait(&hogs));
    double wall = (double)(bench_now() - from);
    bench_figure(b, "ticker_beside_2", wall);
    bench_figure(b, "ticker_beside_2_cpu", bench_cpu() - cpu);
    if (!monitor) /* with preempt=off there may be none */
        bench_figure(b, "monitor_cpu", 0);
    else
        bench_figure(b, "monitor_cpu", (double)(thread_cpu(monitor) - monitor_from) * 1e9 / wall);
    atomic_store(&stop, true);
    must(gort_wg_wait(&others));
    monitor_from = thread_cpu(monitor);
    from = bench_now();
    must(gort_sleep(1000 * GORT_MS));
    bench_figure(b, "monitor_cpu_idle",
                 (double)(thread_cpu(monitor) - monitor_from) * 1e9 / (double)(bench_now() - from));
}

BENCH_ALL(all)

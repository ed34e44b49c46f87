/* SPDX-License-Identifier: MIT */
/*
 * blocked_burst.c - many goroutines enter a blocking read at once, of which nobody told the runtime, at one
 * P: how late the sleeps of a millisecond of another one end, p99.
 *
 *     blocked_burst_50, blocked_burst_400      of so many
 *
 * A burst is looked at for 50 ms from its start, which are fewer than 50 sleeps: the p99 over seven bursts is
 * about the worst sleep of the middle one. Between two bursts all have ended.
 */
#include "hogs.h"

#include <unistd.h>

enum { BURSTS = 7, WINDOW_MS = 50, MOST = BURSTS * WINDOW_MS + BURSTS };

static int fds[2];

static void reader(void *wg)
{
    char c;
    if (read(fds[0], &c, 1) != 1)
        bench_die("read", 0);
    gort_wg_done(wg);
}

/* Adds the lateness of the sleeps during one burst. */
static long burst(int goroutines, double *late)
{
    static const char bytes[400];
    gort_wg wg = {0};
    long n = 0;
    gort_wg_add(&wg, goroutines);
    int64_t end = bench_now() + WINDOW_MS * GORT_MS;
    for (int i = 0; i < goroutines; i++)
        must(gort_go(reader, &wg));
    while (bench_now() < end)
        late[n++] = hogs_sleep();
    if (write(fds[1], bytes, (size_t)goroutines) != goroutines)
        bench_die("write", 0);
    must(gort_wg_wait(&wg));
    must(gort_sleep(20 * GORT_MS));
    return n;
}

static double p99(int goroutines)
{
    static double late[MOST];
    long n = 0;
    for (int i = 0; i < BURSTS; i++)
        n += burst(goroutines, late + n);
    bench_sort(late, n);
    return late[n * 99 / 100];
}

static void all(const struct bench *b)
{
    if (pipe(fds))
        bench_die("pipe", 0);
    bench_figure(b, "blocked_burst_50", p99(50));
    bench_figure(b, "blocked_burst_400", p99(400));
}

BENCH_ALL(all)

/* SPDX-License-Identifier: MIT */
/*
 * chan_buf128.c - one producer, one consumer, a channel with room for 128; one operation is one
 * item.
 *
 * Why: the usual pipeline. A buffer lets each side work in runs, so this is mostly the lock and the
 * copy, with a park every 128 items.
 */
#include "bench.h"

struct producer {
    gort_chan *ch;
    long n;
};

static void producer(void *arg)
{
    const struct producer *p = arg;
    gort_chan *ch = p->ch;
    int64_t n = p->n;
    for (int64_t i = 0; i < n; i++)
        must(gort_chan_send(ch, &i));
}

static double work(long n)
{
    struct producer p = {must_have(gort_chan_new(sizeof(int64_t), 128)), n};
    must(gort_go(producer, &p));
    int64_t sum = 0, v;
    for (long i = 0; i < n; i++) {
        must(gort_chan_recv(p.ch, &v));
        sum += v;
    }
    if (sum != (int64_t)n * (n - 1) / 2)
        bench_die("items lost", 0);
    gort_chan_unref(p.ch);
    return 0;
}

BENCH_MAIN("chan_buf128", 1, work)

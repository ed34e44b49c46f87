/* SPDX-License-Identifier: MIT */
/*
 * pingpong.c - two goroutines throw a value to and fro over two unbuffered channels; one operation
 * is one round trip.
 *
 * Why: the shortest conversation there is: two hand-offs, two parks, two wake-ups. Latency of
 * everything built on channels is a multiple of it.
 */
#include "bench.h"

static gort_chan *ping, *pong;

static void partner(void *arg)
{
    (void)arg;
    int64_t v;
    while (must(gort_chan_recv(ping, &v)) == 1) {
        v++;
        must(gort_chan_send(pong, &v));
    }
    must(gort_chan_close(pong));
}

static double work(long n)
{
    ping = must_have(gort_chan_new(sizeof(int64_t), 0));
    pong = must_have(gort_chan_new(sizeof(int64_t), 0));
    must(gort_go(partner, NULL));
    int64_t v = 0;
    for (long i = 0; i < n; i++) {
        must(gort_chan_send(ping, &v));
        must(gort_chan_recv(pong, &v));
    }
    must(gort_chan_close(ping));
    must(gort_chan_recv(pong, &v));
    gort_chan_unref(ping);
    gort_chan_unref(pong);
    return 0;
}

BENCH_MAIN("pingpong", 1, work)

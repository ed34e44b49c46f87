/* SPDX-License-Identifier: MIT */
/*
 * skynet.c - a tree in which every goroutine starts ten, down to a million leaves, and sums over an
 * unbuffered channel what they send; one operation is one leaf.
 *
 * Why: the well-known test of many short lives: 1.1 million goroutines and 111 thousand channels
 * are made, used once and thrown away.
 */
#include "bench.h"

enum { LEAVES = 1000000, FAN = 10 };

static void node(gort_chan *out, int64_t first, int64_t size)
{
    int64_t sum = first;
    if (size > 1) {
        gort_chan *in = must_have(gort_chan_new(sizeof(int64_t), 0));
        for (int64_t i = 0; i < FAN; i++)
            must(GORT_GO(node, in, first + i * (size / FAN), size / FAN));
        sum = 0;
        for (int i = 0; i < FAN; i++) {
            int64_t v;
            must(gort_chan_recv(in, &v));
            sum += v;
        }
        gort_chan_unref(in);
    }
    must(gort_chan_send(out, &sum));
}

static double work(long n)
{
    for (long done = 0; done < n; done += LEAVES) {
        gort_chan *out = must_have(gort_chan_new(sizeof(int64_t), 0));
        int64_t sum;
        must(GORT_GO(node, out, (int64_t)0, (int64_t)LEAVES));
        must(gort_chan_recv(out, &sum));
        if (sum != (int64_t)LEAVES * (LEAVES - 1) / 2)
            bench_die("wrong sum", 0);
        gort_chan_unref(out);
    }
    return 0;
}

BENCH_MAIN("skynet", LEAVES, work)

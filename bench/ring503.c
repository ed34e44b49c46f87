/* SPDX-License-Identifier: MIT */
/*
 * ring503.c - the thread ring: 503 goroutines in a circle of unbuffered channels pass one token;
 * one operation is one pass.
 *
 * Why: ping-pong with a working set. Only one goroutine can run at any time, and it is always one
 * that has not run for 502 turns: stacks and Gs must not fall out of the cache (or into one set of
 * it).
 *
 * Whoever gets the token of 0 closes the link to its neighbour, and so does everyone after.
 */
#include "bench.h"

enum { SIZE = 503 };

static gort_chan *links[SIZE];
static gort_wg wg;

static void member(void *arg)
{
    size_t i = (size_t)(intptr_t)arg;
    gort_chan *in = links[i], *out = links[(i + 1) % SIZE];
    int64_t token;
    while (must(gort_chan_recv(in, &token)) == 1 && token > 0) {
        token--;
        must(gort_chan_send(out, &token));
    }
    must(gort_chan_close(out));
    gort_wg_done(&wg);
}

static double work(long n)
{
    int64_t token = n;
    for (int i = 0; i < SIZE; i++)
        links[i] = must_have(gort_chan_new(sizeof(int64_t), 0));
    gort_wg_add(&wg, SIZE);
    for (int i = 0; i < SIZE; i++)
        must(gort_go(member, (void *)(intptr_t)i));
    must(gort_chan_send(links[0], &token));
    must(gort_wg_wait(&wg));
    for (int i = 0; i < SIZE; i++)
        gort_chan_unref(links[i]);
    return 0;
}

BENCH_MAIN("ring503", SIZE * 100, work)

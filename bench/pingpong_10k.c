/* SPDX-License-Identifier: MIT */
/*
 * pingpong_10k.c - 5,000 pairs of goroutines, all of them busy: each pair sends a value to and fro; one operation is one
 * round trip of one pair.
 *
 * Why: the stacks of 10,000 goroutines that are all in use. If their busiest lines fell into the same few sets of the
 * caches, each switch would miss all of them.
 */
#include "bench.h"

enum { PAIRS = 5000 };

struct pair {
    gort_chan *to, *fro;
    long trips;
    gort_wg *wg;
};

static void answer(void *arg)
{
    struct pair *p = arg;
    long v;
    while (gort_chan_recv(p->to, &v) == 1)
        must(gort_chan_send(p->fro, &v));
    gort_wg_done(p->wg);
}

static void ask(void *arg)
{
    struct pair *p = arg;
    for (long i = 0; i < p->trips; i++) {
        must(gort_chan_send(p->to, &i));
        must(gort_chan_recv(p->fro, &i));
        gort_yield(); /* the other pairs first */
    }
    gort_chan_close(p->to);
    gort_wg_done(p->wg);
}

static double work(long n)
{
    static struct pair pairs[PAIRS];
    gort_wg wg = {0};
    gort_wg_add(&wg, 2 * PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        pairs[i] = (struct pair){must_have(gort_chan_new(sizeof(long), 0)),
                                 must_have(gort_chan_new(sizeof(long), 0)), n / PAIRS, &wg};
        must(gort_go(answer, &pairs[i]));
        must(gort_go(ask, &pairs[i]));
    }
    must(gort_wg_wait(&wg));
    for (int i = 0; i < PAIRS; i++) {
        gort_chan_unref(pairs[i].to);
        gort_chan_unref(pairs[i].fro);
    }
    return 0;
}

BENCH_MAIN("pingpong_10k", PAIRS * 100, work)

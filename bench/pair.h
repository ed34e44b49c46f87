/* SPDX-License-Identifier: MIT */
/*
 * pair.h - pairs of goroutines that throw a value to and fro over two unbuffered channels and compute before
 * each send, and one that only computes.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "bench.h"

struct pair {
    int us;    /* of computing before each message */
    long most; /* rounds, 0: until pair_stop */
    long rounds;
    int64_t began;
    gort_chan *there, *back;
    gort_wg done;
};

static volatile bool pair_stop;

static inline void pair_hog(void *wg)
{
    while (!pair_stop)
        ;
    gort_wg_done(wg);
}

static inline void pair_pong(void *arg)
{
    struct pair *p = arg;
    for (int64_t v; must(gort_chan_recv(p->there, &v)) == 1;) {
        bench_compute(INT64_C(1) * BENCH_STEPS_US * p->us);
        must(gort_chan_send(p->back, &v));
    }
    gort_wg_done(&p->done);
}

static inline void pair_ping(void *arg)
{
    struct pair *p = arg;
    p->began = bench_now();
    for (int64_t v = 0; p->most ? p->rounds < p->most : !pair_stop; p->rounds++) {
        bench_compute(INT64_C(1) * BENCH_STEPS_US * p->us);
        must(gort_chan_send(p->there, &v));
        must(gort_chan_recv(p->back, &v));
    }
    must(gort_chan_close(p->there));
    gort_wg_done(&p->done);
}

static inline void pair_start(struct pair *p, int us, long most)
{
    *p = (struct pair){.us = us, .most = most};
    p->there = must_have(gort_chan_new(sizeof(int64_t), 0));
    p->back = must_have(gort_chan_new(sizeof(int64_t), 0));
    gort_wg_add(&p->done, 2);
    must(gort_go(pair_pong, p));
    must(gort_go(pair_ping, p));
}

static inline void pair_wait(struct pair *p)
{
    must(gort_wg_wait(&p->done));
    gort_chan_unref(p->there);
    gort_chan_unref(p->back);
}

#endif

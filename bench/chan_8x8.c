/* SPDX-License-Identifier: MIT */
/*
 * chan_8x8.c - eight producers and eight consumers on one channel with room for 128; one operation
 * is one item.
 *
 * Why: a shared work queue. At 1 proc it shows how cheap the lock and the waiter lists are, at 2
 * procs what contention on one channel does.
 */
#include "bench.h"

enum { SIDES = 8 };

struct queue {
    gort_chan *ch;
    gort_wg wg;
    long share;
};

static void producer(void *arg)
{
    struct queue *q = arg;
    for (int64_t i = 0; i < q->share; i++)
        must(gort_chan_send(q->ch, &i));
    gort_wg_done(&q->wg);
}

static void consumer(void *arg)
{
    struct queue *q = arg;
    int64_t v;
    for (long i = 0; i < q->share; i++)
        must(gort_chan_recv(q->ch, &v));
    gort_wg_done(&q->wg);
}

static double work(long n)
{
    struct queue q = {.ch = must_have(gort_chan_new(sizeof(int64_t), 128)), .share = n / SIDES};
    gort_wg_add(&q.wg, 2 * SIDES);
    for (int i = 0; i < SIDES; i++) {
        must(gort_go(producer, &q));
        must(gort_go(consumer, &q));
    }
    must(gort_wg_wait(&q.wg));
    gort_chan_unref(q.ch);
    return 0;
}

BENCH_MAIN("chan_8x8", SIDES, work)

/* SPDX-License-Identifier: MIT */
/*
 * select3.c - a select that receives from three unbuffered channels, one producer on each; one
 * operation is one item.
 *
 * Why: select is the most expensive thing one can do with channels (lock all, queue on all, leave
 * all), and every event loop is made of it.
 */
#include "bench.h"

enum { CHANS = 3 };

static gort_wg wg;
static long share;

static void producer(void *arg)
{
    gort_chan *ch = arg;
    for (int64_t i = 0; i < share; i++)
        must(gort_chan_send(ch, &i));
    gort_wg_done(&wg);
}

static double work(long n)
{
    int64_t v[CHANS], sum = 0;
    gort_case cases[CHANS];
    share = n / CHANS;
    gort_wg_add(&wg, CHANS);
    for (int i = 0; i < CHANS; i++) {
        cases[i] = (gort_case){
            .ch = must_have(gort_chan_new(sizeof(int64_t), 0)), .recv = &v[i], .op = GORT_RECV};
        must(gort_go(producer, cases[i].ch));
    }
    for (long i = 0; i < n; i++)
        sum += v[must(gort_select(cases, CHANS, GORT_FOREVER))];
    must(gort_wg_wait(&wg));
    if (sum != CHANS * ((int64_t)share * (share - 1) / 2))
        bench_die("items lost", 0);
    for (int i = 0; i < CHANS; i++)
        gort_chan_unref(cases[i].ch);
    return 0;
}

BENCH_MAIN("select3", CHANS, work)

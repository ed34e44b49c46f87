/* SPDX-License-Identifier: MIT */
/*
 * million.c - a million goroutines: what one costs before it runs, and how fast all of them run.
 *
 * With one P nobody can run while the main goroutine starts the others: that is how what they cost
 * before they run can be measured. Then all Ps are let loose on them.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "demo.h"

static void leave(void *wg)
{
    gort_wg_done(wg);
}

static void count_in(atomic_int *arrived, gort_wg *gate, gort_wg *wg)
{
    atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed);
    gort_wg_wait(gate);
    gort_wg_done(wg);
}

static void start(int n, gort_wg *wg)
{
    gort_wg_add(wg, n);
    for (int i = 0; i < n; i++)
        if (gort_go(leave, wg) < 0)
            abort();
}

static void line(const char *what, double value, const char *unit, const char *note)
{
    colour(GREY);
    say("  %-34s", what);
    plain();
    colour(GREEN);
    say("%10.*f %-6s", value < 100 ? 1 : 0, value, unit);
    colour(GREY);
    say("  %s\n", note);
    plain();
    show();
}

static void park_many(struct results *r, int n)
{
    gort_wg gate = {0}, wg = {0};
    atomic_int arrived = 0;
    gort_wg_add(&gate, 1);
    gort_wg_add(&wg, n);
    size_t before = memory_used();
    for (int i = 0; i < n; i++)
        if (GORT_GO(count_in, &arrived, &gate, &wg) < 0)
            abort();
    while (atomic_load(&arrived) < n)
        gort_yield();
    r->parked = n;
    r->parked_bytes = (double)(memory_used() - before) / n;
    gort_wg_done(&gate);
    gort_wg_wait(&wg);
}

void million_show(struct results *r, bool fast)
{
    gort_wg wg = {0};
    int n = r->count = memory_free() > (size_t)1 << 30 ? 1000000 : 100000;
    heading(n == 1000000 ? "a million goroutines" : "a hundred thousand goroutines");

    gort_maxprocs(1);
    size_t before = memory_used();
    int64_t from = gort_now();
    start(n, &wg);
    r->spawn_ns = (double)(gort_now() - from) / n;
    r->spawn_bytes = (double)(memory_used() - before) / n;
    line("start one", r->spawn_ns, "ns", "first use of its memory included");
    line("memory of one that has not run", r->spawn_bytes, "bytes", "a stack comes when it first runs");

    gort_maxprocs(r->procs);
    gort_wg_wait(&wg);
    r->all_ms = ms_since(from);
    line("until all had run", r->all_ms, "ms", "from the first start to the last end");

    for (int round = 0; round < 5; round++) {
        from = gort_now();
        start(n, &wg);
        gort_wg_wait(&wg);
        double ns = (double)(gort_now() - from) / n;
        if (round == 0 || ns < r->again_ns)
            r->again_ns = ns;
    }
    line("start and run one, memory warm", r->again_ns, "ns", "the best of five millions");

    int many = fast ? 10000 : 100000;
    if (memory_free() > (size_t)many * 8192 * 3) {
        park_many(r, many);
        line(fast ? "memory of one of 10,000 that wait" : "memory of one of 100,000 that wait", r->parked_bytes,
             "bytes", "its stack, page tables and record");
    }
}

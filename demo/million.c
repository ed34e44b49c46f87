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
    say("  %-32s", what);
    plain();
    colour(GREEN);
    say("%8.*f %-6s", value < 100 ? 1 : 0, value, unit);
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

/* Starts n on one P, where none can run, then runs them on all. Keeps the better figures. */
static void measure(struct results *r)
{
    gort_wg wg = {0};
    int n = r->count;
    gort_maxprocs(1);
    size_t before = memory_used();
    int64_t from = gort_now();
    start(n, &wg);
    double spawn_ns = (double)(gort_now() - from) / n;
    r->spawn_bytes = (double)(memory_used() - before) / n;
    gort_maxprocs(r->procs);
    gort_wg_wait(&wg);
    double all_ms = ms_since(from);
    if (!r->all_ms || all_ms < r->all_ms) {
        r->spawn_ns = spawn_ns;
        r->all_ms = all_ms;
    }
}

/* A virtual machine may have to get memory from its host first, which can take longer than all the rest: so it
 * is measured in two runs, the first of which leaves nothing behind but memory that is there. */
void million_rehearse(struct results *r)
{
    r->count = memory_free() > (size_t)1 << 30 ? 1000000 : 100000;
    measure(r);
}

void million_show(struct results *r, bool fast)
{
    gort_wg wg = {0};
    int n = r->count;
    heading(n == 1000000 ? "a million goroutines" : "a hundred thousand goroutines");
    measure(r);
    line("start one", r->spawn_ns, "ns", "its memory never used yet");
    line("memory of one that has not run", r->spawn_bytes, "bytes", "no stack before it runs");
    line("until all had run", r->all_ms, "ms", "from the first start");
    for (int round = 0; round < (fast ? 2 : 5); round++) {
        int64_t from = gort_now();
        start(n, &wg);
        gort_wg_wait(&wg);
        double ns = (double)(gort_now() - from) / n;
        if (round == 0 || ns < r->again_ns)
            r->again_ns = ns;
    }
    line("start and run one, memory warm", r->again_ns, "ns", fast ? "the best of two" : "the best of five");
    int many = fast ? 10000 : 100000;
    if (memory_free() > (size_t)many * 8192 * 3) {
        park_many(r, many);
        line(fast ? "one of 10,000 that wait" : "one of 100,000 that wait", r->parked_bytes, "bytes",
             "its stack and page tables");
    }
}

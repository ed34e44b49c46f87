/* SPDX-License-Identifier: MIT */
/*
 * fib24.c - fib(24) the silly way: every call starts two goroutines and waits for both; one
 * operation is one goroutine (there are 150049).
 *
 * Why: fork and join all the way down, with many goroutines waiting at a time. Whether the youngest
 * runs first (few stacks in use) or the oldest (most of them) decides how much memory is touched.
 */
#include "bench.h"

enum { ARG = 24, ANSWER = 46368, CALLS = 150049 };

struct call {
    gort_wg *parent;
    int64_t n, value;
};

static void fib(void *arg)
{
    struct call *c = arg;
    if (c->n < 2) {
        c->value = c->n;
    } else {
        gort_wg wg = {0};
        struct call a = {&wg, c->n - 1, 0}, b = {&wg, c->n - 2, 0};
        gort_wg_add(&wg, 2);
        must(gort_go(fib, &a));
        must(gort_go(fib, &b));
        must(gort_wg_wait(&wg));
        c->value = a.value + b.value;
    }
    gort_wg_done(c->parent);
}

static double work(long n)
{
    for (long done = 0; done < n; done += CALLS) {
        gort_wg wg = {0};
        struct call top = {&wg, ARG, 0};
        gort_wg_add(&wg, 1);
        must(gort_go(fib, &top));
        must(gort_wg_wait(&wg));
        if (top.value != ANSWER)
            bench_die("wrong sum", 0);
    }
    return 0;
}

BENCH_MAIN("fib24", CALLS, work)

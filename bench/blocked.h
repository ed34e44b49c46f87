/* SPDX-License-Identifier: MIT */
/*
 * blocked.h - 50 goroutines enter blocking reads, and one more wants to run: how long until it has.
 *
 * What is measured is from the moment at which all 51 are started, at one P, until the last one has run: each that blocks must
 * lose its P first.
 */
#ifndef BENCH_BLOCKED_H
#define BENCH_BLOCKED_H

#include "bench.h"

#include <unistd.h>

enum { BLOCKED = 50 };

static int blocked_fds[2];
static int64_t blocked_ran_at;
static bool blocked_announce;

static void blocked_read(gort_wg *wg)
{
    char c;
    if (blocked_announce)
        gort_block_enter();
    if (read(blocked_fds[0], &c, 1) != 1)
        bench_die("read", 0);
    if (blocked_announce)
        gort_block_leave();
    gort_wg_done(wg);
}

static void blocked_other(gort_wg *wg)
{
    blocked_ran_at = bench_now();
    gort_wg_done(wg);
}

/* The median of n rounds. */
static inline double blocked_rounds(long n, bool announce)
{
    static const char bytes[BLOCKED];
    double *took = must_have(malloc((size_t)n * sizeof *took));
    blocked_announce = announce;
    if (!blocked_fds[1] && pipe(blocked_fds))
        bench_die("pipe", 0);
    for (long i = 0; i < n; i++) {
        gort_wg readers = {0}, other = {0};
        gort_wg_add(&readers, BLOCKED);
        gort_wg_add(&other, 1);
        int64_t from = bench_now();
        for (int k = 0; k < BLOCKED; k++)
            must(GORT_GO(blocked_read, &readers));
        must(gort_yield()); /* they go first */
        must(GORT_GO(blocked_other, &other));
        must(gort_wg_wait(&other));
        took[i] = (double)(blocked_ran_at - from);
        if (write(blocked_fds[1], bytes, BLOCKED) != BLOCKED)
            bench_die("write", 0);
        must(gort_wg_wait(&readers));
    }
    bench_sort(took, n);
    double median = took[n / 2];
    free(took);
    return median;
}

#endif

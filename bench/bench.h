/* SPDX-License-Identifier: MIT */
/*
 * bench.h - what every benchmark program shares: it measures (measure.h) inside the runtime.
 *
 * A program is one function and one line:
 *
 *     BENCH_MAIN("name", unit, work)      work(n) does n operations, always a multiple of unit
 *     BENCH_ALL(all)                      all(b) measures several rows, and prints each by bench_figure
 */
#ifndef BENCH_H
#define BENCH_H

#include <gort.h>

#include "measure.h"

/* Passes on what a gort call returned, and ends the program if that was an error. */
static inline int must(int result)
{
    if (__builtin_expect(result < 0, 0))
        bench_die("a gort call failed", result);
    return result;
}

/* The main goroutine of every program. */
static inline int bench_goroutine(void *arg)
{
    const struct bench *b = arg;
    if (!b->all)
        return bench_measure(b);
    b->all(b);
    return 0;
}

static inline int bench_main(int argc, char **argv, struct bench b)
{
    if (!bench_options(&b, argc, argv))
        return 2;
    gort_config config = {.maxprocs = b.procs};
    int result = gort_run_with(&config, bench_goroutine, &b);
    if (result < 0)
        bench_die("the runtime did not start", result);
    return result;
}

#define BENCH_MAIN(row, ops, function)                                                                       \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        return bench_main(argc, argv, (struct bench){.name = row, .unit = ops, .work = function});           \
    }

#define BENCH_ALL(function)                                                                                  \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        return bench_main(argc, argv, (struct bench){.all = function});                                      \
    }

#endif

/* SPDX-License-Identifier: MIT */
/*
 * measure.h - how a benchmark program measures: arguments, warm-up, samples and the line it prints. Knows
 * nothing of gort: bench.h adds the runtime, and the twins in pthreads/ do without.
 *
 * Why: a row is only worth something if all sides measure alike. go/measure.go is the same algorithm as
 * bench_measure here: look for the number of operations that takes about -ms milliseconds (the search is the
 * warm-up), run it -k times, print the best and the median.
 *
 *     row <name> procs=<n> ns_per_op=<best of k> ops=<operations a sample> median=<of k>
 *
 * Everything here is static: a program is one file plus its headers.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Does n operations; returns the nanoseconds of one if it measured them itself, else 0. */
typedef double bench_fn(long n);

struct bench {
    const char *name;
    bench_fn *work;
    void (*all)(const struct bench *); /* instead of work: measures several rows and prints them */
    long unit;
    int ms, k, procs;
};

#define BENCH_MAX_SAMPLES 100
#define BENCH_MAX_ROUNDS                                                                                     \
    1000000000 /* a row that measures once and repeats its figure takes no time after that */

static inline void bench_die(const char *what, int err)
{
    fprintf(stderr, "bench: %s (%d)\n", what, err);
    exit(1);
}

/* Passes on what a call returned, and ends the program if that was NULL: no memory. */
static inline void *must_have(void *p)
{
    if (__builtin_expect(p == NULL, 0))
        bench_die("no memory", 0);
    return p;
}

/* The monotonic clock, read past the runtime, so that the ruler is not part of what is measured. */
static inline int64_t bench_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A chain of multiplications, the same in Go: a step takes the latency of one and of an addition. */
static inline void bench_compute(int64_t steps)
{
    uint64_t x = 1;
    for (int64_t i = 0; i < steps; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    __asm__ volatile("" ::"r"(x)); /* somebody wants the result */
}

#define BENCH_STEPS_US 1000 /* about a microsecond at 4 GHz */

/* The CPU time of the process. */
static inline double bench_cpu(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void bench_sort(double *values, long n)
{
    qsort(values, (size_t)n, sizeof *values, bench_compare);
}

/* One sample: returns the wall time, stores the nanoseconds of one operation. */
static inline double bench_once(const struct bench *b, long n, double *per_op)
{
    int64_t start = bench_now();
    double own = b->work(n);
    double wall = (double)(bench_now() - start);
    *per_op = own > 0 ? own : wall / (double)n;
    return wall;
}

static inline double bench_clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* A row that is measured once; 0 would be no figure. */
static inline void bench_figure(const struct bench *b, const char *name, double ns)
{
    ns = ns < 1 ? 1 : ns;
    printf("row %s procs=%d ns_per_op=%.3f ops=1 median=%.3f\n", name, b->procs, ns, ns);
}

/* The row of a program that does one kind of operation. */
static inline int bench_measure(const struct bench *b)
{
    double goal = b->ms * 1e6, per_op[BENCH_MAX_SAMPLES];
    long rounds = 1; /* the search for the right n is the warm-up */
    double wall = bench_once(b, b->unit, &per_op[0]);
    if (wall >= goal / 2) /* perhaps a set-up, which only the first one has: samples would be too short */
        wall = bench_once(b, b->unit, &per_op[0]);
    while (wall < goal / 2 && rounds < BENCH_MAX_ROUNDS) {
        rounds = (long)((double)rounds * bench_clamp(goal * 0.75 / bench_clamp(wall, 1, goal), 2, 100)) + 1;
        wall = bench_once(b, rounds * b->unit, &per_op[0]);
    }
    long n = (long)bench_clamp((double)rounds * goal / wall, 1, BENCH_MAX_ROUNDS) * b->unit;
    for (int i = 0; i < b->k; i++)
        bench_once(b, n, &per_op[i]);
    bench_sort(per_op, b->k);
    printf("row %s procs=%d ns_per_op=%.3f ops=%ld median=%.3f\n", b->name, b->procs, per_op[0], n,
           per_op[b->k / 2]);
    return 0;
}

/* Reads "-ms N", "-k N", "-procs N" (BENCH_MS gives the default of the first). False: they were wrong. */
static inline bool bench_options(struct bench *b, int argc, char **argv)
{
    const char *env = getenv("BENCH_MS");
    b->ms = env ? atoi(env) : 300;
    b->k = 5;
    b->procs = 1;
    for (int i = 1; i < argc; i += 2) {
        int *where = !strcmp(argv[i], "-ms")      ? &b->ms
                     : !strcmp(argv[i], "-k")     ? &b->k
                     : !strcmp(argv[i], "-procs") ? &b->procs
                                                  : NULL;
        if (where == NULL || i + 1 == argc || (*where = atoi(argv[i + 1])) < 1) {
            fprintf(stderr, "usage: %s [-ms N] [-k N] [-procs N]\n", argv[0]);
            return false;
        }
    }
    if (b->ms < 1)
        b->ms = 300;
    if (b->k > BENCH_MAX_SAMPLES)
        b->k = BENCH_MAX_SAMPLES;
    return true;
}

#endif

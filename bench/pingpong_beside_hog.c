/* SPDX-License-Identifier: MIT */
/*
 * pingpong_beside_hog.c - two goroutines throw a value to and fro at one P, beside one that only computes;
 * one operation is one round trip.
 *
 * Why: the pair has half of the CPU at best. It gets that if the time slice is of the chain of hand-offs, and
 * next to nothing if each of its parks lets the one that computes have a slice.
 */
#include "pair.h"

static double work(long n)
{
    gort_wg hog = {0};
    struct pair pair;
    pair_stop = false;
    gort_wg_add(&hog, 1);
    must(gort_go(pair_hog, &hog));
    pair_start(&pair, 0, n);
    pair_wait(&pair);
    double took = (double)(bench_now() - pair.began);
    pair_stop = true;
    must(gort_wg_wait(&hog));
    return took / (double)n;
}

BENCH_MAIN("pingpong_beside_hog", 1000, work)

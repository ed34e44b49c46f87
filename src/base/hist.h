/* SPDX-License-Identifier: MIT */
/*
 * hist.h - histograms of times, with buckets of powers of two.
 *
 * Why: one that is twice as long is one bucket further, so 32 words tell nanoseconds from minutes, and
 * finding the bucket takes one instruction. The edges are part of the ABI (gort/stats.h).
 * Threads: add by one writer at a time (the owner, or under a lock); add_shared by anybody; readers at any
 * time, who may see a value in one of the words and not yet in the others.
 */
#ifndef GORT_SRC_BASE_HIST_H
#define GORT_SRC_BASE_HIST_H

#include "base/atomic.h"

#define GORT_HIST_BUCKETS 32
#define GORT_HIST_FIRST   7 /* the first bucket ends at 2^7 ns */

struct gort__hist {
    uint64_t sum; /* in ns; atomic, as all */
    uint64_t bucket[GORT_HIST_BUCKETS];
};

/* Bucket i holds times below 2^(i + 7) ns that fit into none before; the last one all the others. */
static inline unsigned gort__hist_bucket(int64_t ns)
{
    if (ns < (1 << GORT_HIST_FIRST))
        return 0;
    unsigned log2 = 63 - (unsigned)__builtin_clzll((unsigned long long)ns), i = log2 - GORT_HIST_FIRST + 1;
    return i < GORT_HIST_BUCKETS ? i : GORT_HIST_BUCKETS - 1;
}

static inline void gort__hist_add(struct gort__hist *h, int64_t ns)
{
    gort__count(&h->bucket[gort__hist_bucket(ns)], 1);
    gort__count(&h->sum, (uint64_t)(ns > 0 ? ns : 0));
}

static inline void gort__hist_add_shared(struct gort__hist *h, int64_t ns)
{
    gort__count_shared(&h->bucket[gort__hist_bucket(ns)], 1);
    gort__count_shared(&h->sum, (uint64_t)(ns > 0 ? ns : 0));
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * rand.h - a small random generator for victims, select cases and schedule fuzzing.
 *
 * Why: xorshift64* is three shifts and a multiply, good enough to spread choices, replayable from
 * its seed, and needs no lock because every owner (a P, an M) has its own state.
 */
#ifndef GORT_SRC_BASE_RAND_H
#define GORT_SRC_BASE_RAND_H

#include "base/compiler.h"

struct gort__rand {
    uint64_t state; /* never 0; owned by whoever owns the struct around it */
};

static inline void gort__rand_seed(struct gort__rand *r, uint64_t seed)
{
    /* One round of splitmix64, so that neighbouring seeds start far apart. */
    seed += UINT64_C(0x9e3779b97f4a7c15);
    seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
    seed ^= seed >> 31;
    r->state = seed ? seed : 1;
}

static inline uint32_t gort__rand_next(struct gort__rand *r)
{
    uint64_t x = r->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    r->state = x;
    return (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

/* A number below n; n > 0. */
static inline uint32_t gort__rand_below(struct gort__rand *r, uint32_t n)
{
    return (uint32_t)(((uint64_t)gort__rand_next(r) * n) >> 32);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * fp.h - the floating-point control words without libm: rounding modes and flushing of small numbers.
 *
 * fenv.h would need -lm in every test, and knows nothing of flushing.
 */
#ifndef GORT_TESTS_FP_H
#define GORT_TESTS_FP_H

#include <stdint.h>

enum fp_round { FP_NEAREST, FP_DOWN, FP_UP, FP_ZERO };

#if defined(__x86_64__)
/* The SSE word and the x87 word, as one: both have their rounding mode. */
static inline uint64_t fp_read(void)
{
    uint32_t sse;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(sse), "=m"(x87));
    return (uint64_t)x87 << 32 | (sse & ~0x3fu); /* without the sticky exception flags */
}
static inline void fp_write(uint64_t v)
{
    uint32_t sse = (uint32_t)v;
    uint16_t x87 = (uint16_t)(v >> 32);
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(sse), "m"(x87));
}
static inline uint64_t fp_with(uint64_t v, enum fp_round r, int flush)
{
    v &= ~((uint64_t)3 << 42 | 3 << 13 | 1 << 15);
    return v | (uint64_t)r << 42 | (uint64_t)r << 13 | (uint64_t) !!flush << 15;
}
static inline enum fp_round fp_rounding(void)
{
    uint64_t v = fp_read();
    return (v >> 42 & 3) == (v >> 13 & 3) ? (enum fp_round)(v >> 13 & 3) : (enum fp_round)99;
}
#elif defined(__aarch64__)
static inline uint64_t fp_read(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
}
static inline void fp_write(uint64_t v)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(v));
}
static inline uint64_t fp_with(uint64_t v, enum fp_round r, int flush)
{
    static const uint64_t bits[] = {0, 2, 1, 3};
    v &= ~((uint64_t)3 << 22 | (uint64_t)1 << 24);
    return v | bits[r] << 22 | (uint64_t) !!flush << 24;
}
static inline enum fp_round fp_rounding(void)
{
    static const enum fp_round modes[] = {FP_NEAREST, FP_UP, FP_DOWN, FP_ZERO};
    return modes[fp_read() >> 22 & 3];
}
#else
#error "a port adds its control words here"
#endif

static inline void fp_set(enum fp_round r, int flush)
{
    fp_write(fp_with(fp_read(), r, flush));
}

#endif

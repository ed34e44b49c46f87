/* SPDX-License-Identifier: MIT */
/*
 * stack.h - the stacks that goroutines run on.
 *
 * A stack is reserved address space that the kernel commits page by page, with a guard at its low
 * end. A goroutine gets one when it first runs and gives it back when it ends.
 */
#ifndef GORT_SRC_MEM_STACK_H
#define GORT_SRC_MEM_STACK_H

#include "base/compiler.h"

#define GORT_STACK_LOG2_MIN 16 /* 64 KiB */
#define GORT_STACK_LOG2_MAX 30 /* 1 GiB */

/* Describes one slot; lives as long as the run. Owned by the goroutine or the cache that holds it. */
struct gort__stack {
    char *base;               /* the slot is [base, base + 2^log2); the guard lies at base */
    struct gort__stack *link; /* in a cache */
    uint8_t log2;
    uint8_t reserved[7];
    uint64_t sanitizer; /* valgrind's id */
};

/* Some stacks that one P keeps for itself. Owned by the M that holds the P. */
struct gort__stack_cache {
    struct gort__stack *top; /* last given back first, for its warm cache lines */
    uint32_t n;
};

/* Sets the default size for this run (rounded up to a class). */
void gort__stack_init(size_t default_size);
/* The class for a size: its log2, or 0 when it is too large. size 0: the default. */
uint8_t gort__stack_class(size_t size);
/* Makes sure that n more default stacks can be had later without a new mapping. 0 or -ENOMEM.
 * Never parks; goroutine and thread. */
int gort__stack_reserve(size_t n);
void gort__stack_unreserve(size_t n);
/* A stack of a class, from the cache first. NULL: no memory (never for the default class as long as
 * no more are out than were reserved). cache may be NULL. Never parks. */
struct gort__stack *gort__stack_get(struct gort__stack_cache *cache, uint8_t log2);
void gort__stack_put(struct gort__stack_cache *cache, struct gort__stack *s);
/* Gives all of the cache to everybody. */
void gort__stack_cache_flush(struct gort__stack_cache *cache);
/* Unmaps everything but the slots for which keep is true. Nobody else uses stacks. */
void gort__stack_destroy(bool (*keep)(const char *base, size_t size));

size_t gort__stack_guard(uint8_t log2);
static inline char *gort__stack_hi(const struct gort__stack *s)
{
    return s->base + ((size_t)1 << s->log2);
}
static inline char *gort__stack_lo(const struct gort__stack *s)
{
    return s->base + gort__stack_guard(s->log2);
}

#endif

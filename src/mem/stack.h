/* SPDX-License-Identifier: MIT */
/*
 * stack.h - the stacks that goroutines run on.
 *
 * A stack is reserved address space that the kernel commits page by page, with a guard at its low
 * end. A goroutine gets one when it first runs and gives it back when it ends.
 */
#ifndef GORT_SRC_MEM_STACK_H
#define GORT_SRC_MEM_STACK_H

#include "base/atomic.h"

#define GORT_STACK_LOG2_MIN 16 /* 64 KiB */
#define GORT_STACK_LOG2_MAX 30 /* 1 GiB */

/* Describes one slot; lives as long as the run. Owned by the goroutine or the cache that holds it. */
struct gort__stack {
    char *base;               /* the stack is [base, base + 2^log2); the guard lies at base */
    struct gort__stack *link; /* in a cache or list */
    void *owner; /* who runs on it; odd: nobody, see gort__stack_owner; atomic, written by who holds it */
    uint8_t log2;
    uint8_t guard;      /* enum gort__stack_guard; written by who holds it */
    bool cold;          /* in the class's list of those without memory; guarded by the lock of stack.c */
    uint8_t sight;      /* how often it was seen deep and unused; atomic, for scavenge_stack.c */
    uint32_t sanitizer; /* valgrind's id */
};

enum gort__stack_guard {
    GORT_STACK_BARE,    /* as mapped: nothing yet */
    GORT_STACK_GUARDED, /* its lowest part faults */
    GORT_STACK_CANARY   /* there was no guard to be had */
};

/*
 * A stack without an owner has, plus 1, the one that lies GORT_STACK_AHEAD further in its list: a hint, for
 * whoever walks there asks for that one's memory, which has left the caches, and so waits for some eight at
 * once.
 */
#define GORT_STACK_AHEAD 8
static inline void *gort__stack_owner(const struct gort__stack *s)
{
    char *owner = gort__load(&s->owner, RELAXED);
    return (uintptr_t)owner & 1 ? NULL : owner;
}

/* Some stacks that one P keeps for itself. Owned by the M that holds the P. */
struct gort__stack_cache {
    struct gort__stack *top; /* last given back first, for its warm cache lines */
    uint32_t n;
    /* Those that were given back last, by their place in the list. */
    struct gort__stack *recent[GORT_STACK_AHEAD];
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

/* The stack whose slot (guard included) holds addr; NULL: none. Callable from anywhere while a run is on. */
struct gort__stack *gort__stack_at(const void *addr);
/* False: something was written where a guard could not be installed. Any stack, by who holds it. */
bool gort__stack_intact(const struct gort__stack *s);
/* How deep the stack was used since it was clean, in bytes, to the page; 0: unknown. Callable from
 * anywhere. */
size_t gort__stack_depth(const struct gort__stack *s);

/* --- giving memory back (scavenge.c) ----------------------------------------------------------- */

/* Both for one thread at a time, in parallel with everything else; they stop soon after the time `until`. */
/* A tick: what was free at the last one, all: any, is to give its pages back. True: some are left that
 * age. */
bool gort__scavenge_age(int64_t now, bool all);
bool gort__scavenge_trim(int64_t until); /* gives them back; false: there is more to do */
/* Calls deep(s, lowest, arg) for each stack that has memory more than two pages below its top, in or out of
 * use; stacks come and go meanwhile. Goes on from *at, which begins as zero, soon ends when deep is false.
 * False: there is more. */
struct gort__stack_cursor {
    int log2;
    struct gort__stack_slab *slab;
    char *at;
};
bool gort__scavenge_scan(struct gort__stack_cursor *at, int64_t until,
                         bool (*deep)(struct gort__stack *s, char *lowest, void *arg), void *arg);

size_t gort__stack_guard_size(uint8_t log2);
static inline char *gort__stack_hi(const struct gort__stack *s)
{
    return s->base + ((size_t)1 << s->log2);
}
static inline char *gort__stack_lo(const struct gort__stack *s)
{
    return s->base + gort__stack_guard_size(s->log2);
}

/* Whether sp is a stack pointer on it. A goroutine may stand elsewhere: on the stack of a coroutine of the
 * program. */
static inline bool gort__stack_holds(const struct gort__stack *s, const void *sp)
{
    return (const char *)sp >= gort__stack_lo(s) && (const char *)sp <= gort__stack_hi(s);
}

/*
 * Where a goroutine begins. All stacks end at the same offset in their pages, so the busiest lines of all
 * goroutines would compete for an eighth of the sets of a cache; so neighbours, which lie an odd number of
 * pages of 4 or 64 KiB apart, begin up to 1920 bytes lower. What a parked goroutine needs still fits into one
 * page.
 */
#define GORT_STACK_COLOURS 16
static inline char *gort__stack_top(const struct gort__stack *s)
{
    uintptr_t base = (uintptr_t)s->base;
    return gort__stack_hi(s) - ((base >> 12) + (base >> 16)) % GORT_STACK_COLOURS * 128;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * stack_class.h - the free stacks of each size, shared by stack.c and scavenge.c.
 *
 * A stack that is given back ages:  free --tick--> old --tick--> trim --pages given back--> cold. Whoever
 * wants one takes it from the youngest list that has any, for its warm pages. Had it been better to keep
 * those of the last time, since now they are missed, they age more slowly (scavenge.c).
 */
#ifndef GORT_SRC_MEM_STACK_CLASS_H
#define GORT_SRC_MEM_STACK_CLASS_H

#include "mem/slab.h"
#include "mem/stack.h"
#include "os/os.h"

/*
 * From slot to slot: a stack, and a page that nobody touches. Were it a power of two, the pages on which all
 * goroutines begin would compete for a sixty-fourth of the sets of the TLB: a hundred stacks would miss it at
 * each switch (18 ns instead of 3).
 */
static inline size_t gort__stack_stride(int log2)
{
    return ((size_t)1 << log2) + gort__os_page();
}

/* One mapping of many slots. Never unmapped during a run. */
struct gort__stack_slab {
    struct gort__stack_slab *next; /* set once; atomic */
    char *base;
    size_t slots;
    struct gort__stack *records; /* one for each slot; base NULL: never handed out */
};

static inline char *gort__stack_slab_end(const struct gort__stack_slab *s, int log2)
{
    return s->base + s->slots * gort__stack_stride(log2);
}
/* The record of the slot in which addr, an address of the slab, lies. */
static inline struct gort__stack *gort__stack_slab_at(const struct gort__stack_slab *s, int log2,
                                                      const char *addr)
{
    return &s->records[(size_t)(addr - s->base) / gort__stack_stride(log2)];
}

/* One size of stacks; guarded by the lock. */
struct gort__stack_class {
    struct gort__stack *free, *old, *trim, *cold;
    bool trimming; /* the scavenger has some in its hands */
    bool missed;   /* a cold one was wanted since the last tick */
    bool patient;  /* giving the last ones back was a mistake */
    int64_t aged,
        trimmed; /* when the lists moved on; and some to be trimmed, 0: it is known whether that was a mistake */
    size_t gone;                    /* how many lost their pages since */
    size_t out, out_before;         /* taken and not given back (the caches' are out); at the last tick */
    struct gort__stack_slab *renew; /* where the search for cold stretches goes on; the scavenger's */
    size_t renew_slot;
    struct gort__stack_slab *open;  /* where fresh slots come from, oldest first */
    char *next;                     /* the first fresh slot in open */
    size_t slots, reserved;         /* in all mappings; promised by gort__stack_reserve */
    struct gort__stack_slab **tail; /* where the next slab is linked */
    struct gort__stack_slab *all;   /* atomic */
};

extern struct gort__lock gort__stack_lock GORT_HIDDEN; /* rank GORT_RANK_STACK */
extern struct gort__stack_class gort__stack_classes[GORT_STACK_LOG2_MAX + 1] GORT_HIDDEN;

#endif

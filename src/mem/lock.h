/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the runtime's own lock: one word, a short spin, then a futex.
 *
 * Why not pthread_mutex: ours is 4 bytes, zero-valid, may be released by another goroutine's commit function,
 * its rank is checked in debug builds, and it is dropped by a plain store: sleepers are counted beside the
 * locks, and it is they who pay for the fence (lock.c).
 * Threads: any; never in a signal handler. Holders run no user code and never park.
 */
#ifndef GORT_SRC_MEM_LOCK_H
#define GORT_SRC_MEM_LOCK_H

#include "base/atomic.h"
#include "base/rank.h"

struct gort__lock {
    uint32_t word; /* 0 free, 1 held */
};

/* What a drop looks at, all in one word, which is 0 nearly always: how many threads sleep on any lock, and
 * these. */
/* A drop needs a full fence: there is no membarrier, or nobody has looked. */
#define GORT_LOCK_FENCE UINT32_C(0x80000000)
#define GORT_LOCK_FUZZ                                                                                       \
    UINT32_C(0x40000000) /* schedules are fuzzed (sched/core/fuzz.c); of no interest here */
extern uint32_t gort__lock_slow_mask GORT_HIDDEN; /* atomic */
/* At the start of a run. */
void gort__lock_init(bool fuzz);

/* In builds with checks: asked at every lock whether the thread may be stopped by a signal now. Set once by
 * sched. */
extern bool (*gort__lock_exposed)(void) GORT_HIDDEN;

void gort__lock_slow(struct gort__lock *l);
void gort__lock_release_slow(struct gort__lock *l);
void gort__lock_rank_take(enum gort__rank rank);
void gort__lock_rank_release(enum gort__rank rank);

static inline void gort__lock_take(struct gort__lock *l, enum gort__rank rank)
{
    uint32_t free_word = 0;
    if (GORT_CHECKS)
        gort__lock_rank_take(rank);
    if (GORT_UNLIKELY(!gort__cas(&l->word, &free_word, 1, ACQUIRE))) /* pairs with gort__lock_release */
        gort__lock_slow(l);
}

static inline bool gort__lock_try(struct gort__lock *l, enum gort__rank rank)
{
    uint32_t free_word = 0;
    if (!gort__cas(&l->word, &free_word, 1, ACQUIRE)) /* pairs with gort__lock_release */
        return false;
    if (GORT_CHECKS)
        gort__lock_rank_take(rank);
    return true;
}

/* Drops it. True: gort__lock_release_slow must follow. */
static inline bool gort__lock_release_look(struct gort__lock *l, enum gort__rank rank)
{
    if (GORT_CHECKS)
        gort__lock_rank_release(rank);
    /* The last touch: it may be gone now. TSan is told by a subtraction, which adds to what the lock has
     * ordered so far: the one who drops it may be another goroutine than the one who took it, and know
     * nothing of what that has seen. (Of an exchange that nobody looks at clang makes a store.) */
    if (GORT_TSAN_EDGES)
        gort__sub(&l->word, 1, RELEASE); /* pairs with gort__lock_take */
    else
        gort__store(&l->word, 0, RELEASE); /* pairs with gort__lock_take */
    gort__compiler_fence();                /* a light one: pairs with gort__lock_slow; see GORT_LOCK_FENCE */
    return GORT_UNLIKELY(gort__load(&gort__lock_slow_mask, RELAXED) != 0);
}

static inline void gort__lock_release(struct gort__lock *l, enum gort__rank rank)
{
    if (gort__lock_release_look(l, rank))
        gort__lock_release_slow(l);
}

#endif

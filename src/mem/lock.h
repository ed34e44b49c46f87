/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the runtime's own lock: one word, a short spin, then a futex.
 *
 * Why not pthread_mutex: ours is 4 bytes, zero-valid, may be released by another goroutine's commit
 * function, and its rank is checked in debug builds.
 * Threads: any; never in a signal handler. Holders run no user code and never park.
 */
#ifndef GORT_SRC_MEM_LOCK_H
#define GORT_SRC_MEM_LOCK_H

#include "base/atomic.h"
#include "base/rank.h"

struct gort__lock {
    uint32_t word; /* 0 free, 1 held, 2 held and somebody sleeps */
};

/* In builds with checks: asked at every lock whether the thread may be stopped by a signal now. Set once by sched. */
extern bool (*gort__lock_exposed)(void) GORT_HIDDEN;

void gort__lock_slow(struct gort__lock *l);
void gort__lock_wake(struct gort__lock *l);
void gort__lock_rank_take(enum gort__rank rank);
void gort__lock_rank_drop(enum gort__rank rank);

static inline void gort__lock_take(struct gort__lock *l, enum gort__rank rank)
{
    uint32_t free_word = 0;
    if (GORT_CHECKS)
        gort__lock_rank_take(rank);
    if (GORT_UNLIKELY(!gort__cas(&l->word, &free_word, 1, ACQUIRE))) /* pairs with gort__lock_drop */
        gort__lock_slow(l);
}

static inline bool gort__lock_try(struct gort__lock *l, enum gort__rank rank)
{
    uint32_t free_word = 0;
    if (!gort__cas(&l->word, &free_word, 1, ACQUIRE)) /* pairs with gort__lock_drop */
        return false;
    if (GORT_CHECKS)
        gort__lock_rank_take(rank);
    return true;
}

static inline void gort__lock_drop(struct gort__lock *l, enum gort__rank rank)
{
    if (GORT_CHECKS)
        gort__lock_rank_drop(rank);
    if (GORT_UNLIKELY(gort__xchg(&l->word, 0, RELEASE) == 2)) /* pairs with gort__lock_take */
        gort__lock_wake(l);
}

#endif

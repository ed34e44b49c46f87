/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the runtime's own lock: the slow half, and the check of ranks.
 *
 * Why: critical sections here are some ten instructions, so a waiter first spins (when there is
 * more than one CPU to run the holder), then sleeps on the word.
 * Invariants: (1) a thread sleeps only after it has set the word to 2; (2) whoever takes the word
 * from 2 to 0 wakes one sleeper; (3) a woken sleeper takes the lock with 2, because it cannot know
 * whether it was the only one.
 * Ranks: bit r of the thread's word is set while a lock of rank r is held. Taking is legal while no
 * bit at or above r is set; channels may be taken several at a time (in address order, see select).
 */
#include "mem/lock.h"

#include "arch/arch.h"
#include "base/fatal.h"
#include "os/os.h"

/* A waiter looks rarely: while it waits the holder comes by many times with the line in its cache, and two threads that
 * hammer one channel make twice as many operations as with a look after each pause. */
#define SPINS  5
#define PAUSES 40

void gort__lock_slow(struct gort__lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t free_word = 0;
        for (int k = 0; k < PAUSES; k++)
            gort__arch_pause();
        if (gort__load(&l->word, RELAXED) == 0 &&
            gort__cas(&l->word, &free_word, 1, ACQUIRE)) /* pairs with gort__lock_drop */
            return;
    }
    while (gort__xchg(&l->word, 2, ACQUIRE) != 0) /* pairs with gort__lock_drop */
        gort__os_futex_wait(&l->word, 2, INT64_MAX);
}

void gort__lock_wake(struct gort__lock *l)
{
    gort__os_futex_wake(&l->word, 1);
}

bool (*gort__lock_exposed)(void);

void gort__lock_rank_take(enum gort__rank rank)
{
    uint64_t held = gort__arch_held();
    bool (*exposed)(void) = gort__load(&gort__lock_exposed, RELAXED);
    if (exposed && exposed())
        gort__throw("lock of rank %d taken where a signal may stop its holder", rank);
    if (rank == GORT_RANK_NONE)
        return;
    uint64_t above = held >> rank;
    if (rank == GORT_RANK_CHAN)
        above >>= 1; /* several channels at once are taken in address order */
    if (above)
        gort__throw("lock of rank %d taken while ranks %lx are held", rank, (unsigned long)held);
    gort__arch_set_held(held | (UINT64_C(1) << rank));
}

void gort__lock_rank_drop(enum gort__rank rank)
{
    if (rank != GORT_RANK_NONE)
        gort__arch_set_held(gort__arch_held() & ~(UINT64_C(1) << rank));
}

/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the runtime's own lock: the slow half, and the check of ranks.
 *
 * Why: critical sections here are some ten instructions, so a waiter first spins (when there is more than one
 * CPU to run the holder), then sleeps on the word. Dropping is far more frequent than sleeping, so the fence
 * between "the word is free" and "does anybody sleep?" is the sleeper's to pay:
 *
 *     drop:   word = 0                               sleeper:  slow_mask++
 *             (nothing but program order)                      heavy fence
 *             slow_mask != 0?  wake one                             sleep if word is 1
 *
 * If the drop misses the count, its store came before the fence: the sleeper, or the kernel for it, sees the
 * free word. If it sees the count it wakes; the kernel looks at the word and queues the sleeper in one step,
 * so the wake comes after that. Where the sleeper's fence is none for others (GORT_LOCK_FENCE) the drop finds
 * slow_mask != 0 in any case, and makes its own. The counts stand beside the locks, by a hash of the address:
 * a lock may be gone once it is free.
 * Invariants: (1) a thread sleeps only while it is counted, in total and for its lock; (2) who drops a lock
 * while somebody is counted for it wakes one; (3) a woken sleeper that finds the lock taken again sleeps
 * again, still counted.
 * Ranks: bit r of the thread's word is set while a lock of rank r is held. Taking is legal while no
 * bit at or above r is set; channels may be taken several at a time (in address order, see select).
 */
#include "mem/lock.h"

#include "arch/arch.h"
#include "base/fatal.h"
#include "os/fence.h"

/* A waiter looks rarely: while it waits the holder comes by many times with the line in its cache, and two
 * threads that hammer one channel make twice as many operations as with a look after each pause. */
#ifndef GORT_LOCK_SPINS
#define GORT_LOCK_SPINS 5
#endif
#define PAUSES 40

#define NAP 10000000 /* ns */

uint32_t gort__lock_slow_mask = GORT_LOCK_FENCE;

#define COUNTS 64 /* a power of two */

static uint32_t counts[COUNTS]; /* atomic */

static uint32_t *counted(const struct gort__lock *l)
{
    return &counts[((uintptr_t)l * UINT64_C(0x9e3779b97f4a7c15)) >> 58 & (COUNTS - 1)];
}

void gort__lock_slow(struct gort__lock *l)
{
    for (int i = 0; i < GORT_LOCK_SPINS; i++) {
        uint32_t free_word = 0;
        for (int k = 0; k < PAUSES; k++)
            gort__arch_pause();
        if (gort__load(&l->word, RELAXED) == 0 &&
            gort__cas(&l->word, &free_word, 1, ACQUIRE)) /* pairs with gort__lock_release */
            return;
    }
    uint32_t free_word = 0, *here = counted(l);
    gort__add(here, 1, RELAXED);
    gort__add(&gort__lock_slow_mask, 1, RELAXED);
    /* The fences may change their kind under a plain thread that sleeps before the first run: such a one
     * looks again. */
    bool looks_again = gort__load(&gort__os_light_is_full, RELAXED);
    gort__os_fence_heavy();                                      /* pairs with gort__lock_release */
    looks_again |= gort__load(&gort__os_light_is_full, RELAXED); /* which it looked at, too */
    while (!gort__cas(&l->word, &free_word, 1, ACQUIRE)) {       /* pairs with gort__lock_release */
        gort__os_futex_wait(&l->word, 1, looks_again ? gort__os_now() + NAP : INT64_MAX);
        free_word = 0;
    }
    gort__sub(&gort__lock_slow_mask, 1, RELAXED);
    gort__sub(here, 1, RELAXED);
}

void gort__lock_init(bool fuzz)
{
    uint32_t flags = fuzz ? GORT_LOCK_FUZZ : 0;
    if (gort__load(&gort__os_light_is_full, RELAXED))
        flags |= GORT_LOCK_FENCE;
    gort__or(&gort__lock_slow_mask, flags, RELAXED);
    gort__and(&gort__lock_slow_mask, ~(GORT_LOCK_FUZZ | GORT_LOCK_FENCE) | flags, RELAXED);
}

/* l is free, and may be gone: its address is all that is used. */
void gort__lock_release_slow(struct gort__lock *l)
{
    gort__os_fence_light(); /* pairs with gort__lock_slow */
    if (gort__load(counted(l), RELAXED))
        gort__os_futex_wake(&l->word, 1);
}

bool (*gort__lock_exposed)(void);

void gort__lock_rank_take(enum gort__rank rank)
{
    uint64_t held = gort__arch_ranks();
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
    gort__arch_set_ranks(held | (UINT64_C(1) << rank));
}

void gort__lock_rank_release(enum gort__rank rank)
{
    if (rank != GORT_RANK_NONE)
        gort__arch_set_ranks(gort__arch_ranks() & ~(UINT64_C(1) << rank));
}

/* SPDX-License-Identifier: MIT */
/*
 * move.h - moving a time-out to later, again and again, without a lock.
 *
 * Why: a server with a million connections does that with each packet, and none of it is in any cache. A locked instruction waits
 * until all memory that was asked for before it is there; without one the processor waits for the memory of more resets at once, and one of a
 * million takes a fifth less. And what it touches is 16 bytes among others of their kind: a million fit into a large cache.
 *
 *     open                                   to
 *     | not before (32) | run (31) | open |  | a time, with the number of its lease (lease.c) |
 *
 * While a timer is open its time may be moved to any later than `not before`, which is when its entry of the heap comes up, by whoever
 * likes: looks whether it is open, stores where to, and looks again. The heap does not see that; when the entry comes up the timer is
 * shut, and set again in the light of `to`. Everything else has the timer's lock, and shuts the timer or opens it anew.
 *
 * Proof. A move is done if both looks see the same. Between its store and its second look stands a light fence, and a heavy one between
 * shutting and reading `to` (gort__move_shut, gort__move_settle): so the second look sees that the timer is shut, and the move is left to
 * who has the lock, or the store is read. (It may have been shut and opened in between, to the same unit: then the entry still comes
 * before where it was moved to.) Nothing else waits for a fence. Who stops or resets the timer under its lock at the same time as somebody moves it
 * comes before or after that, whichever; and who comes after somebody else by the program's own doing sees what that one has stored. A stale
 * store may come at any time, but from a call that is under way only, and is taken for a move: if it is before the entry, the other was the
 * last; if its call has seen that the timer was shut, it is about to reset it under the lock.
 * Who moves a timer is inside: so no run ends meanwhile, after which its store could meet a timer of the next one.
 * tests/model/move.c explores all that.
 *
 * The fence is a system call and interrupts other CPUs, so those whose time has come wait for a millisecond, and one does for all.
 * The time is that of a lease, and its number goes along in the same word, for two who move a timer at once.
 * Threads: gort__move_later by any; all others with the timer's lock.
 */
#ifndef GORT_SRC_TIME_MOVE_H
#define GORT_SRC_TIME_MOVE_H

#include "sched/verbs.h"

struct gort__move {
    uint64_t open; /* atomic; 0: shut */
    int64_t to;    /* atomic; 0: it was not moved */
};

/* Moves a timer to a time that lies ns from now. False: nothing is known; take its lock. Inside. */
static GORT_ALWAYS_INLINE bool gort__move_later(struct gort__move *move, int64_t ns)
{
    uint64_t open = gort__load(&move->open, ACQUIRE); /* pairs with gort__move_change */
    int64_t end = gort__load(&gort__lease.end, RELAXED);
    int64_t to = end + ((ns + GORT_LEASE_UNIT - 1) & -GORT_LEASE_UNIT);
    /* In units, in the upper half; or one less, if the lower one says so. */
    int64_t after = (int64_t)(((uint64_t)to << (32 - GORT_LEASE_LOG2)) - open);
    if (GORT_UNLIKELY(!end) || GORT_UNLIKELY((uint32_t)open != gort__load(&gort__lease.run_tag, RELAXED)) ||
        GORT_UNLIKELY(after < 0))
        return false;
    gort__store(&move->to, to, RELEASE); /* pairs with gort__move_settle: fn sees what the caller has done */
    gort__compiler_fence(); /* a light one: pairs with gort__move_settle; see gort__move_possible */
    return GORT_LIKELY(gort__load(&move->open, RELAXED) == open);
}

/* Timers may be opened. Else a light fence takes longer than a lock. */
static inline bool gort__move_possible(void)
{
    return GORT_LIKELY(!gort__load(&gort__os_light_is_full, RELAXED));
}

/* Changes `open`. If it was open, whoever saw that has begun before, and the caller sees from now on what that one had done by then. */
static inline void gort__move_change(struct gort__move *move, uint64_t open)
{
    if (gort__load(&move->open, RELAXED)) {
        gort__xchg(&move->open, open, SEQ_CST); /* pairs with gort__move_later */
        gort__arch_fence_after_rmw();
    } else {
        gort__store(&move->open, open, RELEASE); /* pairs with gort__move_later */
    }
}

/* From now on it may be moved to later than `when`, at which it is set; not within its unit: who has moved it to before `when`, by another
 * lease, would wait for this one's slip. */
static inline void gort__move_open(struct gort__move *move, int64_t when)
{
    uint64_t after = ((uint64_t)when >> GORT_LEASE_LOG2) + 1;
    gort__move_change(move, after << 32 | gort__load(&gort__lease.run_tag, RELAXED));
}

/* Whatever it was moved to so far does not count any more: it is set to another time. Not when its entry comes up: who moves it
 * between gort__move_settle and this would be lost. */
static inline void gort__move_forget(struct gort__move *move)
{
    gort__store(&move->to, 0, RELAXED);
}

static inline bool gort__move_is_open(const struct gort__move *move)
{
    return gort__load(&move->open, RELAXED) != 0;
}

/* Nobody begins to move it any more, and nothing is said of those who have. */
static inline void gort__move_close(struct gort__move *move)
{
    gort__move_change(move, 0);
}

/* The same. The result is for gort__move_settle, some time later. */
uint32_t gort__move_shut(struct gort__move *move);
/* Where an open timer was moved to before it was shut, if that is later than it was set to. Else it was not moved: that is 0, or what it
 * was settled to before, or from a call under way that somebody with the lock has overtaken. */
int64_t gort__move_settle(const struct gort__move *move, uint32_t shut);

#endif

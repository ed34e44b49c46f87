/* SPDX-License-Identifier: MIT */
/*
 * move.c - the rare half of moving a time-out without a lock; move.h has the protocol.
 *
 * Why: fences of all threads are numbered, and one that has begun after a timer was shut will do for it. So those that come up in the
 * same millisecond share one.
 * Threads: any, each with the lock of its timer.
 */
#include "time/move.h"

static uint32_t begun, done; /* numbers of fences; atomic */

uint32_t gort__move_shut(struct gort__move *move)
{
    gort__xchg(&move->open, 0, SEQ_CST); /* before the look at `begun`: */
    gort__arch_fence_after_rmw();
    return gort__load(&begun, RELAXED); /* a fence with a higher number begins later */
}

static void fence_after(uint32_t shut)
{
    uint32_t last = gort__load(&done, ACQUIRE); /* pairs with the end of this */
    if ((int32_t)(last - shut) > 0)
        return;
    uint32_t mine = gort__add(&begun, 1, SEQ_CST) + 1;
    gort__os_fence_heavy(); /* pairs with gort__move_later */
    while ((int32_t)(mine - last) > 0 && !gort__cas(&done, &last, mine, ACQ_REL)) {
    }
}

int64_t gort__move_settle(const struct gort__move *move, uint32_t shut)
{
    fence_after(shut);
    return gort__load(&move->to, ACQUIRE); /* pairs with gort__move_later */
}

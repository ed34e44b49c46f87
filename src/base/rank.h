/* SPDX-License-Identifier: MIT */
/*
 * rank.h - the order in which runtime locks may be taken.
 *
 * Why: a lock may be taken only while every lock held by the thread has a smaller rank, so no
 * cycle of waiting can form. Builds with GORT_CHECKS verify it at every lock (mem/lock.c).
 */
#ifndef GORT_SRC_BASE_RANK_H
#define GORT_SRC_BASE_RANK_H

enum gort__rank {
    GORT_RANK_NONE,   /* a lock outside the order: never nested with another */
    GORT_RANK_TREE,   /* who is whose child among contexts; closes channels */
    GORT_RANK_CHAN,   /* a channel; several at once in address order */
    GORT_RANK_SYNC,   /* mutex, rwmutex, cond, wait group, semaphore */
    GORT_RANK_FD,     /* an fd: who waits for it */
    GORT_RANK_CTX,    /* a context: a goroutine that begins to wait registers with its own */
    GORT_RANK_KEYS,   /* the table of keys */
    GORT_RANK_TIMER,  /* the heap of timers */
    GORT_RANK_SCHED,  /* the global queue, idle Ms and Ps */
    GORT_RANK_SYSMON, /* sysmon's sleep */
    GORT_RANK_GFREE,  /* free goroutines */
    GORT_RANK_STACK,  /* free stacks */
    GORT_RANK_SLAB,   /* slabs */
    GORT_RANK_CHUNK,  /* descriptions of large chunks of slabs */
    GORT_RANK_MAX
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * object.h - what the objects of gort/sync.h with a lock word and a queue have in common.
 */
#ifndef GORT_SRC_SYNC_OBJECT_H
#define GORT_SRC_SYNC_OBJECT_H

#include <gort/sync.h>

#include "sched/wait/wait.h"

_Static_assert(sizeof(gort_priv_queue) == sizeof(struct gort__waitq), "the public queue is ours");

static inline struct gort__waitq *gort__object_queue(gort_priv_queue *q)
{
    return (struct gort__waitq *)(void *)q;
}

static inline void gort__object_lock(uint32_t *word)
{
    gort__lock_take((struct gort__lock *)(void *)word, GORT_RANK_SYNC);
}

/* The last touch: the object may be gone then. */
static inline void gort__object_unlock(uint32_t *word)
{
    gort__fuzz_release((struct gort__lock *)(void *)word, GORT_RANK_SYNC);
}

/* Queues w and waits; the object is locked, and unlocked when it returns. What a peer granted, or an
 * error. */
int gort__object_wait(struct gort__m **m, uint32_t *word, struct gort__waitq *q, struct gort__waiter *w,
                      int64_t deadline, enum gort__reason reason, bool no_cancel, const char *call);

/* gort_mutex_unlock for a caller that is inside already (m NULL: outside of runs). */
void gort__mutex_unlock(struct gort__m *m, gort_mutex *mu);
/* Makes the caller the owner of a mutex whose owner is gone with its run. */
void gort__mutex_inherit(gort_mutex *mu);

/* The very first record, if it still waits; it is out of the queue in any case. */
struct gort__waiter *gort__waitq_take_first(struct gort__waitq *q);

#endif

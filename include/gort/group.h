/* SPDX-License-Identifier: MIT */
/*
 * gort/group.h - structured concurrency: goroutines that are started, fail and end together; and a
 * fixed number of workers behind a bounded queue.
 */
#ifndef GORT_GROUP_H
#define GORT_GROUP_H

#include "base.h"
#include "ctx.h"
#include "sync.h"

GORT_BEGIN_DECLS

/*
 * A group: its members run under a context of their own, below parent. The first that returns
 * anything but 0 cancels that context for the others, and its value is what wait returns.
 */
typedef struct gort_group {
    gort_ctx *gort_priv_ctx;
    gort_wg gort_priv_members;
    gort_sem gort_priv_places;
    uint32_t gort_priv_limited;
    int gort_priv_err;
} gort_group;

/* parent NULL: below the context in use by the caller, if there is one. 0 or -ENOMEM. */
GORT_API GORT_MUST_CHECK int gort_group_init(gort_group *group, gort_ctx *parent);
/* At most n members run at the same time (n < 1: no limit). Before the first member is started. */
GORT_API void gort_group_limit(gort_group *group, int n);
/* Starts fn(arg) as a member. When there is a limit it waits for a place until the group's context ends, whatever the caller
 * has in use: that one lies above it, unless init was given another. 0, -ECANCELED, -ETIMEDOUT, -ENOMEM. */
GORT_API int gort_group_go(gort_group *group, int (*fn)(void *), void *arg);
/* Waits for all members, whatever is cancelled; the first error, or 0. Then the group's context is cancelled, for those whom
 * members started and left behind, and the group is empty and has no context: init makes a new one. */
GORT_API int gort_group_wait(gort_group *group);
/* The members' context. Borrowed, until wait returns. */
GORT_API gort_ctx *gort_group_ctx(gort_group *group);

/* A pool: n workers that take jobs from a queue with room for `queue` of them. */
typedef struct gort_pool {
    gort_chan *gort_priv_jobs;
    gort_wg gort_priv_workers;
} gort_pool;

/* Starts the workers. 0 or -errno. */
GORT_API GORT_MUST_CHECK int gort_pool_init(gort_pool *pool, int workers, size_t queue);
/* fn(arg) is run by a worker; waits while the queue is full. 0, -EPIPE after close, -EAGAIN, -ETIMEDOUT, -ECANCELED. */
GORT_API int gort_pool_submit(gort_pool *pool, void (*fn)(void *), void *arg);
GORT_API GORT_MUST_CHECK int gort_pool_submit_until(gort_pool *pool, void (*fn)(void *), void *arg,
                                                    int64_t deadline);
/* No more jobs; waits until those in the queue are done and the workers have ended, then frees the queue. 0. */
GORT_API int gort_pool_close(gort_pool *pool);

GORT_END_DECLS
#endif

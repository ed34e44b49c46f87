/* SPDX-License-Identifier: MIT */
/*
 * gort/group.h - groups of goroutines whose first error cancels the others, and pools of workers with a
 * bounded queue.
 */
#ifndef GORT_GROUP_H
#define GORT_GROUP_H

#include "base.h"
#include "ctx.h"
#include "sync.h"

GORT_BEGIN_DECLS

/*
 * A group. Its goroutines, the members, use the group's context. The first member that returns a value other
 * than 0 cancels that context, and gort_group_wait returns that value.
 */
typedef struct gort_group {
    gort_ctx *gort_priv_ctx;
    gort_wg gort_priv_members;
    gort_sem gort_priv_places;
    uint32_t gort_priv_limited;
    int gort_priv_err;
} gort_group;

/*
 * Prepares a group, with a context below parent; if parent is NULL, below the context that the caller uses,
 * if there is one. Returns 0 or -ENOMEM. Never parks.
 */
GORT_API GORT_MUST_CHECK int gort_group_init(gort_group *group, gort_ctx *parent);
/*
 * At most n members run at the same time; n < 1: no limit. Call it before the first gort_group_go. Never
 * parks.
 */
GORT_API void gort_group_limit(gort_group *group, int n);
/*
 * Starts fn(arg) as a member. If the group has a limit, it first waits until fewer than n members run. That
 * wait ends early when the group's context ends, not when the context that the caller uses does (which is
 * usually an ancestor of the group's). Returns 0, -ECANCELED, -ETIMEDOUT, -ENOMEM, or -ESRCH: no run is on.
 * May park if there is a limit.
 */
GORT_API int gort_group_go(gort_group *group, int (*fn)(void *), void *arg);
/*
 * Waits until all members have ended. No context ends this wait early, but a parent that ends makes the waits
 * of the members end. Then it cancels the group's context, also without an error: goroutines that members
 * have started and left behind inherited it. Returns the first error, or 0. The group can be used again after
 * another gort_group_init. May park.
 */
GORT_API int gort_group_wait(gort_group *group);
/* The group's context. It belongs to the group and is gone when gort_group_wait returns. Never parks. */
GORT_API gort_ctx *gort_group_ctx(gort_group *group);

/* A pool: a fixed number of goroutines, the workers, that run jobs from a queue. */
typedef struct gort_pool {
    gort_chan *gort_priv_jobs;
    gort_wg gort_priv_workers;
} gort_pool;

/*
 * Starts the workers (at least 1), with a queue that has room for `queue` jobs. Returns 0, -EINVAL, or -errno
 * as gort_go does; after an error gort_pool_submit and gort_pool_close return -EPIPE. May park after an
 * error, to wait for the workers that it had started.
 */
GORT_API GORT_MUST_CHECK int gort_pool_init(gort_pool *pool, int workers, size_t queue);
/*
 * Puts a job into the queue: a worker will run fn(arg). Waits while the queue is full. Returns 0, or -EPIPE:
 * the pool is closed. No context ends the plain form early. The _until form may also return -EAGAIN,
 * -ETIMEDOUT or -ECANCELED; then the job will not run. Workers use no context. May park.
 */
GORT_API int gort_pool_submit(gort_pool *pool, void (*fn)(void *), void *arg);
GORT_API GORT_MUST_CHECK int gort_pool_submit_until(gort_pool *pool, void (*fn)(void *), void *arg,
                                                    int64_t deadline);
/*
 * Closes the pool: no more jobs are taken. Waits until those in the queue are done and the workers have
 * ended, then frees the queue. Returns 0, or -EPIPE: the pool was closed already. May park.
 */
GORT_API int gort_pool_close(gort_pool *pool);

GORT_END_DECLS
#endif

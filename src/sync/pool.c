/* SPDX-License-Identifier: MIT */
/*
 * pool.c - a fixed number of workers behind a bounded queue, built on the public calls only, but for the
 * words of a fatal error.
 *
 * Why: a channel is a bounded queue with waiting at both ends, and closing it lets the workers
 * finish what is in it. It shows what users can build themselves.
 * Threads: any.
 */
#include <errno.h>

#include <gort/group.h>
#include <gort/run.h>

#include "base/fatal.h"

struct job {
    void (*fn)(void *);
    void *arg;
};

/* One worker; on its stack. */
struct work {
    gort_pool *pool;
    bool over;
};

static void worker(void *arg);

/* A job ended the worker by gort_exit: another takes its place. */
static void replace(void *arg)
{
    struct work *work = arg;
    if (!work->over)
        gort_wg_go(&work->pool->gort_priv_workers, worker, work->pool);
}

static void worker(void *arg)
{
    struct work work = {arg, false};
    struct job job;
    /* Without memory for the handler, a job that calls gort_exit costs a worker. */
    bool guarded = gort_on_exit(replace, &work) == 0;
    gort_ctx_use(NULL); /* jobs of all kinds pass here: none of their contexts must stop the worker */
    while (gort_chan_recv(work.pool->gort_priv_jobs, &job) == 1) {
        job.fn(job.arg);
        gort_ctx_use(NULL);
    }
    work.over = true;
    if (guarded)
        gort_exit(); /* the handler looks at this frame, so it must not be left before */
}

int gort_pool_init(gort_pool *pool, int workers, size_t queue)
{
    GORT_NEED("gort_pool_init", "pool", pool);
    *pool = (gort_pool){.gort_priv_jobs = NULL}; /* as one that is closed: what fails here is refused later */
    if (workers < 1)
        return -EINVAL;
    pool->gort_priv_jobs = gort_chan_new(sizeof(struct job), queue);
    if (!pool->gort_priv_jobs)
        return -ENOMEM;
    for (int i = 0; i < workers; i++) {
        int err = gort_wg_go(&pool->gort_priv_workers, worker, pool);
        if (err) {
            gort_pool_close(pool);
            return err;
        }
    }
    return 0;
}

int gort_pool_submit_until(gort_pool *pool, void (*fn)(void *), void *arg, int64_t deadline)
{
    GORT_NEED("gort_pool_submit", "pool", pool);
    GORT_NEED("gort_pool_submit", "function", fn);
    struct job job = {fn, arg};
    gort_chan *jobs = pool->gort_priv_jobs;
    return jobs ? gort_chan_send_until(jobs, &job, deadline) : -EPIPE; /* closed */
}

/* As the plain waits for sync objects, it is not cut short by the context in use: a job that nobody looks
 * after is run. */
int gort_pool_submit(gort_pool *pool, void (*fn)(void *), void *arg)
{
    GORT_NEED("gort_pool_submit", "pool", pool);
    GORT_NEED("gort_pool_submit", "function", fn);
    int err = gort_pool_submit_until(pool, fn, arg, GORT_TRY);
    if (err != -EAGAIN)
        return err;
    gort_ctx *former = gort_ctx_use(NULL);
    err = gort_pool_submit_until(pool, fn, arg, GORT_FOREVER);
    gort_ctx_use(former);
    return err;
}

int gort_pool_close(gort_pool *pool)
{
    GORT_NEED("gort_pool_close", "pool", pool);
    if (!pool->gort_priv_jobs)
        return -EPIPE;
    gort_chan_close(pool->gort_priv_jobs);
    int err = gort_wg_wait(&pool->gort_priv_workers); /* they use the pool: no context cuts this short */
    if (!err) {
        gort_chan_unref(pool->gort_priv_jobs);
        pool->gort_priv_jobs = NULL;
    }
    return err;
}

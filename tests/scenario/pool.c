/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the worker pool: every job once, a bounded queue, and a close that finishes what was begun.
 * Covers: src/sync/pool.c
 */
#include "waiting.h"

static gort_pool pool;
static atomic_long counter, running;
static gort_chan *gate;

static void job(void *yields)
{
    CHECK_LE(atomic_fetch_add(&running, 1) + 1, 4);
    for (intptr_t i = 0; i < (intptr_t)yields; i++)
        gort_yield();
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(every_job_is_done_by_at_most_so_many, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(5000, 500), total = 0;
    for (size_t queue = 0; queue < 20; queue += 7) {
        CHECK_EQ(gort_pool_init(&pool, 4, queue), 0);
        for (long i = 0; i < n; i++)
            CHECK_EQ(gort_pool_submit(&pool, job, (void *)(i % 3)), 0);
        CHECK_EQ(gort_pool_close(&pool), 0);
        CHECK_EQ(atomic_load(&counter), total += n);
    }
    settle();
}

static void wait_at_gate(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_chan_recv(gate, NULL), 1);
    atomic_fetch_add(&counter, 1);
}

static void submit_one(void *unused)
{
    CHECK_EQ(gort_pool_submit(&pool, wait_at_gate, unused), 0);
}

TEST_GO(the_queue_is_bounded, .procs = "1,2,4,64", .fuzz = true)
{
    gate = gort_chan_new(0, 0);
    CHECK_EQ(gort_pool_init(&pool, 2, 3), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(gort_pool_submit(&pool, wait_at_gate, NULL), 0);
    await_waiting("chan receive", 2);
    CHECK_EQ(gort_pool_submit_until(&pool, wait_at_gate, NULL, GORT_TRY), -EAGAIN);
    int64_t until = gort_in(2 * GORT_MS);
    CHECK_EQ(gort_pool_submit_until(&pool, wait_at_gate, NULL, until), -ETIMEDOUT);
    CHECK_GE(gort_now(), until);
    CHECK_EQ(gort_go(submit_one, NULL), 0);
    await_waiting("chan send", 1);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(gort_chan_send(gate, NULL), 0);
    await(&counter, 6);
    CHECK_EQ(gort_pool_close(&pool), 0);
    CHECK_EQ(atomic_load(&counter), 6); /* what was refused is not done */
    settle();
    gort_chan_unref(gate);
}

static void close_it(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_pool_close(&pool), 0);
    atomic_fetch_add(&counter, 100);
}

TEST_GO(close_finishes_what_is_in_the_queue, .procs = "1,2,4,64", .fuzz = true)
{
    gate = gort_chan_new(0, 0);
    CHECK_EQ(gort_pool_init(&pool, 1, 10), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(gort_pool_submit(&pool, wait_at_gate, NULL), 0);
    await_waiting("chan receive", 1);
    CHECK_EQ(gort_go(close_it, NULL), 0);
    await_waiting("wait group", 1);
    CHECK_EQ(gort_pool_submit(&pool, wait_at_gate, NULL), -EPIPE);
    CHECK_EQ(atomic_load(&counter), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(gort_chan_send_until(gate, NULL, soon()), 0);
    await(&counter, 105);
    CHECK_EQ(gort_pool_submit(&pool, wait_at_gate, NULL), -EPIPE); /* and so it remains */
    settle();
    gort_chan_unref(gate);
}

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
}

/* A context of whoever made the pool, or that a job left behind, does not stop the workers. */
static gort_ctx *cancelled;

static void leave_context(void *unused)
{
    (void)unused;
    gort_ctx_use(cancelled);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(contexts_do_not_stop_the_workers, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    cancelled = gort_ctx_new(NULL, GORT_FOREVER);
    gort_ctx_cancel(cancelled, 0);
    gort_ctx_use(ctx);
    CHECK_EQ(gort_pool_init(&pool, 2, 4), 0);
    gort_ctx_use(NULL);
    await_waiting("chan receive", 2);
    gort_ctx_cancel(ctx, 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_pool_submit_until(&pool, i % 4 ? count : leave_context, NULL, soon()), 0);
    CHECK_EQ(gort_pool_close(&pool), 0);
    CHECK_EQ(atomic_load(&counter), 20);
    settle();
    gort_ctx_unref(ctx);
    gort_ctx_unref(cancelled);
}

static void submit_cancelled(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_pool_submit_until(&pool, count, NULL, GORT_FOREVER), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_submit_submits_nothing, .procs = "1,2,4,64", .fuzz = true)
{
    gate = gort_chan_new(0, 0);
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    CHECK_EQ(gort_pool_init(&pool, 1, 0), 0);
    CHECK_EQ(gort_pool_submit(&pool, wait_at_gate, NULL), 0);
    gort_ctx_use(ctx);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(submit_cancelled, NULL), 0);
    gort_ctx_use(NULL);
    await_waiting("chan send", 3);
    gort_ctx_cancel(ctx, 0);
    await(&counter, 3);
    CHECK_EQ(gort_chan_send(gate, NULL), 0);
    CHECK_EQ(gort_pool_close(&pool), 0);
    CHECK_EQ(atomic_load(&counter), 4);
    settle();
    gort_ctx_unref(ctx);
    gort_chan_unref(gate);
}

static void exit_now(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
    gort_exit();
}

TEST_GO(jobs_that_end_by_exit_cost_no_worker, .procs = "1,2,4,64", .fuzz = true)
{
    for (int round = 1; round <= 20; round++) {
        CHECK_EQ(gort_pool_init(&pool, 2, 3), 0);
        for (int i = 0; i < 20; i++)
            CHECK_EQ(gort_pool_submit_until(&pool, i % 2 ? exit_now : count, NULL, soon()), 0);
        CHECK_EQ(gort_pool_close(&pool), 0);
        CHECK_EQ(atomic_load(&counter), 20 * round);
    }
    settle();
}

TEST_GO(pools_come_and_go, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(3000, 200), before = 0;
    for (long i = 0; i < n; i++) {
        gort_pool *p = malloc(sizeof *p);
        CHECK_EQ(gort_pool_init(p, 1 + (int)(i % 4), (size_t)(i % 3)), 0);
        for (int k = 0; k < i % 5; k++)
            CHECK_EQ(gort_pool_submit(p, count, NULL), 0);
        CHECK_EQ(gort_pool_close(p), 0);
        memset(p, 0x5a, sizeof *p);
        free(p);
        if (i == n / 10)
            before = test_rss_kb();
    }
    settle();
    check_flat(before, 2048);
}

static atomic_long submitted;

static void *thread_submits(void *unused)
{
    for (int i = 0; i < 500; i++)
        CHECK_EQ(gort_pool_submit(&pool, job, (void *)(intptr_t)(i % 2)), 0);
    atomic_fetch_add(&submitted, 1);
    return unused;
}

TEST_GO(threads_submit, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[3];
    CHECK_EQ(gort_pool_init(&pool, 4, 2), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_submits, NULL), 0);
    await(&submitted, 3);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(gort_pool_close(&pool), 0);
    CHECK_EQ(atomic_load(&counter), 1500);
    settle();
}

TEST(refusals)
{
    CHECK_EQ(gort_pool_init(&pool, 0, 1), -EINVAL);
    CHECK_EQ(gort_pool_init(&pool, -3, 1), -EINVAL);
    CHECK_EQ(gort_pool_init(&pool, 2, 1), -ESRCH); /* no run is on */
    CHECK_EQ(gort_pool_submit(&pool, wait_at_gate, NULL), -EPIPE);
}

/* SPDX-License-Identifier: MIT */
/*
 * once.c - doing something once: all callers wait for it, an end by gort_exit counts.
 * Covers: src/sync/once.c
 */
#include "waiting.h"

static gort_once once;
static atomic_long counter, calls;
/* Written by the one call, read by all after theirs: the sanitizer minds if it is not ordered. */
static int built;

static void build(void *value)
{
    for (int i = 0; i < 5; i++)
        gort_yield();
    atomic_fetch_add(&calls, 1);
    built = (int)(intptr_t)value;
}

static void use(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_once_do(&once, build, (void *)42), 0);
    CHECK_EQ(built, 42);
    atomic_fetch_add(&counter, 1);
}

static void *thread_use(void *unused)
{
    use(NULL);
    return unused;
}

TEST_GO(one_call_and_all_wait_for_it, .procs = "1,2,4,64", .fuzz = true)
{
    long total = 0;
    for (int round = 0; round < 20; round++) {
        pthread_t threads[3];
        once = (gort_once){0};
        built = 0;
        atomic_store(&calls, 0);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, thread_use, NULL), 0);
        for (int i = 0; i < 20; i++)
            CHECK_EQ(gort_go(use, NULL), 0);
        await(&counter, total += 23);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        CHECK_EQ(atomic_load(&calls), 1);
        settle();
    }
}

TEST(before_between_and_after_runs)
{
    gort_once o = {0};
    CHECK_EQ(gort_once_do(&o, build, (void *)1), 0);
    CHECK_EQ(gort_once_do(&o, build, (void *)2), 0);
    CHECK_EQ(built, 1);
    CHECK_EQ(atomic_load(&calls), 1);
    CHECK_EQ(gort_once_do(&o, NULL, NULL), 0); /* done long ago: nobody looks */
}

static gort_chan *gate;

static void exit_inside(void *unused)
{
    (void)unused;
    atomic_fetch_add(&calls, 1);
    CHECK_EQ(gort_chan_recv(gate, NULL), 1);
    gort_exit();
}

static void run_exit_inside(void *unused)
{
    (void)unused;
    gort_once_do(&once, exit_inside, NULL);
    CHECK_MSG(false, "came back from gort_exit");
}

static void after_exit(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_once_do(&once, build, NULL), 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(an_end_by_exit_counts, .procs = "1,2,4,64", .fuzz = true)
{
    gate = gort_chan_new(0, 0);
    for (long round = 0; round < 20; round++) {
        once = (gort_once){0};
        atomic_store(&calls, 0);
        CHECK_EQ(gort_go(run_exit_inside, NULL), 0);
        await_waiting("chan receive", 1);
        for (int i = 0; i < 10; i++)
            CHECK_EQ(gort_go(after_exit, NULL), 0);
        await_waiting("once", 10);
        CHECK_EQ(atomic_load(&counter), round * 10);
        CHECK_EQ(gort_chan_send(gate, NULL), 0);
        await(&counter, (round + 1) * 10);
        CHECK_EQ(gort_once_do(&once, build, NULL), 0);
        CHECK_EQ(atomic_load(&calls), 1);
        settle();
    }
    gort_chan_unref(gate);
}

static gort_once inner;

static void run_inner(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_once_do(&inner, build, (void *)7), 0);
    CHECK_EQ(gort_once_do(&inner, build, (void *)8), 0);
}

TEST_GO(one_inside_another, .procs = "1,2")
{
    CHECK_EQ(gort_once_do(&once, run_inner, NULL), 0);
    CHECK_EQ(built, 7);
    CHECK_EQ(atomic_load(&calls), 1);
}

static void wait_at_gate(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_chan_recv(gate, NULL), 1);
}

static void hold_once(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_once_do(&once, wait_at_gate, NULL), 0);
}

static void cancelled_user(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_once_do_until(&once, build, NULL, GORT_FOREVER), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_context_ends_the_wait, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gate = gort_chan_new(0, 0);
    CHECK_EQ(gort_go(hold_once, NULL), 0);
    await_waiting("chan receive", 1);
    gort_ctx_use(ctx);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(gort_go(cancelled_user, NULL), 0);
    gort_ctx_use(NULL);
    await_waiting("once", 5);
    gort_ctx_cancel(ctx, 0);
    await(&counter, 5);
    CHECK_EQ(gort_chan_send(gate, NULL), 0);
    settle();
    CHECK_EQ(atomic_load(&calls), 0);
    gort_ctx_unref(ctx);
    gort_chan_unref(gate);
}

/* --- a thread is in it when the run ends ------------------------------------------------------------ */

static atomic_bool entered, run_over;

static void over_the_end(void *unused)
{
    (void)unused;
    atomic_fetch_add(&calls, 1);
    atomic_store(&entered, true);
    while (!atomic_load(&run_over))
        usleep(100);
}

static void *thread_over_the_end(void *unused)
{
    CHECK_EQ(gort_once_do(&once, over_the_end, NULL), 0);
    return unused;
}

static pthread_t thread;

static int start_thread_in_once(void *unused)
{
    (void)unused;
    CHECK_EQ(pthread_create(&thread, NULL, thread_over_the_end, NULL), 0);
    while (!atomic_load(&entered))
        gort_yield();
    return 0;
}

static int use_in_next_run(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_once_do(&once, build, NULL), 0);
    return 0;
}

TEST(a_thread_may_be_in_it_when_the_run_ends, .procs = "1,2")
{
    for (int i = 0; i < 10; i++) {
        once = (gort_once){0};
        atomic_store(&calls, 0);
        atomic_store(&entered, false);
        atomic_store(&run_over, false);
        CHECK_EQ(gort_run(start_thread_in_once, NULL), 0);
        atomic_store(&run_over, true);
        pthread_join(thread, NULL);
        CHECK_EQ(gort_run(use_in_next_run, NULL), 0);
        CHECK_EQ(atomic_load(&calls), 1);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * group.c - groups: the first error, the cancel, the limit, and that wait comes after all.
 * Covers: src/sync/group.c
 */
#include "waiting.h"

static atomic_long counter, running, most;
static gort_chan *never;

static int succeed(void *unused)
{
    (void)unused;
    gort_yield();
    atomic_fetch_add(&counter, 1);
    return 0;
}

TEST_GO(all_succeed, .procs = "1,2,4,64", .fuzz = true)
{
    gort_group g;
    for (int round = 1; round <= 20; round++) {
        CHECK_EQ(gort_group_init(&g, NULL), 0);
        for (int i = 0; i < 50; i++)
            CHECK_EQ(gort_group_go(&g, succeed, NULL), 0);
        CHECK_EQ(gort_group_wait(&g), 0);
        CHECK_EQ(atomic_load(&counter), 50 * round);
    }
    settle();
}

TEST_GO(an_empty_group)
{
    gort_group g;
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    CHECK(gort_group_ctx(&g));
    CHECK_EQ(gort_group_wait(&g), 0);
}

TEST(an_empty_group_outside_of_runs)
{
    gort_group g;
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    CHECK_EQ(gort_group_go(&g, succeed, NULL), -ESRCH);
    CHECK_EQ(gort_group_wait(&g), 0);
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    gort_group_limit(&g, 2);
    CHECK_EQ(gort_group_go(&g, succeed, NULL), -ESRCH);
    CHECK_EQ(gort_group_wait(&g), 0);
    CHECK_EQ(atomic_load(&counter), 0);
}

static int wait_for_cancel(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_chan_recv(never, NULL), -ECANCELED);
    CHECK_EQ(gort_ctx_err(gort_ctx_current()), -ECANCELED);
    for (int i = 0; i < 20; i++)
        gort_yield(); /* it takes its time: wait must not come back before */
    atomic_fetch_add(&counter, 1);
    return -EIO; /* not the first */
}

static int fail(void *err)
{
    return (int)(intptr_t)err;
}

TEST_GO(the_first_error_cancels_the_rest_and_is_kept, .procs = "1,2,4,64", .fuzz = true)
{
    never = gort_chan_new(0, 0);
    for (int round = 1; round <= 50; round++) {
        gort_group g;
        CHECK_EQ(gort_group_init(&g, NULL), 0);
        for (int i = 0; i < 10; i++)
            CHECK_EQ(gort_group_go(&g, wait_for_cancel, NULL), 0);
        CHECK_EQ(gort_ctx_err(gort_group_ctx(&g)), 0);
        CHECK_EQ(gort_group_go(&g, fail, (void *)(intptr_t)(round % 2 ? -7 : 7)), 0); /* any but 0 */
        CHECK_EQ(gort_group_wait(&g), round % 2 ? -7 : 7);
        CHECK_EQ(atomic_load(&counter), 10 * round);
    }
    settle();
    gort_chan_unref(never);
}

static int under_group(void *group)
{
    CHECK(gort_ctx_current() == gort_group_ctx(group));
    atomic_fetch_add(&counter, 1);
    return 0;
}

TEST_GO(members_run_under_its_context_below_the_parent, .procs = "1,2,4,64", .fuzz = true)
{
    never = gort_chan_new(0, 0);
    gort_ctx *parent = gort_ctx_new(NULL, GORT_FOREVER);
    for (int how = 0; how < 3; how++) {
        gort_group g;
        gort_ctx *former = how == 1 ? gort_ctx_use(parent) : NULL;
        CHECK_EQ(gort_group_init(&g, how == 0 ? parent : NULL), 0);
        CHECK(gort_ctx_current() == (how == 1 ? parent : NULL));
        CHECK_EQ(gort_group_go(&g, under_group, &g), 0);
        CHECK_EQ(gort_group_wait(&g), 0);
        CHECK(gort_ctx_current() == (how == 1 ? parent : NULL));
        if (how == 1)
            gort_ctx_use(former);
    }
    CHECK_EQ(gort_ctx_err(parent), 0); /* a group's error goes down, not up */
    gort_group g;
    CHECK_EQ(gort_group_init(&g, parent), 0);
    CHECK_EQ(gort_group_go(&g, fail, (void *)1), 0);
    CHECK_EQ(gort_group_wait(&g), 1);
    CHECK_EQ(gort_ctx_err(parent), 0);
    CHECK_EQ(gort_group_init(&g, parent), 0);
    CHECK_EQ(gort_group_go(&g, wait_for_cancel, NULL), 0);
    await_waiting("chan receive", 1);
    gort_ctx_cancel(parent, 0);
    CHECK_EQ(gort_group_wait(&g), -EIO);
    settle();
    gort_ctx_unref(parent);
    gort_chan_unref(never);
}

/* The caller's own context does not hurry wait: the members may use what the caller owns. */
static void wait_under_cancelled(gort_ctx *ctx)
{
    gort_group g;
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    CHECK_EQ(gort_group_go(&g, wait_for_cancel, NULL), 0);
    gort_ctx_cancel(ctx, 0);
    CHECK_EQ(gort_group_wait(&g), -EIO);
    CHECK_EQ(atomic_load(&counter), 1);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(wait_is_not_cut_short, .procs = "1,2,4,64", .fuzz = true)
{
    never = gort_chan_new(0, 0);
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_ctx_use(ctx);
    CHECK_EQ(GORT_GO(wait_under_cancelled, ctx), 0);
    gort_ctx_use(NULL);
    await(&counter, 2);
    settle();
    gort_ctx_unref(ctx);
    gort_chan_unref(never);
}

/* The first three wait for each other, so that the limit is reached on every machine. */
static int limited(void *arg)
{
    int i = (int)(intptr_t)arg;
    long n = atomic_fetch_add(&running, 1) + 1;
    for (long seen = atomic_load(&most); n > seen;)
        if (atomic_compare_exchange_weak(&most, &seen, n))
            break;
    CHECK_LE(n, 3);
    while (i < 3 && atomic_load(&most) < 3)
        gort_yield();
    for (int yields = i % 5; yields > 0; yields--)
        gort_yield();
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&counter, 1);
    if (i % 5 == 4)
        gort_exit(); /* a place comes back also then */
    return 0;
}

TEST_GO(the_limit_holds, .procs = "1,2,4,64", .fuzz = true)
{
    gort_group g;
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    gort_group_limit(&g, 3);
    long n = test_scaled(2000, 200);
    for (long i = 0; i < n; i++)
        CHECK_EQ(gort_group_go(&g, limited, (void *)(intptr_t)i), 0);
    CHECK_EQ(gort_group_wait(&g), 0);
    CHECK_EQ(atomic_load(&counter), n);
    CHECK_EQ(atomic_load(&most), 3);
    settle();
}

/* Whoever waits for a place in a group that is cancelled is let go. */
static int stay_and_fail(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_chan_recv(never, NULL), -ECANCELED);
    gort_ctx *former = gort_ctx_use(NULL); /* keeps its place until it is told */
    CHECK_EQ(gort_chan_send_until(never, NULL, soon()), 0);
    gort_ctx_use(former);
    return -5;
}

static void start_one_more(gort_group *g)
{
    CHECK_EQ(gort_group_go(g, wait_for_cancel, NULL), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_group_keeps_nobody_waiting_for_a_place, .procs = "1,2,4,64", .fuzz = true)
{
    gort_group g;
    never = gort_chan_new(0, 0);
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    gort_group_limit(&g, 2);
    CHECK_EQ(gort_group_go(&g, stay_and_fail, NULL), 0);
    CHECK_EQ(gort_group_go(&g, stay_and_fail, NULL), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(GORT_GO(start_one_more, &g), 0);
    await_waiting("semaphore", 5);
    await_waiting("chan receive", 2);
    gort_ctx_cancel(gort_group_ctx(&g), 0);
    await(&counter, 5);
    CHECK_EQ(gort_chan_recv_until(never, NULL, soon()), 1);
    CHECK_EQ(gort_chan_recv_until(never, NULL, soon()), 1);
    CHECK_EQ(gort_group_wait(&g), -5);
    settle();
    gort_chan_unref(never);
}

static int end_by_exit(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
    gort_exit();
}

TEST_GO(members_that_end_by_exit_are_waited_for, .procs = "1,2,4,64", .fuzz = true)
{
    gort_group g;
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort_group_go(&g, i % 2 ? end_by_exit : succeed, NULL), 0);
    CHECK_EQ(gort_group_wait(&g), 0);
    CHECK_EQ(atomic_load(&counter), 100);
    settle();
}

/* Members start members. */
static gort_group tree;

static int spread(void *depth)
{
    if ((intptr_t)depth > 0)
        for (int i = 0; i < 2; i++)
            CHECK_EQ(gort_group_go(&tree, spread, (void *)((intptr_t)depth - 1)), 0);
    atomic_fetch_add(&counter, 1);
    return 0;
}

TEST_GO(members_start_members, .procs = "1,2,4,64", .fuzz = true)
{
    CHECK_EQ(gort_group_init(&tree, NULL), 0);
    CHECK_EQ(gort_group_go(&tree, spread, (void *)9), 0);
    CHECK_EQ(gort_group_wait(&tree), 0);
    CHECK_EQ(atomic_load(&counter), 1023);
    settle();
}

/* The group may be gone the moment wait returns. */
static int quick(void *err)
{
    return (int)(intptr_t)err;
}

TEST_GO(in_memory_that_is_freed, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(5000, 500);
    for (long i = 0; i < n; i++) {
        gort_group *g = malloc(sizeof *g);
        CHECK_EQ(gort_group_init(g, NULL), 0);
        if (i % 2)
            gort_group_limit(g, 2);
        for (int k = 0; k < 3; k++) {
            int err = gort_group_go(g, quick, (void *)(intptr_t)(i % 3 == 0));
            CHECK(err == 0 || (err == -ECANCELED && i % 3 == 0 && i % 2));
        }
        CHECK_EQ(gort_group_wait(g), i % 3 == 0);
        memset(g, 0x5a, sizeof *g);
        free(g);
    }
    settle();
}

/* Whom a member leaves behind is under the group's context, which ends with the group. */
static void left_behind(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_sleep(3600 * GORT_SEC), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

static int leave_one_behind(void *unused)
{
    (void)unused;
    return gort_go(left_behind, NULL);
}

TEST_GO(wait_ends_who_was_left_behind, .procs = "1,2,4,64", .fuzz = true)
{
    gort_group g;
    CHECK_EQ(gort_group_init(&g, NULL), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_group_go(&g, leave_one_behind, NULL), 0);
    CHECK_EQ(gort_group_wait(&g), 0);
    await(&counter, 10);
    settle();
}

static void *thread_with_group(void *unused)
{
    gort_group g;
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_group_init(&g, NULL), 0);
        gort_group_limit(&g, i % 4);
        for (int k = 0; k < 10; k++)
            CHECK_EQ(gort_group_go(&g, succeed, NULL), 0);
        CHECK_EQ(gort_group_wait(&g), 0);
    }
    atomic_fetch_add(&running, 1);
    return unused;
}

TEST_GO(threads_have_groups, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_with_group, NULL), 0);
    await(&running, 3);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(atomic_load(&counter), 1500);
    settle();
}

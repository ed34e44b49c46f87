/* SPDX-License-Identifier: MIT */
/*
 * barrier.c - barriers: round after round, and who gives up is taken out.
 * Covers: src/sync/sem.c
 */
#include "waiting.h"

static gort_barrier barrier;
static atomic_long counter, lasts;
static atomic_long arrived[1024];

#define PARTIES 8

static void rounds(long n, bool timed)
{
    for (long i = 0; i < n; i++) {
        atomic_fetch_add(&arrived[i % 1024], 1);
        int last = timed ? gort_barrier_wait_until(&barrier, soon()) : gort_barrier_wait(&barrier);
        CHECK(last == 0 || last == 1);
        CHECK_EQ(atomic_load(&arrived[i % 1024]),
                 PARTIES * (i / 1024 + 1)); /* nobody is through before all are there */
        atomic_fetch_add(&lasts, last);
    }
    atomic_fetch_add(&counter, 1);
}

static void *thread_rounds(void *n)
{
    rounds((long)(intptr_t)n, true);
    return NULL;
}

TEST_GO(many_rounds, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(5000, 200);
    gort_barrier_init(&barrier, PARTIES);
    for (int i = 0; i < PARTIES; i++)
        CHECK_EQ(GORT_GO(rounds, n, i % 2 == 0), 0);
    await(&counter, PARTIES);
    CHECK_EQ(atomic_load(&lasts), n);
    settle();
}

TEST_GO(threads_take_part, .procs = "1,2,4,64", .fuzz = true)
{
    intptr_t n = test_scaled(1000, 100);
    pthread_t threads[3];
    gort_barrier_init(&barrier, PARTIES);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_rounds, (void *)n), 0);
    for (int i = 3; i < PARTIES; i++)
        CHECK_EQ(GORT_GO(rounds, (long)n, false), 0);
    await(&counter, PARTIES);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(atomic_load(&lasts), n);
    settle();
}

TEST(one_is_always_the_last)
{
    gort_barrier_init(&barrier, 1);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_barrier_wait(&barrier), 1);
        CHECK_EQ(gort_barrier_wait_until(&barrier, GORT_TRY), 1);
    }
}

static void wait_and_count(int expected)
{
    CHECK_EQ(gort_barrier_wait_until(&barrier, soon()), expected);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(who_gives_up_is_taken_out, .procs = "1,2,4,64", .fuzz = true)
{
    gort_barrier_init(&barrier, 3);
    for (int i = 0; i < 10; i++) {
        atomic_store(&counter, 0);
        CHECK_EQ(gort_barrier_wait_until(&barrier, GORT_TRY), -EAGAIN);
        int64_t until = gort_in(GORT_MS);
        CHECK_EQ(gort_barrier_wait_until(&barrier, until), -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK_EQ(GORT_GO(wait_and_count, 0), 0);
        CHECK_EQ(GORT_GO(wait_and_count, 0), 0);
        await_waiting("barrier", 2); /* with the one that gave up they would be three */
        CHECK_EQ(gort_barrier_wait_until(&barrier, gort_now()), 1); /* the last need not wait */
        await(&counter, 2);
        settle();
    }
}

static atomic_int others;

static void wait_near(int64_t until)
{
    atomic_store(&others, gort_barrier_wait_until(&barrier, until));
}

/* The second arrives around the deadline of the first, and is as impatient: both pass, or neither. */
TEST_GO(all_pass_or_none_at_the_deadline, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(6000, 500), passed = 0;
    uint64_t seed = test_seed();
    gort_barrier_init(&barrier, 2);
    for (long i = 0; i < n; i++) {
        atomic_store(&others, 99);
        int64_t until = gort_in(60 * GORT_US);
        CHECK_EQ(GORT_GO(wait_near, until), 0);
        gort_yield();
        int64_t at = until - 10 * GORT_US + (int64_t)(test_random(&seed) % (40 * GORT_US));
        if (gort_maxprocs(0) == 1)
            while (gort_now() < at)
                gort_yield();
        else
            spin_for(at - gort_now());
        int mine = i % 2 ? gort_barrier_wait_until(&barrier, GORT_TRY)
                         : gort_barrier_wait_until(&barrier, gort_in(GORT_US));
        settle();
        int other = atomic_load(&others);
        bool both = (mine == 0 && other == 1) || (mine == 1 && other == 0);
        bool none = mine == (i % 2 ? -EAGAIN : -ETIMEDOUT) && other == -ETIMEDOUT;
        CHECK_MSG(both || none, "round %ld: %d and %d", i, mine, other);
        passed += both;
    }
    test_log("%ld of %ld passed", passed, n);
}

static void wait_cancelled(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_barrier_wait_until(&barrier, GORT_FOREVER), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_one_is_taken_out, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_barrier_init(&barrier, 4);
    gort_ctx_use(ctx);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(wait_cancelled, NULL), 0);
    gort_ctx_use(NULL);
    await_waiting("barrier", 3);
    gort_ctx_cancel(ctx, 0);
    await(&counter, 3);
    CHECK_EQ(gort_barrier_wait_until(&barrier, GORT_TRY), -EAGAIN);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(GORT_GO(wait_and_count, 0), 0);
    await_waiting("barrier", 3);
    CHECK_EQ(gort_barrier_wait(&barrier), 1);
    settle();
    gort_ctx_unref(ctx);
}

/* --- over several runs ---------------------------------------------------------------------------- */

static void wait_for_ever(void *unused)
{
    (void)unused;
    gort_barrier_wait(&barrier);
    CHECK_MSG(false, "passed");
}

static int leave_waiters(void *unused)
{
    (void)unused;
    gort_barrier_init(&barrier, 3);
    CHECK_EQ(gort_go(wait_for_ever, NULL), 0);
    CHECK_EQ(gort_go(wait_for_ever, NULL), 0);
    await_waiting("barrier", 2);
    return 0;
}

static int use_it(void *unused)
{
    (void)unused;
    atomic_store(&counter, 0);
    CHECK_EQ(GORT_GO(wait_and_count, 0), 0);
    await_waiting("barrier", 1);
    CHECK_EQ(gort_barrier_wait_until(&barrier, GORT_TRY), -EAGAIN); /* those of the ended run do not count */
    CHECK_EQ(GORT_GO(wait_and_count, 0), 0);
    await_waiting("barrier", 2);
    CHECK_EQ(gort_barrier_wait(&barrier), 1);
    await(&counter, 2);
    settle();
    return 0;
}

TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        CHECK_EQ(gort_run(use_it, NULL), 0);
    }
}

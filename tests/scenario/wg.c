/* SPDX-License-Identifier: MIT */
/*
 * wg.c - wait groups: nobody is let go early, and the group may be gone the moment wait returns.
 * Covers: src/sync/wg.c
 */
#include "waiting.h"

static atomic_long counter;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
}

static void outside(void)
{
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(gort_wg_wait_until(&wg, GORT_TRY), 0);
    for (int i = 0; i < 3; i++) {
        gort_wg_add(&wg, 3);
        CHECK_EQ(gort_wg_wait_until(&wg, GORT_TRY), -EAGAIN);
        gort_wg_done(&wg);
        gort_wg_add(&wg, -1);
        CHECK_EQ(gort_wg_wait_until(&wg, GORT_TRY), -EAGAIN);
        gort_wg_add(&wg, 0);
        gort_wg_done(&wg);
        CHECK_EQ(gort_wg_wait(&wg), 0);
        CHECK_EQ(gort_wg_wait_until(&wg, gort_now()), 0);
    }
}

static int run_outside(void *unused)
{
    (void)unused;
    outside();
    return 0;
}

TEST(before_between_and_after_runs)
{
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_go(&wg, count, NULL), -ESRCH);
    CHECK_EQ(gort_wg_wait(&wg), 0); /* it did not count */
    for (int i = 0; i < 3; i++) {
        outside();
        CHECK_EQ(gort_run(run_outside, NULL), 0);
    }
    outside();
}

/* --- no early release ------------------------------------------------------------------------------- */

static gort_wg wg1, wg2;
static gort_chan *exited;

/* waitgroup_test.go testWaitGroup. */
static void both_groups(void *unused)
{
    (void)unused;
    gort_wg_done(&wg1);
    CHECK_EQ(gort_wg_wait(&wg2), 0);
    CHECK_EQ(gort_chan_send(exited, NULL), 0);
}

TEST_GO(two_groups_used_eight_times, .procs = "1,2,4,64", .fuzz = true)
{
    enum { N = 16 };
    exited = gort_chan_new(0, N);
    for (int use = 0; use < 8; use++) {
        gort_wg_add(&wg1, N);
        gort_wg_add(&wg2, N);
        for (int i = 0; i < N; i++)
            CHECK_EQ(gort_go(both_groups, NULL), 0);
        CHECK_EQ(gort_wg_wait(&wg1), 0);
        for (int i = 0; i < N; i++) {
            CHECK_EQ(gort_chan_recv_until(exited, NULL, GORT_TRY), -EAGAIN); /* released too soon */
            gort_wg_done(&wg2);
        }
        for (int i = 0; i < N; i++)
            CHECK_EQ(gort_chan_recv_until(exited, NULL, soon()), 1);
    }
    settle();
    gort_chan_unref(exited);
}

static void wait_and_count(gort_wg *wg, int kind)
{
    CHECK_EQ(kind % 2 ? gort_wg_wait(wg) : gort_wg_wait_until(wg, soon()), 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(all_who_wait_are_let_go, .procs = "1,2,4,64", .fuzz = true)
{
    gort_wg_add(&wg1, 1);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(GORT_GO(wait_and_count, &wg1, i), 0);
    await_waiting("wait group", 50);
    CHECK_EQ(atomic_load(&counter), 0);
    gort_wg_done(&wg1);
    await(&counter, 50);
    settle();
}

static void exit_early(void *unused)
{
    atomic_fetch_add(&counter, 1);
    if (!unused)
        gort_exit();
}

TEST_GO(ends_by_exit_count_as_done, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 200; i++)
        CHECK_EQ(gort_wg_go(&wg1, exit_early, i % 2 ? &wg1 : NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg1), 0);
    CHECK_EQ(atomic_load(&counter), 200);
    settle();
}

/* Members start members: the count never touches zero in between. */
static void grow(void *depth)
{
    if ((intptr_t)depth > 0)
        for (int i = 0; i < 2; i++)
            CHECK_EQ(gort_wg_go(&wg1, grow, (void *)((intptr_t)depth - 1)), 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(members_start_members, .procs = "1,2,4,64", .fuzz = true)
{
    CHECK_EQ(gort_wg_go(&wg1, grow, (void *)10), 0);
    CHECK_EQ(gort_wg_wait(&wg1), 0);
    CHECK_EQ(atomic_load(&counter), 2047);
    settle();
}

/* --- gone the moment wait returns -------------------------------------------------------------------- */

static void done_only(void *wg)
{
    atomic_fetch_add(&counter, 1);
    gort_wg_done(wg);
}

static __attribute__((noinline)) void wait_on_stack(int members, int how)
{
    gort_wg wg = {0};
    for (int i = 0; i < members; i++) {
        if (how % 2) {
            gort_wg_add(&wg, 1);
            CHECK_EQ(gort_go(done_only, &wg), 0);
        } else {
            CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
        }
    }
    if (how % 3 == 0)
        gort_yield();
    CHECK_EQ(how % 5 ? gort_wg_wait(&wg) : gort_wg_wait_until(&wg, soon()), 0);
    memset(&wg, 0x5a, sizeof wg);
    __asm__ volatile("" : : "r"(&wg) : "memory");
}

static __attribute__((noinline)) void scribble(void)
{
    volatile char junk[512];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (char)0x5a;
}

static void wait_on_stacks(long n)
{
    for (long i = 0; i < n; i++) {
        wait_on_stack(1 + (int)(i % 3), (int)i);
        scribble();
    }
    gort_wg_done(&wg1);
}

TEST_GO(on_a_stack_that_goes, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(20000, 2000);
    gort_wg_add(&wg1, 4);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(GORT_GO(wait_on_stacks, n), 0);
    CHECK_EQ(gort_wg_wait(&wg1), 0);
    settle();
    long expected = 0;
    for (long i = 0; i < n; i++)
        expected += 1 + i % 3;
    CHECK_EQ(atomic_load(&counter), 4 * expected);
}

TEST_GO(in_memory_that_is_freed, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(20000, 2000);
    for (long i = 0; i < n; i++) {
        gort_wg *wg = calloc(1, sizeof *wg);
        gort_wg_add(wg, 2);
        CHECK_EQ(gort_go(done_only, wg), 0);
        CHECK_EQ(gort_go(done_only, wg), 0);
        if (i % 3 == 0)
            gort_yield();
        CHECK_EQ(i % 2 ? gort_wg_wait(wg) : gort_wg_wait_until(wg, soon()), 0);
        memset(wg, 0x5a, sizeof *wg);
        free(wg);
    }
    CHECK_EQ(atomic_load(&counter), 2 * n);
    settle();
}

static gort_chan *jobs;

static void *thread_does(void *unused)
{
    gort_wg *wg;
    while (gort_chan_recv(jobs, &wg) == 1)
        gort_wg_done(wg);
    return unused;
}

static void *thread_waits(void *rounds)
{
    for (long i = 0; i < (long)(intptr_t)rounds; i++) {
        gort_wg *wg = calloc(1, sizeof *wg);
        gort_wg_add(wg, 1);
        CHECK_EQ(gort_chan_send(jobs, &wg), 0);
        CHECK_EQ(gort_wg_wait(wg), 0);
        memset(wg, 0x5a, sizeof *wg);
        free(wg);
    }
    atomic_fetch_add(&counter, 1);
    return NULL;
}

static void does(void *unused)
{
    thread_does(unused);
}

static void waits(long n)
{
    thread_waits((void *)(intptr_t)n);
}

TEST_GO(threads_wait_and_are_waited_for, .procs = "1,2,4,64", .fuzz = true)
{
    intptr_t n = test_scaled(3000, 500);
    pthread_t threads[4];
    jobs = gort_chan_new(sizeof(gort_wg *), 4);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[2 * i], NULL, thread_does, NULL), 0);
        CHECK_EQ(pthread_create(&threads[2 * i + 1], NULL, thread_waits, (void *)n), 0);
        CHECK_EQ(gort_go(does, NULL), 0);
        CHECK_EQ(GORT_GO(waits, (long)n), 0);
    }
    await(&counter, 4);
    CHECK_EQ(gort_chan_close(jobs), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    settle();
    gort_chan_unref(jobs);
}

/* --- deadlines and contexts --------------------------------------------------------------------------- */

TEST_GO(a_deadline_is_not_early, .procs = "1,2,4,64", .fuzz = true)
{
    gort_wg_add(&wg1, 1);
    for (int i = 0; i < 10; i++) {
        int64_t until = gort_in(GORT_MS), from = gort_now();
        CHECK_EQ(gort_wg_wait_until(&wg1, until), -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK_LT(gort_now() - from, test_seconds(20));
        CHECK_EQ(gort_wg_wait_until(&wg1, gort_now()), -ETIMEDOUT);
        CHECK_EQ(gort_wg_wait_until(&wg1, GORT_TRY), -EAGAIN);
    }
    gort_wg_done(&wg1);
    CHECK_EQ(gort_wg_wait(&wg1), 0);
}

static void done_near(gort_wg *wg, int64_t at)
{
    while (gort_now() < at)
        gort_yield();
    gort_wg_done(wg);
    atomic_fetch_add(&counter, 1);
}

static atomic_long in_time, too_late;

static void wait_near(gort_wg *wg, int64_t until, atomic_long *left)
{
    int err = gort_wg_wait_until(wg, until);
    CHECK(err == 0 || err == -ETIMEDOUT);
    atomic_fetch_add(err ? &too_late : &in_time, 1);
    atomic_fetch_sub(left, 1);
}

TEST_GO(done_at_the_deadline, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(3000, 300);
    uint64_t seed = test_seed();
    for (long i = 0; i < n; i++) {
        gort_wg *wg = calloc(1, sizeof *wg);
        atomic_long left = 3;
        gort_wg_add(wg, 1);
        int64_t until = gort_in((int64_t)(test_random(&seed) % (60 * GORT_US)));
        for (int k = 0; k < 3; k++)
            CHECK_EQ(GORT_GO(wait_near, wg, until + k * 2 * GORT_US, &left), 0);
        CHECK_EQ(GORT_GO(done_near, wg, until - 5 * GORT_US + (int64_t)(test_random(&seed) % (20 * GORT_US))),
                 0);
        CHECK_EQ(gort_wg_wait(wg), 0);
        while (atomic_load(&left))
            gort_yield();
        free(wg);
        await(&counter, i + 1);
    }
    CHECK_EQ(atomic_load(&in_time) + atomic_load(&too_late), 3 * n);
    test_log("%ld in time, %ld too late", atomic_load(&in_time), atomic_load(&too_late));
    settle();
}

static void wait_cancelled(gort_wg *wg)
{
    CHECK_EQ(gort_wg_wait_until(wg, GORT_FOREVER), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_context_ends_the_wait, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_wg_add(&wg1, 1);
    gort_ctx_use(ctx);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(wait_cancelled, &wg1), 0);
    await_waiting("wait group", 10);
    gort_ctx_cancel(ctx, 0);
    await(&counter, 10);
    CHECK_EQ(gort_wg_wait_until(&wg1, GORT_FOREVER), -ECANCELED);
    gort_wg_done(&wg1);
    CHECK_EQ(gort_wg_wait_until(&wg1, GORT_FOREVER), 0); /* what can happen at once still does */
    gort_ctx_use(NULL);
    settle();
    gort_ctx_unref(ctx);
}

/* --- over several runs ---------------------------------------------------------------------------- */

static void wait_for_ever(gort_wg *wg)
{
    gort_wg_wait(wg);
    CHECK_MSG(false, "was let go");
}

static int leave_waiters(void *unused)
{
    (void)unused;
    for (int i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(wait_for_ever, &wg1), 0);
    await_waiting("wait group", 6);
    return 0;
}

static int use_it(void *add)
{
    if (add)
        gort_wg_add(&wg1, 1);
    atomic_store(&counter, 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(GORT_GO(wait_and_count, &wg1, i), 0);
    await_waiting("wait group", 5);
    gort_wg_done(&wg1);
    await(&counter, 5);
    settle();
    return 0;
}

TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    for (int i = 0; i < 20; i++) {
        gort_wg_add(&wg1, 1);
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        if (i % 2)
            gort_wg_done(&wg1); /* a thread is the last, and wakes nobody */
        CHECK_EQ(gort_run(use_it, i % 2 ? &wg1 : NULL), 0);
    }
}

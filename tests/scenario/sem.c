/* SPDX-License-Identifier: MIT */
/*
 * sem.c - semaphores: permits are neither lost nor made up.
 * Covers: src/sync/sem.c
 */
#include "waiting.h"

static gort_sem sem;
static atomic_long counter, holding;
static gort_wg all;

static void alone(void)
{
    gort_sem s = {0};
    CHECK_EQ(gort_sem_acquire_until(&s, GORT_TRY), -EAGAIN);
    gort_sem_release(&s);
    gort_sem_release(&s);
    CHECK_EQ(gort_sem_acquire(&s), 0);
    CHECK_EQ(gort_sem_acquire_until(&s, gort_now()), 0);
    CHECK_EQ(gort_sem_acquire_until(&s, GORT_TRY), -EAGAIN);
    gort_sem_init(&s, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_sem_acquire_until(&s, GORT_TRY), 0);
    CHECK_EQ(gort_sem_acquire_until(&s, GORT_TRY), -EAGAIN);
    gort_sem_init(&s, 0);
    CHECK_EQ(gort_sem_acquire_until(&s, GORT_TRY), -EAGAIN);
}

static int run_alone(void *unused)
{
    (void)unused;
    alone();
    return 0;
}

TEST(before_between_and_after_runs)
{
    for (int i = 0; i < 3; i++) {
        alone();
        CHECK_EQ(gort_run(run_alone, NULL), 0);
    }
    alone();
}

static int permits;

static void hold(void)
{
    long n = atomic_fetch_add(&holding, 1) + 1;
    CHECK_MSG(n <= permits, "%ld hold one of %d permits", n, permits);
}

static void give_back(void)
{
    atomic_fetch_sub(&holding, 1);
    gort_sem_release(&sem);
}

static void hammer(long n)
{
    for (long i = 0; i < n; i++) {
        CHECK_EQ(gort_sem_acquire(&sem), 0);
        hold();
        if (i % 4 == 0)
            gort_yield();
        give_back();
    }
    gort_wg_done(&all);
}

static void *thread_hammer(void *n)
{
    hammer((long)(intptr_t)n);
    return NULL;
}

static void check_permits(void)
{
    for (int i = 0; i < permits; i++)
        CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), 0);
    CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), -EAGAIN);
}

TEST_GO(hammered, .procs = "1,2,4,64", .fuzz = true)
{
    for (permits = 1; permits < 6; permits += 2) {
        pthread_t threads[3];
        intptr_t n = test_scaled(1000, 100);
        gort_sem_init(&sem, permits);
        gort_wg_add(&all, 13);
        for (int i = 0; i < 10; i++)
            CHECK_EQ(GORT_GO(hammer, (long)n), 0);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, thread_hammer, (void *)n), 0);
        CHECK_EQ(gort_wg_wait(&all), 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        check_permits();
        settle();
    }
}

static int turns[20];
static int turn; /* one permit at a time is given out */

static void take_turn(int me)
{
    CHECK_EQ(me % 2 ? gort_sem_acquire(&sem) : gort_sem_acquire_until(&sem, soon()), 0);
    turns[turn++] = me;
    gort_sem_release(&sem);
}

TEST_GO(waiters_are_served_in_order, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(GORT_GO(take_turn, i), 0);
        await_waiting("semaphore", i + 1);
    }
    gort_sem_release(&sem);
    CHECK_EQ(gort_sem_acquire(&sem), 0); /* behind them: nobody overtakes */
    CHECK_EQ(turn, 20);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(turns[i], i);
    settle();
}

static atomic_long in_time, too_late;

static void near_deadline(uint64_t seed, long n)
{
    for (long i = 0; i < n; i++) {
        int err = gort_sem_acquire_until(&sem, gort_in((int64_t)(test_random(&seed) % (30 * GORT_US))));
        if (err) {
            CHECK_EQ(err, -ETIMEDOUT);
            atomic_fetch_add(&too_late, 1);
            continue;
        }
        hold();
        atomic_fetch_add(&in_time, 1);
        if (i % 4 == 0)
            spin_for(5 * GORT_US);
        if (i % 8 == 0)
            let_pass(20 * GORT_US);
        give_back();
    }
    gort_wg_done(&all);
}

static void *thread_near_deadline(void *seed)
{
    near_deadline((uint64_t)(uintptr_t)seed, test_scaled(2000, 200));
    return NULL;
}

TEST_GO(a_permit_at_the_deadline_is_not_lost, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t thread;
    permits = 2;
    gort_sem_init(&sem, permits);
    gort_wg_add(&all, 9);
    for (uint64_t i = 0; i < 8; i++)
        CHECK_EQ(GORT_GO(near_deadline, test_seed() + i, test_scaled(4000, 400)), 0);
    CHECK_EQ(pthread_create(&thread, NULL, thread_near_deadline, (void *)(uintptr_t)(test_seed() + 20)), 0);
    CHECK_EQ(gort_wg_wait(&all), 0);
    pthread_join(thread, NULL);
    CHECK_GT(atomic_load(&in_time), 0);
    CHECK_GT(atomic_load(&too_late), 0);
    check_permits();
    settle();
}

TEST_GO(a_deadline_is_not_early, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 10; i++) {
        int64_t until = gort_in(GORT_MS), from = gort_now();
        CHECK_EQ(gort_sem_acquire_until(&sem, until), -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK_LT(gort_now() - from, test_seconds(20));
    }
    gort_sem_release(&sem); /* stays: nobody waits any more */
    CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), 0);
}

static void acquire_cancelled(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_sem_acquire_until(&sem, GORT_FOREVER), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_waiter_takes_no_permit, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_ctx_use(ctx);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_go(acquire_cancelled, NULL), 0);
    gort_ctx_use(NULL);
    await_waiting("semaphore", 10);
    gort_ctx_cancel(ctx, 0);
    for (int i = 0; i < 4; i++)
        gort_sem_release(&sem); /* some of them may still be on their way out */
    await(&counter, 10);
    permits = 4;
    check_permits();
    settle();
    gort_ctx_unref(ctx);
}

static void release_it(void *sem_to_release)
{
    gort_sem_release(sem_to_release);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(freed_right_after_acquire, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(20000, 2000);
    for (long i = 0; i < n; i++) {
        gort_sem *s = calloc(1, sizeof *s);
        CHECK_EQ(gort_go(release_it, s), 0);
        if (i % 3 == 0)
            gort_yield();
        CHECK_EQ(i % 2 ? gort_sem_acquire(s) : gort_sem_acquire_until(s, soon()), 0);
        memset(s, 0x5a, sizeof *s);
        free(s);
    }
    await(&counter, n);
    settle();
}

/* --- over several runs ---------------------------------------------------------------------------- */

static void wait_for_ever(int kind)
{
    int err = kind ? gort_sem_acquire(&sem) : gort_sem_acquire_until(&sem, soon());
    CHECK_MSG(false, "got one: %d", err);
}

static int leave_waiters(void *unused)
{
    (void)unused;
    for (int i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(wait_for_ever, i % 2), 0);
    await_waiting("semaphore", 6);
    return 0;
}

static int use_it(void *unused)
{
    (void)unused;
    atomic_store(&counter, 0);
    CHECK_EQ(gort_go(release_it, &sem), 0);
    CHECK_EQ(gort_sem_acquire(&sem), 0);
    settle();
    return 0;
}

TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        if (i % 2) {
            gort_sem_release(&sem); /* nobody is there to take it */
            CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), 0);
        }
        CHECK_EQ(gort_run(use_it, NULL), 0);
        CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), -EAGAIN);
    }
}

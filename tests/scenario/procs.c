/* SPDX-License-Identifier: MIT */
/*
 * procs.c - how many goroutines run at the same time: that all Ps do, and that the number may change at any
 * time.
 * Covers: src/sched/threads/p.c src/sched/life/run.c src/sched/life/supervisor.c
 */
#include "hogs.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static atomic_long counter;
static atomic_bool stop;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
}

static void yield_until(long n)
{
    while (atomic_load(&counter) < n)
        gort_yield();
}

static void settle(void)
{
    while (gort_count() > 1)
        gort_yield();
}

/* --- asking and setting -------------------------------------------------------------------------- */

TEST_GO(says_what_was_before, .procs = "1,2,4")
{
    int n = gort_maxprocs(0);
    CHECK_EQ(n, atoi(getenv("GORT_MAXPROCS")));
    CHECK_EQ(gort_maxprocs(-1), n);
    CHECK_EQ(gort_maxprocs(3), n);
    CHECK_EQ(gort_maxprocs(0), 3);
    CHECK_EQ(gort_maxprocs(INT32_MIN), 3);
    CHECK_EQ(gort_maxprocs(1), 3);
    CHECK_EQ(gort_maxprocs(1), 1);
    CHECK_EQ(gort_maxprocs(1000000), 1);
    CHECK_EQ(gort_maxprocs(2), GORT_MAXPROCS_MAX);
    CHECK_EQ(gort_maxprocs(0), 2);
}

static int ask(void *unused)
{
    (void)unused;
    return gort_maxprocs(0);
}

TEST(the_environment_wins, .env = "GORT_MAXPROCS=3")
{
    CHECK_EQ(gort_run(ask, NULL), 3);
    CHECK_EQ(gort_run_with(&(gort_config){.maxprocs = 5}, ask, NULL), 3);
    gort_maxprocs(6);
    CHECK_EQ(gort_run(ask, NULL), 3);
}

/* The thread that called gort_run is the one that looks. */
static int set_cpus(const cpu_set_t *cpus)
{
    return sched_setaffinity(getpid(), sizeof *cpus, cpus);
}

static bool wait_for_procs(int n)
{
    for (int64_t until = gort_in(test_seconds(20)); gort_maxprocs(0) != n; gort_sleep(GORT_MS))
        if (gort_now() > until)
            return false;
    return true;
}

TEST_GO(it_follows_the_affinity, .env = "GORT_DEBUG=limits=10")
{
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(getpid(), sizeof all, &all), 0);
    int n = gort_maxprocs(0), cpu = 0;
    if (CPU_COUNT(&all) < 2 || n < 2)
        SKIP("needs two CPUs");
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(set_cpus(&one), 0);
        CHECK(wait_for_procs(1));
        CHECK_EQ(set_cpus(&all), 0);
        CHECK(wait_for_procs(n));
    }
    CHECK_EQ(gort_maxprocs(n), n); /* chosen: from now on it stays */
    CHECK_EQ(set_cpus(&one), 0);
    for (int i = 0; i < 5; i++) {
        gort_sleep(10 * GORT_MS);
        CHECK_EQ(gort_maxprocs(0), n);
    }
}

TEST(can_be_set_before_a_run)
{
    if (getenv("GORT_MAXPROCS"))
        SKIP("unset GORT_MAXPROCS: this is about its default");
    int cpus = gort_maxprocs(0);
    CHECK_GE(cpus, 1);
    CHECK_EQ(gort_run(ask, NULL), cpus);
    CHECK_EQ(gort_run_with(&(gort_config){.maxprocs = 5}, ask, NULL), 5);
    CHECK_EQ(gort_maxprocs(7), cpus);
    CHECK_EQ(gort_maxprocs(0), 7);
    CHECK_EQ(gort_run(ask, NULL), 7);
    CHECK_EQ(gort_run(ask, NULL), 7); /* and stays */
}

static void *set_from_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        CHECK_GE(gort_maxprocs(1 + i % 5), 1);
    gort_maxprocs(3);
    atomic_store(&stop, true);
    return NULL;
}

TEST_GO(a_plain_thread_can_set_it, .procs = "1,4", .fuzz = true)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, set_from_thread, NULL), 0);
    while (!atomic_load(&stop)) {
        gort_go(count, NULL);
        gort_yield();
    }
    pthread_join(thread, NULL);
    CHECK_EQ(gort_maxprocs(0), 3);
    settle();
}

/* --- all at the same time -------------------------------------------------------------------------- */

static atomic_int token;

/* Waits for its number without a call into the runtime: without a P of its own the other would never run. */
static void pass_token(int me, int n, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        while (atomic_load(&token) % n != me)
            sched_yield(); /* the kernel's: the goroutine keeps its P */
        atomic_fetch_add(&token, 1);
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(all_run_at_the_same_time, .procs = "2,4,64", .fuzz = true)
{
    int n = gort_maxprocs(0), rounds = n > 8 ? 20 : 200;
    for (int i = 1; i < n; i++)
        CHECK_EQ(GORT_GO(pass_token, i, n, rounds), 0);
    pass_token(0, n, rounds);
    CHECK_GE(atomic_load(&token), n * (rounds - 1));
    yield_until(n);
}

static atomic_int arrived;

static void meet(void *number)
{
    int n = (int)(intptr_t)number;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < n)
        sched_yield();
    atomic_fetch_add(&counter, 1);
}

/* The same from a standstill, again and again: each start must find its idle P. */
TEST_GO(all_idle_ones_are_woken, .procs = "2,4,64", .fuzz = true)
{
    int n = gort_maxprocs(0);
    for (int round = 0; round < (n > 8 ? 10 : 100); round++) {
        gort_wg wg = {0};
        atomic_store(&arrived, 0);
        atomic_store(&counter, 0);
        for (int i = 1; i < n; i++)
            CHECK_EQ(gort_wg_go(&wg, meet, (void *)(intptr_t)n), 0);
        meet((void *)(intptr_t)n);
        gort_wg_wait(&wg);
        CHECK_EQ(atomic_load(&counter), n);
    }
}

TEST_GO(new_ones_run_too, .procs = "1,2")
{
    for (int n = 2; n <= 6; n++) {
        gort_wg wg = {0};
        gort_maxprocs(n);
        atomic_store(&arrived, 0);
        for (int i = 1; i < n; i++)
            CHECK_EQ(gort_wg_go(&wg, meet, (void *)(intptr_t)n), 0);
        meet((void *)(intptr_t)n);
        gort_wg_wait(&wg);
    }
}

static atomic_int at_once, most_at_once;

static void watch_at_once(void *unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++) {
        gort_preempt_off(); /* one that is stopped half-way would be counted as running */
        int n = atomic_fetch_add(&at_once, 1) + 1;
        for (int most = atomic_load(&most_at_once); n > most;)
            if (atomic_compare_exchange_weak(&most_at_once, &most, n))
                break;
        for (volatile int k = 0; k < 2000; k++)
            ;
        atomic_fetch_sub(&at_once, 1);
        gort_preempt_on();
        gort_yield();
    }
    atomic_fetch_add(&counter, 1);
}

/* Some tools make a thread sleep anywhere, for a lock of their own: then its P is given away, as in any call
 * that blocks, and it goes on without one up to its next call. */
static void check_at_once(int most)
{
    if (!UNDER_TSAN && !test_under_emulator() && !test_under_valgrind())
        CHECK_LE(atomic_load(&most_at_once), most);
}

TEST_GO(no_more_than_that_run_at_the_same_time, .procs = "1,2,3", .fuzz = true)
{
    int n = gort_maxprocs(0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_go(watch_at_once, NULL), 0);
    yield_until(20);
    check_at_once(n);
    gort_maxprocs(1);
    atomic_store(&most_at_once, 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_go(watch_at_once, NULL), 0);
    yield_until(40);
    check_at_once(1);
}

/* --- changes --------------------------------------------------------------------------------------- */

TEST_GO(up_and_down_at_once, .procs = "1,2")
{
    for (int i = 0; i < 1000; i++) {
        gort_maxprocs(2);
        gort_maxprocs(1);
    }
    CHECK_EQ(gort_maxprocs(0), 1);
}

static void spread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 300; i++) { /* more than a ring */
        CHECK_EQ(gort_go(count, NULL), 0);
        if (i % 50 == 0)
            gort_yield();
    }
    atomic_fetch_add(&counter, 1);
}

/* The Ps that go away have full rings, and something that was to run next. */
TEST_GO(what_retired_ones_held_still_runs, .procs = "4,64", .fuzz = true)
{
    int n = gort_maxprocs(0);
    long sum = 0;
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 8; i++)
            CHECK_EQ(gort_go(spread, NULL), 0);
        sum += 8 * 301;
        gort_yield();
        gort_maxprocs(1 + round % 3);
        gort_yield();
        if (round % 4 == 0)
            yield_until(sum);
        gort_maxprocs(n);
    }
    gort_maxprocs(1);
    yield_until(sum);
    settle();
    CHECK_EQ(atomic_load(&counter), sum);
}

static void spawner(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        gort_wg wg = {0};
        for (int i = 0; i < 100; i++)
            CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
        gort_wg_wait(&wg);
    }
}

static void yielder(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop))
        gort_yield();
}

static atomic_long computed;

/* Long stretches without a call: the P may be taken away meanwhile. */
static void computer(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        for (volatile int i = 0; i < 100000; i++)
            ;
        atomic_fetch_add(&computed, 1);
        gort_yield();
    }
}

static void locked_yielder(void *unused)
{
    (void)unused;
    gort_lock_thread();
    pthread_t me = pthread_self();
    while (!atomic_load(&stop)) {
        gort_yield();
        CHECK(pthread_equal(me, pthread_self()));
    }
    gort_unlock_thread();
}

static void full_load(void)
{
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(gort_go(spawner, NULL), 0);
        CHECK_EQ(gort_go(yielder, NULL), 0);
    }
    CHECK_EQ(gort_go(computer, NULL), 0);
    CHECK_EQ(gort_go(computer, NULL), 0);
    CHECK_EQ(gort_go(locked_yielder, NULL), 0);
}

TEST_GO(a_thousand_changes_under_load, .procs = "1,2,4", .fuzz = true)
{
    uint64_t random = test_seed();
    int now = gort_maxprocs(0);
    full_load();
    for (long i = test_scaled(1000, 200); i; i--) {
        int n = 1 + (int)(test_random(&random) % (i % 50 ? 6 : 200));
        CHECK_EQ(gort_maxprocs(n), now);
        now = n;
        if (test_random(&random) % 2)
            gort_yield();
    }
    atomic_store(&stop, true);
    settle();
    CHECK_GT(atomic_load(&computed), 0);
    CHECK_GT(atomic_load(&counter), 0);
}

static void change_often(void *unused)
{
    uint64_t random = test_seed() + gort_id();
    (void)unused;
    for (int i = 0; i < 50; i++) {
        gort_maxprocs(1 + (int)(test_random(&random) % 4));
        gort_yield();
    }
    atomic_fetch_add(&arrived, 1);
}

TEST_GO(several_change_it_at_once, .procs = "1,2,4", .fuzz = true)
{
    pthread_t thread;
    full_load();
    CHECK_EQ(pthread_create(&thread, NULL, set_from_thread, NULL), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(gort_go(change_often, NULL), 0);
    while (atomic_load(&arrived) < 8)
        gort_yield();
    pthread_join(thread, NULL);
    atomic_store(&stop, true);
    settle();
}

static void take_thread_along(void *unused)
{
    (void)unused;
    gort_lock_thread();
    gort_yield();
    atomic_fetch_add(&counter, 1);
}

/* Threads that end while the number changes: no P stays with one of them. */
TEST_GO(threads_end_during_changes, .procs = "1,2,4", .fuzz = true)
{
    for (int i = 1; i <= 100; i++) {
        CHECK_EQ(gort_go(take_thread_along, NULL), 0);
        gort_yield();
        gort_maxprocs(1 + i % 4);
        CHECK_EQ(gort_go(take_thread_along, NULL), 0);
        gort_maxprocs(4);
        yield_until(2 * i);
    }
    settle();
}

/* --- more than there are CPUs ----------------------------------------------------------------------- */

TEST_GO(a_thousand_on_a_small_machine, .env = "GORT_MAXPROCS=1024")
{
    CHECK_EQ(gort_maxprocs(0), 1024);
    for (int i = 0; i < 3000; i++) {
        CHECK_EQ(gort_go(count, NULL), 0);
        if (i % 10 == 0)
            gort_yield();
    }
    yield_until(3000);
    gort_maxprocs(2);
    gort_maxprocs(1024);
    yield_until(3000);
}

static gort_wg turn[2];

static void alternate(int me)
{
    for (int i = 0; i < 2000; i++) {
        gort_wg_wait(&turn[me]);
        gort_wg_add(&turn[me], 1);
        gort_wg_done(&turn[!me]);
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(twice_the_cpus, .procs = "4,8")
{
    gort_wg_add(&turn[0], 1);
    gort_wg_add(&turn[1], 1);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(computer, NULL), 0);
    CHECK_EQ(GORT_GO(alternate, 0), 0);
    CHECK_EQ(GORT_GO(alternate, 1), 0);
    gort_wg_done(&turn[0]);
    yield_until(2);
    atomic_store(&stop, true);
    settle();
}

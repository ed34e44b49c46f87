/* SPDX-License-Identifier: MIT */
/*
 * thread.c - goroutines that are bound to their thread, and threads that are none of ours.
 * Covers: src/sched/core/self.c src/sched/threads/handoff.c src/sched/life/entry.c
 */
#include <gort.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

static atomic_long counter;
static atomic_bool stop;

static int tid(void)
{
    return (int)syscall(SYS_gettid);
}

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

/* --- bound ---------------------------------------------------------------------------------------- */

static void stay(int n)
{
    gort_lock_thread();
    int mine = tid();
    static _Thread_local int local;
    local = n;
    for (int i = 0; i < 100; i++) {
        gort_yield();
        CHECK_EQ(tid(), mine);
        CHECK_EQ(local, n);
        gort_wg wg = {0};
        CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
        gort_wg_wait(&wg);
        CHECK_EQ(tid(), mine);
        CHECK_EQ(local, n);
    }
    gort_unlock_thread();
    gort_yield();
}

TEST_GO(stays_on_its_thread, .procs = "1,2,4", .fuzz = true)
{
    for (int i = 0; i < 8; i++)
        CHECK_EQ(GORT_GO(stay, i), 0);
    stay(99);
    yield_until(900);
    settle();
}

static atomic_int foreign; /* goroutines that ran on a thread that belongs to another */
static atomic_int tied_tid;

static void look_at_thread(void *unused)
{
    (void)unused;
    if (tid() == atomic_load(&tied_tid))
        atomic_fetch_add(&foreign, 1);
    gort_yield();
    if (tid() == atomic_load(&tied_tid))
        atomic_fetch_add(&foreign, 1);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(nobody_else_runs_there, .procs = "1,2,4", .fuzz = true)
{
    gort_lock_thread();
    atomic_store(&tied_tid, tid());
    for (int i = 0; i < 500; i++)
        CHECK_EQ(gort_go(look_at_thread, NULL), 0);
    yield_until(500);
    settle();
    CHECK_EQ(atomic_load(&foreign), 0);
    gort_unlock_thread();
}

TEST_GO(locks_nest, .procs = "1,2,4", .fuzz = true)
{
    for (int i = 0; i < 50; i++)
        gort_lock_thread();
    int mine = tid();
    for (int i = 0; i < 4; i++)
        CHECK_EQ(GORT_GO(stay, i), 0);
    for (int i = 0; i < 49; i++) {
        gort_unlock_thread();
        gort_yield();
        CHECK_EQ(tid(), mine);
    }
    gort_unlock_thread();
    settle();
    gort_lock_thread(); /* again, wherever it is now */
    mine = tid();
    gort_yield();
    CHECK_EQ(tid(), mine);
    gort_unlock_thread();
}

static gort_wg gate;

static void locked_at_gate(void *unused)
{
    (void)unused;
    gort_lock_thread();
    int mine = tid();
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(&gate);
    CHECK_EQ(tid(), mine);
    gort_unlock_thread();
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_hundred_locked_and_waiting_hold_nobody_up, .procs = "1,2,4", .fuzz = true)
{
    gort_wg_add(&gate, 1);
    for (int i = 0; i < 128; i++)
        CHECK_EQ(gort_go(locked_at_gate, NULL), 0);
    yield_until(128);
    int64_t from = gort_now();
    for (int round = 0; round < 100; round++) {
        gort_wg wg = {0};
        for (int i = 0; i < 10; i++)
            CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
        gort_wg_wait(&wg);
    }
    CHECK_LT(gort_now() - from, test_seconds(30));
    CHECK_EQ(atomic_load(&counter), 1128);
    gort_wg_done(&gate);
    yield_until(1256);
    settle();
}

/* --- ending while bound ------------------------------------------------------------------------------ */

static atomic_int dead_tid;

static void end_tied(void *by_exit)
{
    gort_lock_thread();
    gort_lock_thread();
    atomic_store(&dead_tid, tid());
    if (by_exit)
        gort_exit();
}

static bool few_threads(void *most)
{
    return test_thread_count() < *(int *)most;
}

static bool thread_is_gone(void *unused)
{
    (void)unused;
    return syscall(SYS_tgkill, getpid(), atomic_load(&dead_tid), 0) != 0;
}

TEST_GO(ending_while_tied_ends_the_thread, .procs = "1,2,4", .fuzz = true)
{
    for (int i = 0; i < 20; i++) {
        atomic_store(&dead_tid, 0);
        CHECK_EQ(gort_go(end_tied, i % 2 ? &stop : NULL), 0);
        while (!atomic_load(&dead_tid))
            gort_yield();
        settle();
        CHECK(test_eventually(thread_is_gone, NULL, 20));
        CHECK_EQ(gort_go(count, NULL), 0); /* the rest goes on */
        yield_until(i + 1);
    }
    int most = 4 + 2 * gort_maxprocs(0);
    CHECK(test_eventually(few_threads, &most, 20)); /* one that ends is counted a moment longer */
}

static void tied_chain(int depth)
{
    gort_lock_thread();
    if (depth > 0)
        CHECK_EQ(GORT_GO(tied_chain, depth - 1), 0);
    else
        atomic_fetch_add(&counter, 1);
}

TEST_GO(a_chain_of_ending_threads, .procs = "1,2", .fuzz = true)
{
    CHECK_EQ(GORT_GO(tied_chain, 200), 0);
    yield_until(1);
    settle();
}

static int run_template_race(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(end_tied, NULL), 0);
    CHECK_EQ(gort_go(end_tied, &stop), 0);
    gort_maxprocs(1);
    gort_lock_thread();
    gort_maxprocs(3);
    gort_yield();
    return 1;
}

TEST(locking_races_with_changes_of_the_world, .procs = "2,4", .fuzz = true)
{
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort_run(run_template_race, NULL), 1);
}

/* --- plain threads ------------------------------------------------------------------------------------ */

static void *ask_everything(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_id(), 0);
    CHECK_STR(gort_name(), "");
    gort_set_name("ignored");
    CHECK_STR(gort_name(), "");
    CHECK_GE(gort_count(), 1);
    CHECK_EQ(gort_id(), 0); /* attached now, but still no goroutine */
    CHECK_EQ(gort_yield(), 0);
    gort_lock_thread();
    gort_unlock_thread();
    gort_unlock_thread(); /* in a plain thread they do nothing */
    gort_wg wg = {0};
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0); /* a thread may wait, too */
    CHECK_GE(atomic_load(&counter), 10);
    CHECK_EQ(gort_id(), 0);
    for (int i = 0; i < 200; i++) /* nothing has started, and the record serves the next one, once */
        CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = (size_t)2 << 30}, count, NULL), -EINVAL);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(atomic_load(&counter), 20);
    atomic_store(&stop, true);
    return NULL;
}

TEST_GO(a_plain_thread_is_no_goroutine, .procs = "1,2", .fuzz = true)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, ask_everything, NULL), 0);
    while (!atomic_load(&stop))
        gort_yield();
    pthread_join(thread, NULL);
    settle();
}

#define THREADS 8
static atomic_long started, refused;
static atomic_int ready;
static atomic_bool finish;

static void *spawn_until_refused(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&finish)) {
        int err = gort_go(count, NULL);
        if (err == 0) {
            atomic_fetch_add(&started, 1);
        } else {
            CHECK_EQ(err, -ESRCH);
            atomic_fetch_add(&refused, 1);
            sched_yield();
        }
    }
    return NULL;
}

static int stay_a_while(void *unused)
{
    (void)unused;
    long goal = atomic_load(&counter) + 100; /* some of theirs have run */
    while (atomic_load(&counter) < goal)
        gort_yield();
    return 3;
}

TEST(threads_start_goroutines_while_runs_come_and_go, .procs = "1,2,4", .fuzz = true)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, spawn_until_refused, NULL), 0);
    while (atomic_load(&ready) < THREADS)
        sched_yield();
    long runs = test_scaled(30, 6);
    for (long i = 0; i < runs; i++)
        CHECK_EQ(gort_run(stay_a_while, NULL), 3);
    while (!atomic_load(&refused)) /* they may have got no CPU between two runs */
        sched_yield();
    atomic_store(&finish, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_GE(atomic_load(&counter), runs * 100);
    CHECK_LE(atomic_load(&counter), atomic_load(&started));
    CHECK_EQ(gort_count(), 0);
}

static gort_wg never;
static atomic_int wait_result = 99;

static void *wait_for_ever(void *unused)
{
    (void)unused;
    CHECK_GE(gort_count(), 1);
    atomic_store(&stop, true);
    int err = gort_wg_wait(&never);
    atomic_store(&wait_result, err);
    return NULL;
}

static pthread_t waiter;

static int leave_thread_waiting(void *unused)
{
    (void)unused;
    gort_wg_add(&never, 1);
    CHECK_EQ(pthread_create(&waiter, NULL, wait_for_ever, NULL), 0);
    while (!atomic_load(&stop))
        gort_yield();
    usleep(20000); /* most likely it waits by now; both ways are fine */
    return 4;
}

/* API.md: "A plain thread blocked in a gort call gets -ECANCELED" when the run ends. */
TEST(a_waiting_thread_is_sent_away_at_the_end, .procs = "1,2", .timeout = 20)
{
    CHECK_EQ(gort_run(leave_thread_waiting, NULL), 4);
    pthread_join(waiter, NULL);
    CHECK_EQ(atomic_load(&wait_result), -ECANCELED);
}

static void *churn(void *unused)
{
    CHECK_EQ(gort_go(count, NULL), 0); /* attaches, and detaches when it ends */
    return unused;
}

TEST_GO(threads_come_and_go, .procs = "2", .fuzz = true)
{
    long n = test_scaled(2000, 200);
    int vmas = 0;
    for (long i = 1; i <= n; i++) {
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, churn, NULL), 0);
        pthread_join(t, NULL);
        if (i == 50)
            vmas = test_vma_count();
    }
    yield_until(n);
    if (!test_under_sanitizer() && !test_under_valgrind() && !test_under_emulator())
        CHECK_LT(test_vma_count(), vmas + n / 10); /* libc keeps some stacks of threads */
}

static void hog_for_joiner(void)
{
    while (!atomic_load(&stop))
        ;
}

static void *end_at_once(void *unused)
{
    return unused;
}

/* A goroutine that is preempted all the time joins threads whose stacks libc does not keep: it frees memory
 * in there. */
TEST_GO(joining_while_preempted, .procs = "1,2")
{
    pthread_attr_t attr;
    atomic_store(&stop, false);
    CHECK_EQ(pthread_attr_init(&attr), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attr, (size_t)48 << 20), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(GORT_GO(hog_for_joiner), 0);
    for (int64_t until = gort_in(GORT_SEC); gort_now() < until;) {
        pthread_t t[8];
        for (int i = 0; i < 8; i++)
            CHECK_EQ(pthread_create(&t[i], &attr, end_at_once, NULL), 0);
        for (int i = 0; i < 8; i++)
            CHECK_EQ(pthread_join(t[i], NULL), 0);
    }
    atomic_store(&stop, true);
    CHECK_EQ(pthread_attr_destroy(&attr), 0);
    settle();
}

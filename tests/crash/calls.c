/* SPDX-License-Identifier: MIT */
/*
 * calls.c - broken contracts end the program with one clear line that names the goroutine, and the dump.
 * Covers: src/base/fatal.c src/sched/core/spawn.c src/sched/core/self.c src/sched/core/gmain.c src/sched/life/run.c src/sched/threads/block.c
 * Covers: src/sched/core/tight.c src/sync/wg.c
 */
#include <gort.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

static void (*volatile no_function)(void *);
static void (*volatile no_function_at_all)(void);
static int (*volatile no_main)(void *);

TEST_GO(
    go_null,
    .crash =
        "^gort: fatal: .*NULL function.*\\[goroutine 1 \\(main\\)\\]$\n^goroutine 1 \\(main\\) \\[running")
{
    gort_go(no_function, NULL);
}

TEST_GO(go_with_null, .crash = "^gort: fatal: .*NULL function")
{
    gort_go_with(&(gort_attr){.name = "x"}, no_function, NULL);
}

TEST_GO(go_copy_null, .crash = "^gort: fatal: .*NULL function")
{
    gort_go_copy(no_function, "x", 1);
}

TEST_GO(typed_go_null, .crash = "^gort: fatal: .*NULL function")
{
    GORT_GO(no_function_at_all);
}

TEST_GO(wg_go_null, .crash = "^gort: fatal: .*NULL function")
{
    gort_wg wg = {0};
    gort_wg_go(&wg, no_function, NULL);
}

TEST_GO(on_exit_null, .crash = "^gort: fatal: .*NULL function")
{
    gort_on_exit(no_function, NULL);
}

TEST(go_null_outside_a_run, .crash = "^gort: fatal: .*NULL function")
{
    gort_go(no_function, NULL);
}

TEST(run_null, .crash = "^gort: fatal: .*gort_run.*NULL function")
{
    gort_run(no_main, NULL);
}

TEST(exit_outside_a_run, .crash = "^gort: fatal: gort_exit: not in a goroutine")
{
    gort_exit();
}

static void *exit_in_thread(void *unused)
{
    (void)unused;
    gort_count();
    gort_exit();
}

TEST_GO(exit_in_a_plain_thread, .crash = "^gort: fatal: gort_exit: not in a goroutine")
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, exit_in_thread, NULL), 0);
    for (;;)
        gort_yield();
}

TEST_GO(unlock_without_lock,
        .crash = "^gort: fatal: gort_unlock_thread without gort_lock_thread \\[goroutine 1 \\(main\\)\\]")
{
    gort_lock_thread();
    gort_lock_thread();
    gort_unlock_thread();
    gort_unlock_thread();
    gort_unlock_thread();
}

static void end_locked(void *unused)
{
    (void)unused;
    gort_lock_thread();
    gort_lock_thread();
}

static void unlock(void *unused)
{
    (void)unused;
    gort_unlock_thread();
}

/* The record of one that ended locked is used again: its count is not. */
TEST_GO(unlock_without_lock_in_a_used_record, .procs = "1",
        .crash = "^gort: fatal: gort_unlock_thread without")
{
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(gort_go(end_locked, NULL), 0);
        while (gort_count() > 1)
            gort_yield();
    }
    CHECK_EQ(gort_go(unlock, NULL), 0);
    while (gort_count() > 1)
        gort_yield();
}

TEST_GO(wg_below_zero, .crash = "^gort: fatal: .*below zero.*\\[goroutine 1 \\(main\\)\\]")
{
    gort_wg wg = {0};
    gort_wg_add(&wg, 1);
    gort_wg_done(&wg);
    gort_wg_done(&wg);
}

TEST(wg_below_zero_outside_a_run, .crash = "^gort: fatal: .*below zero")
{
    gort_wg wg = {0};
    gort_wg_add(&wg, -1);
}

TEST(wg_waits_outside_a_run, .crash = "^gort: fatal: .*no run")
{
    gort_wg wg = {0};
    gort_wg_add(&wg, 1);
    gort_wg_wait(&wg);
}

static void named_mistake(void *unused)
{
    (void)unused;
    gort_unlock_thread();
}

TEST_GO(
    the_line_names_the_goroutine, .procs = "2",
    .crash =
        "^gort: fatal: .* \\[goroutine [0-9]+ \\(culprit\\)\\]$\n^goroutine [0-9]+ \\(culprit\\) \\[running")
{
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "culprit"}, named_mistake, NULL), 0);
    for (;;)
        gort_yield();
}

static atomic_int ready;

static void crash_together(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < 4)
        ;
    gort_unlock_thread();
}

/* Several at once: one line, one dump. */
static void crash_all(void)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(crash_together, NULL), 0);
    crash_together(NULL);
}

TEST_GO(many_at_once_report_once, .env = "GORT_MAXPROCS=4",
        .crash = "\\A(?![\\s\\S]*fatal[\\s\\S]*fatal)[\\s\\S]*fatal: gort_unlock_thread")
{
    crash_all();
}

static gort_wg never;

static void lock_and_wait(void *unused)
{
    (void)unused;
    gort_lock_thread();
    gort_wg_wait(&never);
}

static int too_many_threads(void *unused)
{
    (void)unused;
    gort_wg_add(&never, 1);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_go(lock_and_wait, NULL), 0);
    for (;;)
        gort_yield();
}

TEST(too_many_threads_is_said, .env = "GORT_DEBUG=threads=fatal",
     .crash = "^gort: fatal: .*more than 20 threads")
{
    gort_run_with(&(gort_config){.max_threads = 20}, too_many_threads, NULL);
}

static void block_unannounced(void *unused)
{
    (void)unused;
    for (;;)
        pause();
}

static int too_many_blocked(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_go(block_unannounced, NULL), 0);
    for (;;)
        gort_yield();
}

TEST(too_many_blocked_threads_are_said, .env = "GORT_DEBUG=threads=fatal",
     .crash = "^gort: fatal: .*more than 20 threads")
{
    gort_run_with(&(gort_config){.max_threads = 20}, too_many_blocked, NULL);
}

static void returns_in_a_blocking_call(void *arg)
{
    (void)arg;
    gort_block_enter();
    gort_block_enter();
}

TEST_GO(end_in_a_blocking_call, .crash = "^gort: fatal: .*ended between gort_block_enter.*\\[goroutine 2\\]$")
{
    gort_go(returns_in_a_blocking_call, NULL);
    gort_sleep(30 * GORT_SEC);
}

static int main_returns_in_a_blocking_call(void *arg)
{
    (void)arg;
    gort_block_enter();
    return 0;
}

TEST(main_ends_in_a_blocking_call,
     .crash = "^gort: fatal: .*ended between gort_block_enter.*\\[goroutine 1 \\(main\\)\\]$")
{
    gort_run(main_returns_in_a_blocking_call, NULL);
}

TEST_GO(block_leave_without_enter,
        .crash = "^gort: fatal: gort_block_leave without gort_block_enter.*\\[goroutine 1")
{
    gort_block_enter();
    gort_block_leave();
    gort_block_leave();
}

static intptr_t leaves(void *arg)
{
    (void)arg;
    gort_block_leave();
    return 0;
}

TEST_GO(block_leave_in_block, .crash = "^gort: fatal: gort_block_leave without gort_block_enter")
{
    gort_block(leaves, NULL);
}

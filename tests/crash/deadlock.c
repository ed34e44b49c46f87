/* SPDX-License-Identifier: MIT */
/*
 * deadlock.c - when all goroutines sleep and nothing can wake them, the program says so and who waits for
 * what; and it never says so when something still can.
 * Covers: src/sched/life/supervisor.c
 */
#include <gort.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

static gort_wg never = {0}, done = {0};
static atomic_bool flag;

static void wait_never(void *unused)
{
    (void)unused;
    gort_wg_wait(&never);
}

static void wait_never_locked(void *unused)
{
    gort_lock_thread();
    wait_never(unused);
}

#define DEADLOCK "^gort: fatal: all goroutines are asleep.* - deadlock!$\n"

TEST_GO(
    main_alone, .procs = "1,2,4", .fuzz = true,
    .crash =
        "^gort: fatal: all goroutines are asleep - deadlock!$\n^goroutine 1 \\(main\\) \\[waiting: wait group\\](, stack [0-9]+K of 8192K)?$")
{
    gort_wg_add(&never, 1);
    gort_wg_wait(&never);
}

TEST_GO(
    all_are_listed, .procs = "1,2,4",
    .crash = DEADLOCK
    "^goroutine 1 \\(main\\) \\[waiting: wait group\\](, stack [0-9]+K of 8192K)?$\n"
    "^goroutine [0-9]+ \\(first\\) \\[waiting: wait group\\] created by goroutine 1(, stack [0-9]+K of 256K)?, runs wait_never\\+0x0 \\(deadlock\\+0x[0-9a-f]+\\)$\n"
    "^goroutine [0-9]+ \\(second\\) \\[waiting: wait group\\] created by goroutine 1(, stack [0-9]+K of 256K)?, runs wait_never\\+0x0 .*$\n"
    "^goroutine [0-9]+ \\[waiting: wait group, locked to thread\\] created by goroutine 1(, stack [0-9]+K of 256K)?, runs wait_never_locked\\+0x0 .*$\n"
    "^gort: 4 goroutines")
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "first"}, wait_never, NULL), 0);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "second"}, wait_never, NULL), 0);
    CHECK_EQ(gort_go(wait_never_locked, NULL), 0);
    gort_wg_wait(&never);
}

TEST_GO(main_is_locked, .procs = "1,2,4", .fuzz = true,
        .crash = DEADLOCK "^goroutine 1 \\(main\\) \\[waiting: wait group, locked")
{
    gort_wg_add(&never, 1);
    gort_lock_thread();
    gort_wg_wait(&never);
}

TEST_GO(another_is_locked, .procs = "1,2,4", .fuzz = true, .crash = DEADLOCK)
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(wait_never_locked, NULL), 0);
    gort_yield();
    gort_wg_wait(&never);
}

TEST_GO(
    main_has_exited, .procs = "1,2,4", .fuzz = true,
    .crash =
        "^gort: fatal: all goroutines are asleep.*main.* - deadlock!$\n^goroutine [0-9]+ \\[waiting: wait group")
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(wait_never, NULL), 0);
    gort_exit();
}

static void nothing(void *unused)
{
    (void)unused;
}

TEST_GO(after_a_lot_of_work, .procs = "1,2,4", .fuzz = true, .crash = DEADLOCK)
{
    gort_wg_add(&never, 1);
    for (int i = 0; i < 10000; i++)
        CHECK_EQ(gort_go(i % 100 ? nothing : wait_never, NULL), 0);
    gort_wg_wait(&never);
}

TEST_GO(after_changes_of_maxprocs, .procs = "1,4", .fuzz = true, .crash = DEADLOCK)
{
    gort_wg_add(&never, 1);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_go(wait_never, NULL), 0);
        gort_maxprocs(1 + i % 6);
    }
    gort_wg_wait(&never);
}

static void *attach_and_end(void *unused)
{
    (void)unused;
    CHECK_GE(gort_count(), 1);
    atomic_store(&flag, true);
    usleep(50000);
    return NULL;
}

TEST_GO(the_last_thread_that_could_help_ends, .procs = "1,2", .fuzz = true, .crash = DEADLOCK)
{
    pthread_t t;
    gort_wg_add(&never, 1);
    CHECK_EQ(pthread_create(&t, NULL, attach_and_end, NULL), 0);
    while (!atomic_load(&flag))
        gort_yield();
    gort_wg_wait(&never);
}

/* --- no false alarm ------------------------------------------------------------------------------------ */

static void *attach_and_wake(void *unused)
{
    (void)unused;
    CHECK_GE(gort_count(), 1);
    atomic_store(&flag, true);
    usleep(100000); /* long enough for everybody to fall asleep; shorter would be fine, too */
    gort_wg_done(&done);
    return NULL;
}

TEST_GO(a_plain_thread_may_still_wake_them, .procs = "1,2,4", .fuzz = true)
{
    pthread_t t;
    gort_wg_add(&done, 1);
    CHECK_EQ(pthread_create(&t, NULL, attach_and_wake, NULL), 0);
    while (!atomic_load(&flag))
        gort_yield();
    gort_wg_wait(&done);
    pthread_join(t, NULL);
}

static int fds[2];

static void *write_later(void *unused)
{
    usleep(100000);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    return unused;
}

static void read_and_wake(void *unused)
{
    char c;
    (void)unused;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    gort_wg_done(&done);
}

TEST_GO(one_blocks_in_a_call, .procs = "1,2,4", .fuzz = true)
{
    pthread_t t;
    CHECK_EQ(pipe(fds), 0);
    gort_wg_add(&done, 1);
    CHECK_EQ(pthread_create(&t, NULL, write_later, NULL), 0); /* never calls gort */
    CHECK_EQ(gort_go(read_and_wake, NULL), 0);
    gort_wg_wait(&done);
    pthread_join(t, NULL);
}

static void compute_and_wake(void *unused)
{
    (void)unused;
    for (int64_t until = gort_in(100 * GORT_MS); gort_now() < until;)
        ;
    gort_wg_done(&done);
}

TEST_GO(one_computes, .procs = "1,2,4", .fuzz = true)
{
    gort_wg_add(&done, 1);
    CHECK_EQ(gort_go(compute_and_wake, NULL), 0);
    gort_wg_wait(&done);
}

/* Parks and wakes as fast as it goes, with Ps falling idle all the time: the check must not see a gap. */
static void short_one(void *unused)
{
    (void)unused;
}

TEST_GO(never_while_they_wake_each_other, .procs = "1,2,4", .fuzz = true)
{
    for (long i = test_scaled(50000, 5000); i; i--) {
        gort_wg wg = {0};
        CHECK_EQ(gort_wg_go(&wg, short_one, NULL), 0);
        gort_wg_wait(&wg);
        if (i % 100 == 0)
            gort_maxprocs(1 + (int)(i / 100 % 4));
    }
}

static void tied_turn(void *unused)
{
    (void)unused;
    gort_lock_thread();
    gort_yield();
    gort_unlock_thread();
}

TEST_GO(never_while_tied_ones_take_turns, .procs = "1,2,4", .fuzz = true)
{
    for (long i = test_scaled(3000, 300); i; i--) {
        gort_wg wg = {0};
        CHECK_EQ(gort_wg_go(&wg, tied_turn, NULL), 0);
        CHECK_EQ(gort_wg_go(&wg, tied_turn, NULL), 0);
        gort_wg_wait(&wg);
    }
}

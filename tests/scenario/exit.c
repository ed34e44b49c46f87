/* SPDX-License-Identifier: MIT */
/*
 * exit.c - how goroutines and runs end: handlers and keys, gort_exit from any depth, main's return with
 * others queued, waiting, computing or blocked, and what those may still do afterwards.
 * Covers: src/sched/core/gmain.c src/sched/life/run.c
 */
#include <gort.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static atomic_long counter;

static void *nothing(void *unused)
{
    return unused;
}

static bool few_threads(void *n)
{
    return test_thread_count() <= *(int *)n;
}

/* The threads before a run. Sanitizers and emulators may have one of their own: that one counts. The
 * kernel counts a thread a moment longer than it takes to join it. */
static int threads_before(void)
{
    pthread_t t;
    int most = test_under_sanitizer() || test_under_emulator() ? 2 : 1;
    CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
    pthread_join(t, NULL);
    CHECK(test_eventually(few_threads, &most, 20));
    return test_thread_count();
}

/* Whoever was between two calls ends at the next one. But an emulator waits for locks of its own in the
 * middle of anything; that looks like a goroutine asleep in a call, which stays there for good. */
static bool threads_end(int before)
{
    return test_under_emulator() || test_eventually(few_threads, &before, 20);
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

/* --- exit handlers ------------------------------------------------------------------------------ */

static char text[64];

static void append(void *what)
{
    strcat(text, what);
}

static void append_later(void *what)
{
    strcat(text, what);
    CHECK_EQ(gort_on_exit(append, "4"), 0);
}

static void (*volatile exit_fn)(void) = gort_exit; /* the compiler need not know that it does not return */

static __attribute__((noinline)) void leave_from_below(int depth)
{
    volatile char pad[100];
    pad[0] = (char)depth;
    if (depth == 0) {
        exit_fn();
        CHECK_MSG(pad[0] != 0, "gort_exit returned");
        return;
    }
    leave_from_below(depth - 1);
    pad[1] = pad[0]; /* keeps the frame */
}

static void with_handlers(void *by_exit)
{
    CHECK_EQ(gort_on_exit(append, "1"), 0);
    CHECK_EQ(gort_on_exit(append, "2"), 0);
    CHECK_EQ(gort_on_exit(append_later, "3"), 0);
    if (by_exit)
        leave_from_below(50);
}

TEST_GO(handlers_run_last_first, .procs = "1,2")
{
    CHECK_EQ(gort_go(with_handlers, NULL), 0);
    settle();
    CHECK_STR(text, "3421");
    text[0] = '\0';
    CHECK_EQ(gort_go(with_handlers, text), 0);
    settle();
    CHECK_STR(text, "3421");
}

static void count_handler(void *unused)
{
    (void)unused;
    gort_yield(); /* a handler is ordinary code of its goroutine */
    CHECK_GT(gort_id(), 1);
    atomic_fetch_add(&counter, 1);
}

static void exit_deep(void *depth)
{
    CHECK_EQ(gort_on_exit(count_handler, NULL), 0);
    leave_from_below((int)(intptr_t)depth);
}

TEST_GO(exit_ends_only_its_goroutine, .procs = "1,2,4", .fuzz = true)
{
    long n = test_scaled(20000, 2000);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(gort_go(exit_deep, (void *)(intptr_t)(i % 100)), 0);
        if (i % 100 == 0)
            gort_yield();
    }
    yield_until(n);
    settle();
}

static void *exit_handler_in_thread(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_on_exit(append, "thread"), 0);
    return NULL;
}

TEST_GO(a_plain_thread_runs_handlers_at_its_end)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, exit_handler_in_thread, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_STR(text, "thread");
}

/* --- main --------------------------------------------------------------------------------------- */

static int return_arg(void *arg)
{
    return (int)(intptr_t)arg;
}

TEST(the_value_of_main_is_kept)
{
    static const int values[] = {0, 1, 7, 255, -1, 1000000, INT32_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        CHECK_EQ(gort_run(return_arg, (void *)(intptr_t)values[i]), values[i]);
}

static void work_on(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++)
        gort_yield();
    atomic_fetch_add(&counter, 1);
}

static int exit_main(void *handler)
{
    if (handler)
        CHECK_EQ(gort_on_exit(append, handler), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_go(work_on, NULL), 0);
    leave_from_below(20);
    return 99;
}

TEST(the_run_goes_on_after_main_exits, .procs = "1,2,4", .fuzz = true)
{
    CHECK_EQ(gort_run(exit_main, "x"), 0);
    CHECK_EQ(atomic_load(&counter), 10);
    CHECK_STR(text, "x");
    CHECK_EQ(gort_run(return_arg, (void *)3), 3); /* and another run works */
}

static int exit_alone(void *unused)
{
    (void)unused;
    gort_exit();
}

TEST(a_run_ends_when_main_exits_alone, .procs = "1,2")
{
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_run(exit_alone, NULL), 0);
}

static int handlers_of_main(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_on_exit(append, "m"), 0);
    return 4;
}

TEST(handlers_of_main_run_when_it_returns)
{
    CHECK_EQ(gort_run(handlers_of_main, NULL), 4);
    CHECK_STR(text, "m");
}

/* --- main returns while others are about ---------------------------------------------------------- */

static gort_wg never;

static void wait_for_ever(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(&never);
    CHECK_MSG(false, "woken by nobody");
}

static void yield_for_ever(void *unused)
{
    (void)unused;
    for (;;)
        gort_yield();
}

static int leave_runnable(void *unused)
{
    (void)unused;
    memset(&never, 0, sizeof never);
    gort_wg_add(&never, 1);
    atomic_store(&counter, 0);
    long n = test_scaled(500, 100);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(gort_go(yield_for_ever, NULL), 0);
        CHECK_EQ(gort_go(wait_for_ever, NULL), 0);
        CHECK_EQ(gort_go_copy(yield_for_ever, text, sizeof text), 0);
    }
    yield_until(n);
    return 8;
}

TEST(main_returns_with_others_queued_and_waiting, .procs = "1,2,4,64", .fuzz = true)
{
    long early = 0;
    int threads = 0, vmas = 0;
    test_debug("preempt=off"); /* the thread of one that is stopped when its run ends stays */
    for (int i = 0; i < 20; i++) {
        int64_t from = gort_now();
        CHECK_EQ(gort_run(leave_runnable, NULL), 8);
        CHECK_LT(gort_now() - from, test_seconds(20));
        if (i == 4) {
            early = test_rss_kb();
            threads = test_thread_count();
            vmas = test_vma_count();
        }
    }
    if (test_under_emulator() || test_under_valgrind())
        return;
    CHECK(test_eventually(few_threads, &threads, 20));
    CHECK_LT(test_vma_count(),
             vmas + 500); /* thousands were left behind; threads leave a few, their stacks */
    if (!test_under_sanitizer())
        CHECK_LT(test_rss_kb(), early + 4096);
}

#define NOTERS 50
#define ENDS   20
static atomic_int ended, notes[ENDS][NOTERS];

static void note_after_end(int round, int me)
{
    for (;;) {
        if (atomic_load(&ended) > round)
            atomic_fetch_add(&notes[round][me], 1);
        gort_yield();
    }
}

static int leave_noters(void *round)
{
    for (int i = 0; i < NOTERS; i++)
        CHECK_EQ(GORT_GO(note_after_end, (int)(intptr_t)round, i), 0);
    for (int i = 0; i < 100; i++)
        gort_yield();
    return gort_maxprocs(0);
}

/* Whoever is between two calls when main returns may come as far as its next call, once, and no further. */
TEST(nobody_resumes_after_the_end, .procs = "1,2,4", .fuzz = true)
{
    int procs = 0;
    for (int round = 0; round < ENDS; round++) {
        procs = gort_run(leave_noters, (void *)(intptr_t)round);
        atomic_store(&ended, round + 1);
        CHECK_EQ(gort_run(return_arg, (void *)1), 1); /* nor in the next run */
        usleep(1000);
    }
    for (int round = 0; round < ENDS; round++) {
        int noted = 0;
        for (int i = 0; i < NOTERS; i++) {
            int n = atomic_load(&notes[round][i]);
            CHECK_LE(n, 1);
            noted += n;
        }
        CHECK_LE(noted, procs);
    }
}

static atomic_bool quit_computing, computing;

static void compute(void *unused)
{
    (void)unused;
    atomic_store(&computing, true);
    for (volatile long i = 0; !atomic_load_explicit(&quit_computing, memory_order_relaxed); i++)
        ;
}

static int leave_one_computing(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(compute, NULL), 0);
    while (!atomic_load(&computing))
        gort_yield();
    return 9;
}

TEST(main_returns_while_one_computes, .procs = "2,4", .fuzz = true)
{
    int before = threads_before();
    int64_t from = gort_now();
    CHECK_EQ(gort_run(leave_one_computing, NULL), 9);
    CHECK_LT(gort_now() - from, test_seconds(20));
    int with_it = before + 1;
    CHECK(test_eventually(few_threads, &with_it, 20));
    CHECK_EQ(gort_run(return_arg, (void *)2), 2); /* beside it */
    quit_computing = true;                        /* if it was not frozen it ends now, without harm */
    usleep(10000);
    CHECK_EQ(gort_run(return_arg, (void *)3), 3);
    CHECK(test_eventually(few_threads, &with_it, 20));
}

/* --- blocked at the end ---------------------------------------------------------------------------- */

static int fds[2];
static gort_wg late_wg;
static gort_key late_key;

enum {
    LATE_RETURN,
    LATE_YIELD,
    LATE_GO,
    LATE_EXIT,
    LATE_WG,
    LATE_COUNT,
    LATE_KEY,
    LATE_ON_EXIT,
    LATE_MAXPROCS,
    LATE_LOCK,
    LATES
};

static void late_call(int what)
{
    switch (what) {
    case LATE_YIELD:
        gort_yield();
        break;
    case LATE_GO:
        gort_go(wait_for_ever, NULL);
        break;
    case LATE_EXIT:
        gort_exit();
    case LATE_WG:
        gort_wg_wait(&late_wg);
        break;
    case LATE_COUNT:
        gort_count();
        break;
    case LATE_KEY:
        gort_key_set(late_key, &late_key);
        break;
    case LATE_ON_EXIT:
        gort_on_exit(append, "late");
        break;
    case LATE_MAXPROCS:
        gort_maxprocs(3);
        break;
    case LATE_LOCK:
        gort_lock_thread();
        break;
    default:
        return;
    }
    CHECK_MSG(false, "call %d of a goroutine of an ended run returned", what);
}

static void block(int what)
{
    char c;
    atomic_fetch_add(&counter, 1);
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_MSG(gort_id() > 1, "a goroutine keeps its number as long as it is there");
    late_call(what);
}

static int leave_blocked(void *what)
{
    atomic_store(&counter, 0);
    gort_wg_add(&late_wg, 1);
    if ((intptr_t)what % 2)
        gort_yield();
    CHECK_EQ(GORT_GO(block, (int)(intptr_t)what), 0);
    yield_until(1);
    return 5;
}

static int wake_late(void *unused)
{
    (void)unused;
    CHECK_EQ(write(fds[1], "x", 1), 1);
    /* This run goes about its business while the one of the last run wakes up. */
    for (int i = 0; i < 100; i++) {
        gort_wg wg = {0};
        for (int k = 0; k < 10; k++)
            CHECK_EQ(gort_wg_go(&wg, append, ""), 0);
        gort_wg_wait(&wg);
    }
    return 6;
}

static void check_late(int what, bool in_next_run)
{
    int before = threads_before();
    int64_t from = gort_now();
    CHECK_EQ(gort_run(leave_blocked, (void *)(intptr_t)what), 5);
    CHECK_LT(gort_now() - from, test_seconds(20));
    int with_blocked = before + 1;
    CHECK(test_eventually(few_threads, &with_blocked, 20));
    if (in_next_run)
        CHECK_EQ(gort_run(wake_late, NULL), 6);
    else
        CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_MSG(test_eventually(few_threads, &before, 20), "call %d: its thread is still there", what);
}

TEST(one_blocked_at_the_end_ends_when_it_returns, .procs = "2,4")
{
    if (test_under_emulator())
        SKIP("only natively: the emulator's own threads would be counted too");
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(gort_key_create(&late_key, NULL), 0);
    for (int what = 0; what < LATES; what++)
        check_late(what, false);
}

TEST(one_blocked_at_the_end_wakes_in_the_next_run, .procs = "2,4", .fuzz = true)
{
    if (test_under_emulator())
        SKIP("only natively: the emulator's own threads would be counted too");
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(gort_key_create(&late_key, NULL), 0);
    for (int what = 0; what < LATES; what++)
        check_late(what, true);
}

TEST(many_blocked_ones_leave_nothing, .procs = "2")
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: the memory of the tool would be counted too");
    CHECK_EQ(pipe(fds), 0);
    int vmas = 0, open_fds = test_fd_count();
    long rss = 0;
    for (int i = 0; i < 60; i++) {
        check_late(LATE_RETURN, i % 2);
        if (i == 10) {
            vmas = test_vma_count();
            rss = test_rss_kb();
        }
    }
    CHECK_EQ(test_fd_count(), open_fds);
    if (test_under_sanitizer())
        return;                            /* they keep something for each thread there was */
    CHECK_LT(test_vma_count(), vmas + 40); /* less than one a run; libc keeps some stacks of threads */
    CHECK_LT(test_rss_kb(), rss + 1024);
}

static void sleep_long(void *unused)
{
    (void)unused;
    struct timespec an_hour = {3600, 0};
    atomic_fetch_add(&counter, 1);
    nanosleep(&an_hour, NULL);
}

static int leave_sleeper(void *unused)
{
    (void)unused;
    atomic_store(&counter, 0);
    CHECK_EQ(gort_go(sleep_long, NULL), 0);
    yield_until(1);
    return 1;
}

TEST(main_returns_while_one_sleeps, .procs = "2,4")
{
    for (int i = 0; i < 5; i++)
        CHECK_EQ(gort_run(leave_sleeper, NULL), 1);
}

static void locked_and_waiting(void *unused)
{
    (void)unused;
    gort_lock_thread();
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(&never);
}

static int leave_locked(void *unused)
{
    (void)unused;
    memset(&never, 0, sizeof never);
    gort_wg_add(&never, 1);
    atomic_store(&counter, 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_go(locked_and_waiting, NULL), 0);
    yield_until(20);
    return 1;
}

TEST(main_returns_with_locked_ones_waiting, .procs = "1,2,4", .fuzz = true)
{
    int before = threads_before();
    for (int i = 0; i < (test_under_valgrind() ? 3 : 10); i++)
        CHECK_EQ(gort_run(leave_locked, NULL), 1);
    CHECK(threads_end(before));
}

static int main_locked(void *unused)
{
    (void)unused;
    gort_lock_thread();
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_go(yield_for_ever, NULL), 0);
    return 2;
}

TEST(main_returns_while_locked, .procs = "1,2,4", .fuzz = true)
{
    int before = threads_before();
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_run(main_locked, NULL), 2);
    CHECK(threads_end(before));
}

/* --- waiting in a blocking call at the end ----------------------------------------------------------- */

static gort_chan *silent;
static atomic_int sent_away;

/* As a plain thread it is told, and what it does then it does without a run. */
static intptr_t wait_for_nobody(void *unused)
{
    int v;
    (void)unused;
    atomic_fetch_add(&counter, 1);
    CHECK_EQ(gort_chan_recv(silent, &v), -ECANCELED);
    CHECK_EQ(gort_chan_recv(silent, &v), -ECANCELED);
    CHECK_EQ(gort_chan_recv_until(silent, &v, GORT_TRY), -EAGAIN);
    int err = gort_world_stop();
    CHECK(err == -ESRCH || err == -ECANCELED); /* the next run may be on, but the caller is not of it */
    atomic_fetch_add(&sent_away, 1);
    return 0;
}

static void wait_in_call(void *how)
{
    if (how)
        gort_block_enter();
    if (how)
        wait_for_nobody(NULL);
    else
        gort_block(wait_for_nobody, NULL);
    gort_block_leave();
    CHECK_MSG(false, "a goroutine of an ended run goes on");
}

static int leave_waiting(void *unused)
{
    (void)unused;
    atomic_store(&counter, 0);
    for (intptr_t i = 0; i < 6; i++)
        CHECK_EQ(gort_go(wait_in_call, (void *)(i & 1)), 0);
    yield_until(6);
    gort_sleep(GORT_MS);
    return 4;
}

static bool all_sent_away(void *n)
{
    return atomic_load(&sent_away) == *(int *)n;
}

TEST(main_returns_while_some_wait_in_calls, .procs = "1,2,4", .fuzz = true)
{
    silent = gort_chan_new(sizeof(int), 0);
    int before = threads_before();
    for (int n = 6; n <= 60; n += 6) {
        CHECK_EQ(gort_run(leave_waiting, NULL), 4);
        CHECK(test_eventually(all_sent_away, &n, 20));
    }
    CHECK(test_eventually(few_threads, &before, 20));
    gort_chan_unref(silent);
}

/* In the kernel at the end; back from there they compute, and call nobody. */
static intptr_t read_and_compute(void *for_ever)
{
    char c;
    CHECK_EQ(gort_yield(), 0); /* from here on a plain thread, in a call */
    atomic_fetch_add(&counter, 1);
    CHECK_EQ(read(fds[0], &c, 1), 1);
    for (volatile long i = 0; for_ever || i < 10000000; i++)
        ;
    return 0;
}

static void compute_late(int how)
{
    char c;
    if (how == 0) {
        gort_block(read_and_compute, NULL); /* comes to its end by itself */
    } else if (how == 1) {
        gort_block_enter();
        read_and_compute(&c);
    } else {
        if (how == 2)
            gort_block_enter();
        atomic_fetch_add(&counter, 1);
        CHECK_EQ(read(fds[0], &c, 1), 1);
        for (volatile long i = 0;; i++)
            ;
    }
    CHECK_MSG(false, "a goroutine of an ended run goes on");
}

static int leave_four(void *unused)
{
    (void)unused;
    atomic_store(&counter, 0);
    for (int how = 0; how < 4; how++)
        CHECK_EQ(GORT_GO(compute_late, how), 0);
    yield_until(4);
    gort_sleep(2 * GORT_MS);
    return 8;
}

TEST(those_who_compute_after_the_end_are_ended, .procs = "1,2")
{
    if (test_under_sanitizer() || test_under_emulator())
        SKIP("only natively, without sanitizers: they keep signals back, or have threads of their own");
    CHECK_EQ(pipe(fds), 0);
    int before = threads_before();
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(gort_run(leave_four, NULL), 8);
        CHECK_EQ(write(fds[1], "1234", 4), 4);
        CHECK(test_eventually(few_threads, &before, 20));
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * mask.c - the signal mask belongs to the goroutine: it keeps its own across parks and threads, and hands
 * back a clean thread.
 * Covers: src/sched/core/mask.c
 */
#include <signal.h>
#include <sys/wait.h>

#include "waiting.h"

static sigset_t usual; /* what a goroutine starts with */
static atomic_long done;

static sigset_t mask_now(void)
{
    sigset_t now;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    return now;
}

static bool blocks(int signo)
{
    sigset_t now = mask_now();
    return sigismember(&now, signo);
}

static void check_usual(void)
{
    sigset_t now = mask_now();
    for (int i = 1; i < 65; i++)
        CHECK_MSG(sigismember(&now, i) == sigismember(&usual, i), "a goroutine starts with signal %d %s", i,
                  sigismember(&now, i) ? "blocked" : "unblocked");
}

static void block_all(bool process)
{
    sigset_t all, old;
    sigfillset(&all);
    CHECK_EQ(process ? sigprocmask(SIG_SETMASK, &all, &old) : pthread_sigmask(SIG_SETMASK, &all, &old), 0);
}

/* --- main goes on --------------------------------------------------------------------------------- */

enum { ENDS, EXITS, YIELDS, SLEEPS, PARKS, BLOCKS, LOCKED, WAYS };

static gort_chan *never;

static intptr_t brief(void *unused)
{
    (void)unused;
    CHECK(blocks(SIGTERM));
    return 0;
}

static void block_and(int way, int i)
{
    check_usual();
    if (way == LOCKED)
        gort_lock_thread();
    block_all(i % 2);
    switch (way) {
    case EXITS:
        atomic_fetch_add(&done, 1);
        gort_exit();
    case YIELDS:
    case LOCKED:
        gort_yield();
        break;
    case SLEEPS:
        CHECK_EQ(gort_sleep(GORT_US), 0);
        break;
    case PARKS:
        CHECK_EQ(gort_chan_recv_until(never, NULL, gort_in(GORT_MS)), -ETIMEDOUT);
        break;
    case BLOCKS:
        CHECK_EQ(gort_block(brief, NULL), 0);
        break;
    }
    CHECK(blocks(SIGTERM) && blocks(SIGURG));
    atomic_fetch_add(&done, 1);
}

static atomic_bool enough;

static void compute(void)
{
    check_usual();
    while (!atomic_load_explicit(&enough, memory_order_relaxed))
        __asm__ volatile("");
    atomic_fetch_add(&done, 1);
}

static void main_goes_on(int hogs)
{
    for (int i = 0; i < hogs; i++)
        CHECK_EQ(GORT_GO(compute), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    atomic_store(&enough, true);
}

static void play(int way)
{
    long n = test_scaled(200, 50);
    usual = mask_now();
    never = gort_chan_new(0, 0);
    for (int i = 0; i < n; i++)
        CHECK_EQ(GORT_GO(block_and, way, i), 0);
    await(&done, n);
    main_goes_on(3);
    await(&done, n + 3);
    check_usual();
    settle();
    gort_chan_unref(never);
}

TEST_GO(blocked_and_ended, .procs = "1,2,4", .fuzz = true)
{
    play(ENDS);
}

TEST_GO(blocked_and_exited, .procs = "1,2,4")
{
    play(EXITS);
}

TEST_GO(blocked_and_yielded, .procs = "1,2,4", .fuzz = true)
{
    play(YIELDS);
}

TEST_GO(blocked_and_slept, .procs = "1,2,4", .fuzz = true)
{
    play(SLEEPS);
}

TEST_GO(blocked_and_parked, .procs = "1,2,4", .fuzz = true)
{
    play(PARKS);
}

TEST_GO(blocked_in_a_blocking_call, .procs = "1,2,4")
{
    play(BLOCKS);
}

TEST_GO(blocked_on_a_thread_of_its_own, .procs = "1,2,4")
{
    play(LOCKED);
}

/* They wait with their mask while others compute: the hogs run on threads that are clean. */
TEST_GO(blocked_and_still_there, .procs = "1,2,4")
{
    gort_chan *wake = gort_chan_new(0, 0);
    usual = mask_now();
    never = wake;
    for (int i = 0; i < 50; i++)
        CHECK_EQ(GORT_GO(block_and, PARKS, i), 0);
    main_goes_on(3);
    await(&done, 53);
    settle();
    gort_chan_unref(wake);
}

/* --- it is the goroutine's ------------------------------------------------------------------------ */

static void keep_mask(int signo, bool process)
{
    sigset_t set;
    int first = thread_id(), moved = 0;
    check_usual();
    sigemptyset(&set);
    sigaddset(&set, signo);
    CHECK_EQ(process ? sigprocmask(SIG_BLOCK, &set, NULL) : pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    for (int i = 0; i < 200; i++) {
        if (i % 10 == 0)
            CHECK_EQ(gort_sleep(50 * GORT_US), 0);
        else
            gort_yield();
        moved += thread_id() != first;
        for (int other = SIGRTMIN; other < SIGRTMIN + 8; other++)
            CHECK_EQ(blocks(other), other == signo);
    }
    CHECK_EQ(process ? sigprocmask(SIG_UNBLOCK, &set, NULL) : pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    gort_yield();
    check_usual();
    atomic_fetch_add(&done, moved ? 1001 : 1);
}

TEST_GO(a_mask_goes_with_its_goroutine, .procs = "1,2,4", .fuzz = true)
{
    usual = mask_now();
    for (int i = 0; i < 16; i++)
        CHECK_EQ(GORT_GO(keep_mask, SIGRTMIN + i % 8, i % 3 == 0), 0);
    while (gort_count() > 1) {
        check_usual();
        CHECK_EQ(gort_sleep(10 * GORT_US), 0);
    }
    test_log("%ld of %ld were on other threads", atomic_load(&done) / 1000, atomic_load(&done) % 1000);
    CHECK_EQ(atomic_load(&done) % 1000, 16);
}

static intptr_t change_there(void *signo)
{
    sigset_t set;
    CHECK(blocks(SIGUSR2));
    sigemptyset(&set);
    sigaddset(&set, (int)(intptr_t)signo);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CHECK_EQ(gort_sleep(GORT_US), 0); /* as a plain thread */
    CHECK(blocks(SIGUSR2) && blocks((int)(intptr_t)signo));
    return 0;
}

TEST_GO(blocking_calls_have_the_mask_of_their_caller, .procs = "1,2")
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_block(change_there, (void *)(intptr_t)SIGUSR1), 0);
    CHECK(blocks(SIGUSR2) && blocks(SIGUSR1));
    gort_block_enter();
    CHECK(blocks(SIGUSR2) && blocks(SIGUSR1));
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    CHECK_EQ(gort_sleep(GORT_US), 0);
    gort_block_leave();
    gort_yield();
    CHECK(!blocks(SIGUSR2) && blocks(SIGUSR1));
}

TEST_GO(results_are_those_of_libc)
{
    sigset_t set, old, now;
    sigfillset(&set);
    errno = 4711;
    CHECK_EQ(pthread_sigmask(4711, &set, NULL), EINVAL);
    CHECK_EQ(errno, 4711);
    CHECK_EQ(sigprocmask(4711, &set, NULL), -1);
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(sigprocmask(4711, NULL, &old), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
    now = mask_now();
    CHECK(!sigismember(&now, SIGKILL) && !sigismember(&now, SIGSTOP) && sigismember(&now, SIGUSR1));
    CHECK_EQ(sigprocmask(SIG_SETMASK, &old, &set), 0);
    CHECK(sigismember(&set, SIGUSR1) && !sigismember(&set, 32) && !sigismember(&set, 33));
    CHECK(!blocks(SIGUSR1));
}

/* --- what is not noticed at once ------------------------------------------------------------------ */

static void block_by_system_call(void)
{
    uint64_t all = UINT64_MAX;
    CHECK_EQ(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all), 0);
    atomic_fetch_add(&done, 1);
}

static void hog(void)
{
    while (!atomic_load_explicit(&enough, memory_order_relaxed))
        __asm__ volatile("");
    gort_yield();
    atomic_fetch_add(&done, 1);
}

TEST_GO(a_change_behind_our_back, .procs = "1,2,4", .expect = "blocks signal .* cannot be preempted")
{
    if (test_under_valgrind())
        SKIP("only without valgrind: it keeps all signals back, so nobody can tell who blocks one");
    usual = mask_now();
    for (int i = 0; i < 20; i++)
        CHECK_EQ(GORT_GO(block_by_system_call), 0);
    await(&done, 20);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(hog), 0);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    atomic_store(&enough, true);
    await(&done, 26);
    settle();
}

static void block_and_compute(void)
{
    block_all(false);
    hog();
}

TEST_GO(a_masked_goroutine_that_computes, .procs = "1,2,4", .expect = "blocks signal .* cannot be preempted")
{
    if (test_under_valgrind())
        SKIP("only without valgrind: it keeps all signals back, so nobody can tell who blocks one");
    usual = mask_now();
    for (int i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(block_and_compute), 0);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    atomic_store(&enough, true);
    await(&done, 6);
    check_usual();
    settle();
}

/* --- children ------------------------------------------------------------------------------------- */

static uint64_t mask_of_child(void)
{
    char text[256] = "", *argv[] = {"sh", "-c", "exec grep SigBlk /proc/self/status", NULL};
    gort_command c = {.file = "sh", .argv = argv, .in = GORT_NULL, .out = GORT_PIPE};
    gort_process p;
    CHECK_EQ(gort_spawn(&p, &c), 0);
    CHECK_GT(gort_read_full(p.out, text, sizeof text - 1), 0);
    CHECK_EQ(gort_wait(&p, NULL), 0);
    CHECK_EQ(gort_close(p.out), 0);
    return strtoull(strchr(text, '\t') + 1, NULL, 16);
}

TEST_GO(a_child_has_the_mask_of_its_goroutine, .procs = "1,2", .native = TEST_FORKS)
{
    if (test_under_emulator())
        SKIP("only natively: the emulator has a mask of its own");
    sigset_t set;
    CHECK_EQ(mask_of_child(), 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CHECK_EQ(mask_of_child(), UINT64_C(1) << (SIGUSR2 - 1));
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    CHECK_EQ(mask_of_child(), 0);
}

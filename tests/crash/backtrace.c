/* SPDX-License-Identifier: MIT */
/*
 * backtrace.c - a dump shows the calls of each goroutine, whatever it does: with function, file and line,
 * inlined functions too.
 * Covers: src/observe/report.c src/observe/stacks.c src/os/linux/walk.c src/os/linux/source.c src/os/linux/dwarf.c
 * Covers: src/os/linux/form.c src/os/linux/lines.c src/observe/object.c src/observe/crash.c src/os/linux/crash.c
 */
#include <gort.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#define NOINLINE __attribute__((noinline))
#define AFTER()                                                                                              \
    __asm__ volatile("" : : : "memory") /* so that a call is not the last thing that a function does */
#define AT(function) "^    " function " at [^ ]*backtrace\\.c:[0-9]+"

static gort_wg never;
static atomic_bool stop;
static atomic_int there;
static int fds[2];

static void dump_when(int n)
{
    while (atomic_load(&there) < n)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_EQ(gort_sleep(20 * GORT_MS), 0);
    gort_dump(2);
}

/* --- parked --------------------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void inlined_wait(gort_wg *wg)
{
    gort_wg_wait(wg);
    AFTER();
}

static NOINLINE void outer_wait(gort_wg *wg)
{
    inlined_wait(wg);
    AFTER();
}

static void waits(void *wg)
{
    atomic_fetch_add(&there, 1);
    outer_wait(wg);
    AFTER();
}

TEST_GO(parked, .procs = "1,2,4",
        .expect = AT("inlined_wait") " \\(inlined\\)\n" AT(
            "outer_wait") " \\(backtrace\\+0x[0-9a-f]+\\)\n" AT("waits") "\n" AT("test_go_parked"))
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(waits, &never), 0);
    dump_when(1);
    AFTER();
}

static NOINLINE void start_two(gort_wg *done)
{
    CHECK_EQ(gort_go(waits, &never), 0);
    CHECK_EQ(gort_wg_go(done, waits, &never), 0);
    CHECK_EQ(gort_go_copy(waits, &never, sizeof never), 0); /* waits for nothing */
    AFTER();
}

static void runs_once(void *unused)
{
    (void)unused;
}

/* Of one that has run, and of one that has not. */
TEST_GO(
    created_by, .procs = "1",
    .expect =
        "^  created by$\n    start_two at [^ ]*backtrace\\.c:[0-9]+\n\\(has not run yet\\)$\n  created by$\n    test_go_created_by at")
{
    gort_wg done = {0};
    gort_wg_add(&never, 1);
    start_two(&done);
    dump_when(2);
    for (int i = 0; i < 5; i++) { /* sysmon may think that the dump blocks */
        CHECK_EQ(gort_go(runs_once, NULL), 0);
        gort_dump(2);
    }
    gort_wg_done(&never);
    gort_wg_wait(&done);
}

static NOINLINE int recurse(int n)
{
    volatile int here = n;
    if (!n)
        gort_wg_wait(&never);
    else
        here += recurse(n - 1);
    return here;
}

static void recurses(void *unused)
{
    (void)unused;
    atomic_fetch_add(&there, 1);
    recurse(500);
    AFTER();
}

TEST_GO(deep, .procs = "1", .expect = "^    \\.\\.\\. 4[0-9][0-9] more calls \\.\\.\\.$\n" AT("recurses"))
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(recurses, NULL), 0);
    dump_when(1);
}

static NOINLINE void aligned_wait(void *wg)
{
    _Alignas(64) volatile char much[64] = {0}; /* a frame that the stack is aligned for */
    much[0] = 1;
    gort_wg_wait(wg);
    AFTER();
    CHECK_EQ(much[0], 1);
}

static void waits_aligned(void *wg)
{
    atomic_fetch_add(&there, 1);
    aligned_wait(wg);
    AFTER();
}

TEST_GO(aligned, .procs = "1", .expect = AT("aligned_wait") "\n" AT("waits_aligned"))
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(waits_aligned, &never), 0);
    dump_when(1);
}

/* --- what they wait for ---------------------------------------------------------------------------------- */

static gort_chan *ch;
static gort_mutex held;

static void receives(void *unused)
{
    char c;
    (void)unused;
    atomic_fetch_add(&there, 1);
    gort_chan_recv(ch, &c);
}

static void sleeps(void *unused)
{
    (void)unused;
    atomic_fetch_add(&there, 1);
    gort_sleep(3600 * GORT_SEC);
}

static void reads_socket(void *unused)
{
    char c;
    (void)unused;
    atomic_fetch_add(&there, 1);
    gort_read(fds[0], &c, 1);
}

static void locks_held(void *unused)
{
    (void)unused;
    atomic_fetch_add(&there, 1);
    gort_mutex_lock(&held);
}

TEST_GO(
    objects, .procs = "1,2,4",
    .expect =
        "chan receive\\].*, waits for 0\\.[0-9] s, channel 0x[0-9a-f]+ \\(0 of 3 elements, 1 wait to receive\\)$\n"
        "sleep\\].*, waits for 0\\.[0-9] s, (59 min|60 min) left$\n"
        "io read\\].*, waits for 0\\.[0-9] s, fd [0-9]+ \\(pipe\\)$\n"
        "mutex\\].*, waits for 0\\.[0-9] s, mutex 0x[0-9a-f]+$\n")
{
    ch = gort_chan_new(1, 3);
    CHECK_EQ(pipe(fds), 0);
    gort_mutex_lock(&held);
    CHECK_EQ(gort_go(receives, NULL), 0);
    CHECK_EQ(gort_go(sleeps, NULL), 0);
    CHECK_EQ(gort_go(reads_socket, NULL), 0);
    CHECK_EQ(gort_go(locks_held, NULL), 0);
    dump_when(4);
}

TEST_GO(since, .procs = "1,2,4", .expect = "wait group\\].*, waits for 1\\.[0-9] s,")
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_sleep(GORT_SEC), 0); /* a rest in which nobody looks at the clock */
    CHECK_EQ(gort_go(waits, &never), 0);
    CHECK_EQ(gort_sleep(1100 * GORT_MS), 0);
    gort_dump(2);
}

/* --- on a thread ---------------------------------------------------------------------------------------- */

static NOINLINE void compute(void)
{
    atomic_fetch_add(&there, 1);
    while (!atomic_load(&stop))
        ;
    AFTER();
}

static void computes(void *unused)
{
    (void)unused;
    compute();
    AFTER();
}

/* One has the P or the CPU, the other waits for it in the handler; with more Ps both run. */
TEST_GO(computing, .procs = "1,2,4", .expect = AT("compute") "\n" AT("computes"))
{
    if (test_under_valgrind() || test_under_sanitizer())
        SKIP("these deliver signals when they like");
    CHECK_EQ(gort_go(computes, NULL), 0);
    CHECK_EQ(gort_go(computes, NULL), 0);
    for (int i = 0; i < 5; i++) /* on a busy machine a thread may get no CPU for a while */
        dump_when(2);
    atomic_store(&stop, true);
}

static void reads(void *unused)
{
    char c;
    (void)unused;
    atomic_fetch_add(&there, 1);
    CHECK_EQ(read(fds[0], &c, 1), 1);
    AFTER();
}

static void reads_announced(void *unused)
{
    char c;
    (void)unused;
    gort_block_enter();
    atomic_fetch_add(&there, 1);
    ssize_t n = read(fds[0], &c, 1);
    gort_block_leave();
    CHECK_EQ(n, 1);
}

static NOINLINE intptr_t read_aside(void *unused)
{
    char c;
    (void)unused;
    atomic_fetch_add(&there, 1);
    intptr_t n = read(fds[0], &c, 1);
    AFTER();
    return n;
}

static void reads_aside(void *unused)
{
    CHECK_EQ(gort_block(read_aside, unused), 1);
    AFTER();
}

TEST_GO(in_calls, .procs = "1,2,4",
        .expect = AT("reads") "\n" AT("reads_announced") "\n" AT("read_aside") "\n^    gort_block.*\n" AT(
            "reads_aside"))
{
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(gort_go(reads, NULL), 0);
    CHECK_EQ(gort_go(reads_announced, NULL), 0);
    CHECK_EQ(gort_go(reads_aside, NULL), 0);
    dump_when(3);
    CHECK_EQ(write(fds[1], "xxx", 3), 3);
}

static void on_usr1(int signo)
{
    (void)signo;
    gort_dump(2);
    atomic_store(&stop, true);
}

static NOINLINE void interrupted(void)
{
    raise(SIGUSR1);
    while (!atomic_load(&stop))
        ;
    AFTER();
}

TEST_GO(in_a_handler, .procs = "1,2", .expect = AT("interrupted") "\n" AT("test_go_in_a_handler"))
{
    if (test_under_valgrind())
        SKIP("its frames of handlers are its own");
    signal(SIGUSR1, on_usr1);
    interrupted();
    AFTER();
}

TEST_GO(in_a_handler_on_another_stack, .procs = "1,2",
        .expect = AT("interrupted") "\n" AT("test_go_in_a_handler_on_another_stack"))
{
    if (test_under_valgrind())
        SKIP("its frames of handlers are its own");
    struct sigaction a = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &a, NULL);
    interrupted();
    AFTER();
}

/* --- errors --------------------------------------------------------------------------------------------- */

static NOINLINE void breaks(gort_mutex *mu)
{
    gort_mutex_unlock(mu);
    AFTER();
}

TEST_GO(fatal, .procs = "1,2", .crash = "the mutex is not locked\n" AT("breaks") "\n" AT("test_go_fatal"))
{
    gort_mutex mu = {0};
    breaks(&mu);
    AFTER();
}

static gort_mutex first, second;

static void locks(gort_mutex *a, gort_mutex *b)
{
    gort_mutex_lock(a);
    atomic_fetch_add(&there, 1);
    while (atomic_load(&there) < 2)
        gort_yield();
    gort_mutex_lock(b);
    AFTER();
}

static void locks_first(void *unused)
{
    (void)unused;
    locks(&first, &second);
    AFTER();
}

static void locks_second(void *unused)
{
    (void)unused;
    locks(&second, &first);
    AFTER();
}

TEST_GO(deadlock, .procs = "1,2,4", .crash = "deadlock!\n" AT("locks_first") "\n" AT("locks_second"))
{
    CHECK_EQ(gort_go(locks_first, NULL), 0);
    CHECK_EQ(gort_go(locks_second, NULL), 0);
    gort_wg_add(&never, 1);
    gort_wg_wait(&never);
}

static NOINLINE void crash(int how)
{
    volatile int zero = 0;
    int *volatile nowhere = NULL;
    switch (how) {
    case SIGSEGV:
        *nowhere = 1;
        break;
    case SIGFPE: {
        volatile int result = how / zero;
        (void)result;
        break;
    }
    case SIGILL:
        __builtin_trap();
    case SIGBUS:
        raise(SIGBUS);
        break;
    default:
        abort();
    }
    AFTER();
}

static void crashes(void *how)
{
    if (test_under_sanitizer())
        SKIP("the sanitizer has handlers of its own");
    gort_set_name("victim");
    crash((int)(intptr_t)how);
    AFTER();
}

#define CRASH(message)                                                                                       \
    "^gort: " message                                                                                        \
    "[^\\n]* \\[goroutine [0-9]+ \\(victim\\)\\]$\n" AT("crash") "\n" AT("crashes") "\n"                     \
                                                                                    "^  created by$\n"
#define CRASHES(name, how)                                                                                   \
    TEST_GO(name, .procs = "1,2,4", .signal = how, .crash = CRASH(#how))                                     \
    {                                                                                                        \
        CHECK_EQ(gort_go(crashes, (void *)(intptr_t)how), 0);                                                \
        for (;;)                                                                                             \
            CHECK_EQ(gort_sleep(GORT_SEC), 0);                                                               \
    }

CRASHES(sigsegv, SIGSEGV)
CRASHES(sigill, SIGILL)
CRASHES(sigbus, SIGBUS)
CRASHES(sigabrt, SIGABRT)
#if defined(__x86_64__)
CRASHES(sigfpe, SIGFPE)
#endif

/* --- many ------------------------------------------------------------------------------------------------ */

TEST_GO(many, .procs = "2", .serial = true,
        .expect = "^99999 goroutines \\[waiting: wait group\\]\n" AT("recurses"))
{
    int n = test_under_valgrind() ? 1000 : 99999;
    if (n < 99999)
        SKIP("too slow here");
    gort_wg_add(&never, 1);
    for (int i = 0; i < n; i++)
        CHECK_EQ(gort_go(waits, &never), 0);
    CHECK_EQ(gort_go(recurses, NULL), 0);
    while (atomic_load(&there) < n + 1)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_EQ(gort_sleep(20 * GORT_MS), 0);
    int64_t from = gort_now();
    gort_dump(2);
    int64_t took = gort_now() - from;
    test_log("took %ld ms", (long)(took / GORT_MS));
    CHECK_LT(took, test_seconds(3));
}

/* SPDX-License-Identifier: MIT */
/*
 * end_loader.c - the end of a run beside goroutines in code that the loader has called with its lock held:
 * what dl_iterate_phdr calls, as collectors and profilers use it, and C++ exceptions before glibc 2.35.
 * Afterwards everybody can go on using the loader.
 * Covers: src/os/linux/text.c src/os/linux/heap.c src/sched/monitor/preempt.c
 */
#include <gort.h>

#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

enum { USERS = 4, ROUNDS = 12 };

static atomic_int in;
static atomic_long looks;

/* Most of the time a goroutine is here: in the program's own code. */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info;
    (void)size;
    (void)arg;
    for (volatile int i = 0; i < 3000; i++)
        ;
    return 0;
}

static void look_around(void *unused)
{
    (void)unused;
    atomic_fetch_add(&in, 1);
    for (;;) {
        dl_iterate_phdr(look, NULL);
        atomic_fetch_add(&looks, 1);
    }
}

static int leave_looking(void *unused)
{
    (void)unused;
    long from = atomic_load(&looks);
    atomic_store(&in, 0);
    for (int i = 0; i < USERS; i++)
        CHECK_EQ(gort_go(look_around, NULL), 0);
    while (atomic_load(&in) < USERS && atomic_load(&looks) - from < 20)
        gort_sleep(GORT_MS / 5);
    return 6;
}

static void hang(int signo)
{
    static const char text[] =
        "the process hangs after a run: a goroutine was frozen with the loader's lock\n";
    (void)signo;
    (void)!write(2, text, sizeof text - 1);
    _exit(1);
}

TEST(goroutines_that_the_loader_has_called, .procs = "1,2,4")
{
    if (test_under_valgrind())
        SKIP("not under valgrind: there gort does not look for the callers of a goroutine");
    signal(SIGALRM, hang);
    for (long round = 0; round < test_scaled(ROUNDS, 3); round++) {
        CHECK_EQ(gort_run(leave_looking, NULL), 6);
        alarm((unsigned)(test_seconds(20) / GORT_SEC));
        dl_iterate_phdr(look, NULL);
        alarm(0);
    }
}

/* A loop that the loader has not called is frozen, whatever its thread has asked of the loader before. */
static atomic_long turns;

static void loop_after_a_look(void *unused)
{
    (void)unused;
    dl_iterate_phdr(look, NULL);
    atomic_fetch_add(&in, 1);
    for (;;)
        atomic_fetch_add(&turns, 1);
}

static int leave_looping(void *unused)
{
    (void)unused;
    atomic_store(&in, 0);
    for (int i = 0; i < USERS; i++)
        CHECK_EQ(gort_go(loop_after_a_look, NULL), 0);
    while (atomic_load(&in) < 1)
        gort_sleep(GORT_MS / 5);
    return 7;
}

static bool sleeps_parked(void *unused)
{
    (void)unused;
    long before = atomic_load(&turns);
    usleep(20000);
    return atomic_load(&turns) == before;
}

TEST(one_that_has_left_the_loader_is_frozen, .procs = "1,2,4")
{
    CHECK_EQ(gort_run(leave_looping, NULL), 7);
    CHECK(test_eventually(sleeps_parked, NULL, 20));
}

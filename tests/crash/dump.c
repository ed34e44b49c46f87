/* SPDX-License-Identifier: MIT */
/*
 * dump.c - the list of goroutines: on SIGQUIT, from any thread, and in the middle of a storm.
 * Covers: src/observe/dump.c
 */
#include <gort.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static gort_wg never;
static atomic_bool stop;
static atomic_long counter;

static void wait_never(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(&never);
}

static void populate(void)
{
    gort_wg_add(&never, 1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go_with(&(gort_attr){.name = "sleeper"}, wait_never, NULL), 0);
    while (atomic_load(&counter) < 3)
        gort_yield();
}

/* They may not have come as far as waiting; and main's blocking call may have been noticed already. */
#define SLEEPER                                                                                              \
    "goroutine [0-9]+ \\(sleeper\\) \\[(waiting: wait group|runnable|preempted|running, thread [0-9]+)\\] created by goroutine 1(, stack [0-9]+K of 256K)?, runs wait_never\\+0x0 [^\\n]*\\n"

TEST_GO(
    sigquit_lists_all_and_exits_2, .procs = "1,4",
    .crash =
        "SIGQUIT\n^goroutine 1 \\(main\\) \\[(running, thread [0-9]+|detached)\\](, stack [0-9]+K of 8192K)?$\n" SLEEPER
            SLEEPER SLEEPER,
    .status = 2)
{
    populate();
    kill(getpid(), SIGQUIT);
    for (;;)
        pause();
}

static void compute(void *unused)
{
    (void)unused;
    gort_set_name("hog");
    for (atomic_store(&counter, 1); !atomic_load(&stop);)
        ;
}

/* A preempted goroutine has its thread for itself until it goes on; the program has not locked it. */
TEST_GO(preempted_is_not_locked, .env = "GORT_MAXPROCS=1", .expect = "\\(hog\\) \\[preempted\\]")
{
    CHECK_EQ(gort_go(compute, NULL), 0);
    while (!atomic_load(&counter))
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    for (int i = 0; i < 20; i++) { /* on a busy machine it may lose its P in another way */
        gort_dump(2);
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    }
    atomic_store(&stop, true);
}

TEST_GO(sigquit_in_malloc, .env = "GORT_MAXPROCS=4", .crash = "SIGQUIT\n^goroutine 1 \\(main\\)", .status = 2,
        .native = TEST_FORKS)
{
    pid_t me = getpid();
    for (int i = 0;; i++) {
        free(malloc((size_t)(1000 + i % 100000)));
        if (i == 50000 && fork() == 0) { /* somebody else sends it, at any moment */
            kill(me, SIGQUIT);
            _exit(0);
        }
    }
}

static void on_quit(int signo)
{
    (void)signo;
    atomic_store(&stop, true);
}

static int raise_quit(void *unused)
{
    (void)unused;
    kill(getpid(), SIGQUIT);
    while (!atomic_load(&stop))
        gort_yield();
    return 6;
}

/* A program that has its own handler keeps it. */
TEST(an_own_handler_is_left_alone)
{
    signal(SIGQUIT, on_quit);
    CHECK_EQ(gort_run(raise_quit, NULL), 6);
    CHECK(signal(SIGQUIT, SIG_DFL) == on_quit);
}

static int ask_nothing(void *unused)
{
    (void)unused;
    return 0;
}

TEST(the_handler_goes_with_the_run)
{
    CHECK_EQ(gort_run(ask_nothing, NULL), 0);
    CHECK(signal(SIGQUIT, SIG_DFL) == SIG_DFL);
}

/* --- in a storm ------------------------------------------------------------------------------------------ */

static void end_at_once(void *unused)
{
    (void)unused;
}

static void storm(void *unused)
{
    (void)unused;
    char name[] = "0123456789";
    while (!atomic_load(&stop)) {
        gort_wg wg = {0};
        for (int i = 0; i < 50; i++)
            CHECK_EQ(gort_wg_go(&wg, end_at_once, NULL), 0);
        name[atomic_fetch_add(&counter, 1) % 10] = 'x';
        gort_set_name(name);
        gort_wg_wait(&wg);
        gort_yield();
    }
}

static void *dump_often(void *unused)
{
    int null = open("/dev/null", O_WRONLY);
    CHECK_GE(null, 0);
    for (long i = test_scaled(300, 50); i; i--)
        gort_dump(null);
    close(null);
    return unused;
}

TEST_GO(dumps_in_a_storm, .procs = "1,2,4", .fuzz = true)
{
    pthread_t t[2];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(storm, NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, dump_often, NULL), 0);
    int null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 100; i++) {
        gort_dump(null);
        gort_yield();
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    atomic_store(&stop, true);
    while (gort_count() > 1)
        gort_yield();
}

/* --- names ----------------------------------------------------------------------------------------------- */

enum { NAMES = 100 };
static const char *names[NAMES];
static gort_key key;

static void note_name(void *at)
{
    *(const char **)at = gort_name();
}

static void end_with_more(void *unused)
{
    CHECK_EQ(gort_on_exit(end_at_once, unused), 0);
    CHECK_EQ(gort_key_set(key, "##"), 0);
}

static void let_them_end(void)
{
    while (gort_count() > 1)
        gort_yield();
}

/* A dump reads the name of one that just ended, while others take its memory: whatever they are, it is a
 * name. */
TEST_GO(what_was_a_name_stays_one, .procs = "1,2")
{
    char bytes[128];
    memset(bytes, '#', sizeof bytes);
    CHECK_EQ(gort_key_create(&key, NULL), 0);
    for (int i = 0; i < NAMES; i++)
        CHECK_EQ(gort_go_with(&(gort_attr){.name = "nnnnnnnnnnnnnnnn"}, note_name, &names[i]), 0);
    let_them_end();
    for (int i = 0; i < 4 * NAMES; i++) {
        CHECK_EQ(i % 2 ? gort_go_copy(end_at_once, bytes, sizeof bytes) : gort_go(end_with_more, NULL), 0);
        if (i % 7 == 0)
            gort_yield();
        if (i % NAMES == 0)
            CHECK_EQ(gort_go_with(&(gort_attr){.name = "nn"}, end_at_once, NULL), 0);
        const char *name = names[i % NAMES];
        char c;
        int n = 0;
        while ((c = __atomic_load_n(&name[n], __ATOMIC_RELAXED)) == 'n' && n < 16)
            n++;
        CHECK_EQ(c, '\0');
    }
    let_them_end();
}

TEST(a_dump_outside_a_run_is_harmless, .expect = "^gort: no run is on$")
{
    gort_dump(2);
}

static void *dump_for_ever(void *unused)
{
    int null = open("/dev/null", O_WRONLY);
    while (!atomic_load(&stop))
        gort_dump(null);
    return unused;
}

/* From a thread that knows nothing of runs that come and go. */
TEST(dumps_while_runs_come_and_go, .procs = "2", .fuzz = true)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, dump_for_ever, NULL), 0);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(gort_run(ask_nothing, NULL), 0);
    atomic_store(&stop, true);
    pthread_join(t, NULL);
}

static gort_wg many_wait;

static void wait_with_many(void *unused)
{
    (void)unused;
    gort_wg_wait(&many_wait);
}

/* A thousand lines are enough to read; the rest is a number. */
TEST_GO(a_dump_has_an_end, .expect = "^\\.\\.\\. and 51 more$")
{
    char *text = NULL;
    size_t size = 0;
    gort_wg_add(&many_wait, 1);
    for (int i = 0; i < 1050; i++)
        CHECK_EQ(gort_go(wait_with_many, NULL), 0);
    FILE *f = tmpfile();
    CHECK(f);
    gort_dump(fileno(f));
    rewind(f);
    int lines = 0;
    while (getline(&text, &size, f) > 0)
        lines += strncmp(text, "goroutine ", 10) == 0;
    CHECK_EQ(lines, 1000);
    free(text);
    fclose(f);
    gort_dump(2);
    gort_wg_done(&many_wait);
}

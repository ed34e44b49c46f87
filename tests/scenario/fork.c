/* SPDX-License-Identifier: MIT */
/*
 * fork.c - processes from goroutines: fork and exec under load works, and a forked child that calls gort dies
 * with a clear line.
 * Covers: src/sched/life/run.c src/sched/life/entry.c src/os/linux/thread.c
 */
#include <gort.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

extern char **environ;

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

static void busy(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        gort_wg wg = {0};
        for (int i = 0; i < 20; i++)
            CHECK_EQ(gort_wg_go(&wg, (void (*)(void *))gort_set_name, "busy"), 0);
        free(malloc(1000));
        gort_wg_wait(&wg);
        gort_yield();
    }
}

static void wait_for(pid_t child, int want)
{
    int status;
    CHECK_GT(child, 0);
    pid_t got;
    while ((got = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    CHECK_EQ(got, child);
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == want, "wait status 0x%x instead of exit %d", status,
              want);
}

static void fork_and_exec(void *unused)
{
    (void)unused;
    char *argv[] = {"sh", "-c", "exit 5", NULL};
    pid_t child = fork();
    if (child == 0) {
        execv("/bin/sh", argv);
        _exit(99);
    }
    wait_for(child, 5);
    atomic_fetch_add(&counter, 1);
}

static void spawn_one(void *unused)
{
    (void)unused;
    char *argv[] = {"sh", "-c", "exit 6", NULL};
    pid_t child;
    CHECK_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environ), 0);
    wait_for(child, 6);
    atomic_fetch_add(&counter, 1);
}

static void system_one(void *unused)
{
    (void)unused;
    int status = system("exit 7");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    atomic_fetch_add(&counter, 1);
}

static void popen_one(void *unused)
{
    (void)unused;
    char text[16] = "";
    FILE *f = popen("echo hello", "r");
    CHECK(f);
    CHECK(fgets(text, sizeof text, f));
    CHECK_STR(text, "hello\n");
    CHECK_EQ(pclose(f), 0);
    atomic_fetch_add(&counter, 1);
}

static void under_load(void (*fn)(void *))
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(busy, NULL), 0);
    for (int i = 1; i <= 40; i++) {
        CHECK_EQ(gort_go(fn, NULL), 0);
        if (i % 5 == 0)
            yield_until(i);
    }
    atomic_store(&stop, true);
    settle();
}

TEST_GO(fork_and_exec_under_load, .procs = "1,4", .fuzz = true, .native = TEST_FORKS)
{
    under_load(fork_and_exec);
}

TEST_GO(posix_spawn_under_load, .procs = "1,4", .fuzz = true, .native = TEST_FORKS)
{
    under_load(spawn_one);
}

TEST_GO(system_under_load, .procs = "1,4", .fuzz = true, .native = TEST_FORKS)
{
    under_load(system_one);
}

TEST_GO(popen_under_load, .procs = "1,4", .native = TEST_FORKS)
{
    under_load(popen_one);
}

/* --- a child that does not exec --------------------------------------------------------------------------- */

static int run_nothing(void *unused)
{
    (void)unused;
    return 0;
}

static gort_wg waiting;

enum { GO, YIELD, COUNT, EXIT, RUN, ON_EXIT, WG_WAIT, WG_GO, LOCK, MAXPROCS, CALLS, BLOCK_LEAVE, BLOCK_END };

static void call(int what)
{
    switch (what) {
    case GO:
        gort_go(count, NULL);
        break;
    case YIELD:
        gort_yield();
        break;
    case COUNT:
        gort_count();
        break;
    case EXIT:
        gort_exit();
    case RUN:
        gort_run(run_nothing, NULL);
        break;
    case ON_EXIT:
        gort_on_exit(count, NULL);
        break;
    case WG_WAIT:
        gort_wg_wait(&waiting);
        break;
    case WG_GO:
        gort_wg_go(&waiting, count, NULL);
        break;
    case LOCK:
        gort_lock_thread();
        break;
    case MAXPROCS:
        gort_maxprocs(3);
        break;
    case BLOCK_LEAVE: /* in an announced call */
        gort_block_leave();
        break;
    }
}

/* A child whose messages go to fds[1]. */
static pid_t fork_one(int fds[2])
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(fds[1], 2);
        alarm(10); /* rather than wait for ever */
    }
    return child;
}

/* The child says that it may only exec, and aborts. */
static void check_said(pid_t child, int fds[2], int what)
{
    close(fds[1]);
    char text[4096]; /* its own: two threads do this at a time */
    size_t n = 0;
    for (ssize_t r; n < sizeof text - 1 && (r = read(fds[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)r;
    text[n] = '\0';
    close(fds[0]);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "call %d: status 0x%x, output %s", what,
              status, text);
    CHECK_MSG(strstr(text, "child of a fork"), "call %d: output %s", what, text);
}

static void check_child(int what)
{
    int fds[2];
    pid_t child = fork_one(fds);
    if (child == 0) {
        call(what);
        _exit(98);
    }
    check_said(child, fds, what);
}

TEST_GO(a_forked_goroutine_may_only_exec, .procs = "1,4", .native = TEST_FORKS)
{
    gort_wg_add(&waiting, 1);
    CHECK_EQ(gort_go(busy, NULL), 0);
    for (int what = 0; what < CALLS; what++) {
        check_child(what);
        gort_yield();
    }
    atomic_store(&stop, true);
    settle();
}

static intptr_t fork_in_block(void *fds)
{
    return fork_one(fds);
}

/* Others keep the locks of the runtime busy: the child must not want one of them. */
TEST_GO(a_forked_blocking_call_may_only_exec, .procs = "1,4", .native = TEST_FORKS)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(busy, NULL), 0);
    for (int i = 0; i < 20; i++) {
        int fds[2];
        gort_block_enter();
        check_child(BLOCK_LEAVE);
        check_child(YIELD);
        gort_block_leave();
        pid_t child = (pid_t)gort_block(fork_in_block, fds);
        if (child == 0)
            _exit(98);
        check_said(child, fds, BLOCK_END);
    }
    atomic_store(&stop, true);
    settle();
}

static void *fork_in_thread(void *attached)
{
    if (attached)
        CHECK_GE(gort_count(), 1);
    for (int what = 0; what < CALLS; what++)
        if (what != EXIT)
            check_child(what);
    atomic_fetch_add(&counter, 1);
    return NULL;
}

TEST_GO(a_forked_thread_may_only_exec, .procs = "2", .native = TEST_FORKS)
{
    pthread_t a, b;
    gort_wg_add(&waiting, 1);
    CHECK_EQ(pthread_create(&a, NULL, fork_in_thread, &stop), 0);
    CHECK_EQ(pthread_create(&b, NULL, fork_in_thread, NULL), 0);
    yield_until(2);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

TEST_GO(a_child_that_just_ends_is_fine, .procs = "1,2", .native = TEST_FORKS)
{
    CHECK_EQ(gort_go(busy, NULL), 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(3);
        wait_for(child, 3);
        gort_yield();
    }
    atomic_store(&stop, true);
    settle();
}

static void end_with_3(void *unused)
{
    (void)unused;
    _exit(3);
}

static void *end_a_forked_thread(void *unused)
{
    pthread_key_t last; /* its destructor comes after gort's */
    CHECK_GE(gort_count(), 1);
    CHECK_EQ(gort_on_exit(count, NULL), 0);
    CHECK_EQ(pthread_key_create(&last, end_with_3), 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(pthread_setspecific(last, &last), 0);
        pthread_exit(NULL);
    }
    wait_for(child, 3);
    return unused;
}

TEST_GO(a_thread_that_just_ends_in_the_child_is_fine, .procs = "1,2", .native = TEST_FORKS)
{
    CHECK_EQ(gort_go(busy, NULL), 0);
    for (int i = 1; i <= 20; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, end_a_forked_thread, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(atomic_load(&counter), i); /* its handler ran in the parent only */
        gort_yield();
    }
    atomic_store(&stop, true);
    settle();
}

static int some_work(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
    gort_wg_wait(&wg);
    return 4;
}

static void yield_for_ever(void *unused)
{
    (void)unused;
    for (;;)
        gort_yield();
}

static int leave_some(void *unused)
{
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(yield_for_ever, NULL), 0);
    return some_work(unused);
}

/* TSan asks that nobody else is there when it forks: goroutines that met the end in a call are not,
 * either. */
TEST(between_runs_a_child_may_run, .procs = "1,2", .native = TEST_FORKS)
{
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(gort_run(some_work, NULL));
        wait_for(child, 4);
        CHECK_EQ(gort_run(leave_some, NULL), 4);
    }
}

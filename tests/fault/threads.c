/* SPDX-License-Identifier: MIT */
/*
 * threads.c - thread creation is refused (EAGAIN): one warning, the threads there are go on, and new ones
 * come when they may.
 * Covers: src/sched/life/supervisor.c src/sched/core/tight.c
 *
 * The program's own pthread_create stands before libc's and refuses on demand; the sanitizers need theirs.
 */
#include <gort.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static atomic_int allowed = 1 << 20, at_once = 1 << 20, refusals;
static atomic_long counter;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_REFUSE false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAN_REFUSE false
#endif
#endif
#ifndef CAN_REFUSE
#define CAN_REFUSE true

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    static create_fn *_Atomic real;
    if (!real)
        real = (create_fn *)dlsym(RTLD_NEXT, "pthread_create");
    if (atomic_fetch_sub(&allowed, 1) <= 0 || test_thread_count() >= atomic_load(&at_once)) {
        atomic_fetch_add(&refusals, 1);
        return EAGAIN;
    }
    return real(thread, attr, fn, arg);
}
#endif

static void start_refusing(int after)
{
    if (!CAN_REFUSE)
        SKIP("only without ThreadSanitizer: it needs its own pthread_create");
    atomic_store(&allowed, after);
}

static void count(void *unused)
{
    (void)unused;
    gort_yield();
    atomic_fetch_add(&counter, 1);
}

static int some_work(void *unused)
{
    (void)unused;
    atomic_store(&counter, 0);
    for (int i = 0; i < 20; i++) {
        gort_wg wg = {0};
        for (int k = 0; k < 500; k++)
            CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
        gort_wg_wait(&wg);
    }
    return (int)atomic_load(&counter);
}

TEST(the_first_thread_is_refused, .procs = "1,4")
{
    start_refusing(0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_run(some_work, NULL), -EAGAIN);
    CHECK_EQ(atomic_load(&refusals), 20);
    start_refusing(1000);
    CHECK_EQ(gort_run(some_work, NULL), 10000);
}

TEST(the_rest_goes_on, .procs = "2,4,64", .fuzz = true)
{
    for (int n = 1; n <= 3; n++) {
        start_refusing(n);
        CHECK_EQ(gort_run(some_work, NULL), 10000);
    }
    CHECK_GT(atomic_load(&refusals), 0);
}

static atomic_int arrived;

static void meet(void *unused)
{
    (void)unused;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < 4)
        sched_yield();
}

static void *allow_soon(void *unused)
{
    while (atomic_load(&refusals) < 1)
        usleep(1000);
    atomic_store(&allowed, 1000);
    return unused;
}

/* Four must run at the same time, but threads are refused at first: they come as soon as they are allowed. */
static int need_four(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_wg_go(&wg, meet, NULL), 0);
    meet(NULL);
    gort_wg_wait(&wg);
    return 1;
}

TEST(they_come_when_allowed, .procs = "4", .timeout = 20)
{
    pthread_t t;
    start_refusing(2); /* the helper, and the first M */
    CHECK_EQ(pthread_create(&t, NULL, allow_soon, NULL), 0);
    CHECK_EQ(gort_run(need_four, NULL), 1);
    pthread_join(t, NULL);
}

/* A bound goroutine that waits needs another thread for the others: refused at first, then allowed. */
static gort_wg gate;

static void open_gate(void *unused)
{
    (void)unused;
    gort_wg_done(&gate);
}

static int tied_needs_another(void *unused)
{
    (void)unused;
    gort_wg_add(&gate, 1);
    gort_lock_thread();
    CHECK_EQ(gort_go(open_gate, NULL), 0);
    gort_wg_wait(&gate);
    return 2;
}

TEST(a_tied_one_waits_for_a_thread, .procs = "1,2")
{
    pthread_t t;
    start_refusing(2); /* the helper below, and the first M */
    CHECK_EQ(pthread_create(&t, NULL, allow_soon, NULL), 0);
    CHECK_EQ(gort_run(tied_needs_another, NULL), 2);
    pthread_join(t, NULL);
}

static char text[65536];

static const char *what_was_said(int file)
{
    ssize_t n = pread(file, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "cannot create a thread");
}

/* Who is to create the threads may get no CPU until much work is done. */
static int work_until_it_is_said(void *file)
{
    int did = some_work(NULL);
    while (!what_was_said((int)(intptr_t)file))
        did = some_work(NULL);
    return did;
}

TEST(it_is_said_once, .env = "GORT_MAXPROCS=4")
{
    start_refusing(1);
    int saved = dup(2), file = memfd_create("stderr", 0);
    CHECK(saved >= 0 && file >= 0);
    dup2(file, 2);
    int got = gort_run(work_until_it_is_said, (void *)(intptr_t)file);
    dup2(saved, 2);
    CHECK_EQ(got, 10000);
    const char *line = what_was_said(file);
    CHECK_MSG(line, "standard error: %s", text);
    CHECK(!strstr(line + 1, "cannot create a thread"));
}

/*
 * One thread beside the supervisor, none for sysmon, and each goroutine in turn keeps it for itself while it
 * waits: their timers and fds are seen to, and the thread of one that ends bound is followed by another,
 * which is no sysmon either.
 */
static int ends[2];

static void wait_tied(void *tied_to_the_end)
{
    char byte;
    gort_lock_thread();
    CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_EQ(gort_write(ends[1], "x", 1), 1);
    CHECK_EQ(gort_read(ends[0], &byte, 1), 1);
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, gort_in(GORT_MS)), -ETIMEDOUT);
    if (!tied_to_the_end)
        gort_unlock_thread();
}

static int all_wait_tied(void *tied_to_the_end)
{
    gort_wg wg = {0};
    CHECK_EQ(gort_pipe(ends), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_wg_go(&wg, wait_tied, tied_to_the_end), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_close(ends[1]), 0);
    return 0;
}

TEST(one_thread_for_tied_goroutines, .procs = "1,2", .fuzz = true)
{
    if (!CAN_REFUSE || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: the tools have threads of their own");
    atomic_store(&at_once, 2);
    CHECK_EQ(gort_run(all_wait_tied, NULL), 0);
    CHECK_EQ(gort_run(all_wait_tied, &ends), 0);
    CHECK_GT(atomic_load(&refusals), 0);
}

/* Threads are refused by the kernel's own limit, for a user it applies to. */
static int limited_child(void)
{
    struct rlimit limit = {2, 2}; /* of all processes of nobody: at most one thread more */
    if (setgid(65534) || setuid(65534) || setrlimit(RLIMIT_NPROC, &limit))
        return 77;
    int got = gort_run(some_work, NULL);
    return got == 10000 || got == -EAGAIN ? 0 : 1;
}

TEST(the_kernel_refuses, .env = "GORT_MAXPROCS=8")
{
    if (getuid() != 0)
        SKIP("needs root, to become nobody: the limit of threads is each user's");
    if (test_under_sanitizer() || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: the tools need threads too");
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0)
        _exit(limited_child());
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("needs a root that may become nobody (setuid was refused)");
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", status);
}

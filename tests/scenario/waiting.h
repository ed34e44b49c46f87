/* SPDX-License-Identifier: MIT */
/*
 * waiting.h - for the tests of gort/chan.h, sync.h, ctx.h: who waits, and for what?
 *
 * A goroutine that waits says so in gort_dump, a plain thread in /proc: so a test can go on exactly when its
 * waiters stand in their queue, without sleeping and hoping.
 */
#ifndef GORT_TEST_WAITING_H
#define GORT_TEST_WAITING_H

#include <gort.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#define UNUSED      __attribute__((unused))
#define LONG_ENOUGH test_seconds(30)

/* The deadline for what must happen: far away, but it fails before the test's own time is up. */
static UNUSED int64_t soon(void)
{
    return gort_in(LONG_ENOUGH);
}

/* Lets time pass; the others run meanwhile. */
static UNUSED void let_pass(int64_t ns)
{
    gort_chan *never = gort_chan_new(0, 0);
    CHECK_EQ(gort_chan_recv_until(never, NULL, gort_in(ns)), -ETIMEDOUT);
    gort_chan_unref(never);
}

static UNUSED void settle_to(size_t n)
{
    for (int64_t until = soon(); gort_count() > n; gort_yield())
        CHECK_MSG(gort_now() < until, "%zu goroutines are left, not %zu", gort_count(), n);
}

static UNUSED void settle(void)
{
    settle_to(1);
}

/* Waits until *counter is at least n. */
static UNUSED void await(atomic_long *counter, long n)
{
    for (int64_t until = soon(); atomic_load(counter) < n; gort_yield())
        CHECK_MSG(gort_now() < until, "the counter is %ld, not %ld", atomic_load(counter), n);
}

/* How many goroutines wait for `what`, as the dump calls it ("" for anything). By one caller at a time. */
static UNUSED int waiting(const char *what)
{
    static int fd = -1;
    static char text[1 << 18];
    char key[64];
    int n = 0;
    if (fd < 0)
        CHECK_GE(fd = memfd_create("dump", MFD_CLOEXEC), 0);
    CHECK_EQ(ftruncate(fd, 0), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    gort_dump(fd);
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    CHECK_GT(size, 0);
    text[size] = '\0';
    snprintf(key, sizeof key, "[waiting: %s", what);
    for (const char *at = text; (at = strstr(at, key)) != NULL; at++)
        n++;
    return n;
}

static UNUSED void await_waiting(const char *what, int n)
{
    int now;
    for (int64_t until = soon(); (now = waiting(what)) != n; gort_yield())
        CHECK_MSG(gort_now() < until, "%d goroutines wait for '%s', not %d", now, what, n);
}

static UNUSED int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* Whether that thread of this process sleeps in the kernel. */
static UNUSED bool thread_sleeps(int tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_GE(fd, 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    CHECK_GT(n, 0);
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

/* Waits until the thread, which stores its id right before its call, has gone to sleep in it. */
static UNUSED void await_thread(atomic_int *tid)
{
    int64_t until = soon();
    for (int seen = 0; seen < 5;) {
        CHECK_MSG(gort_now() < until, "the thread does not sleep");
        usleep(500);
        seen = atomic_load(tid) && thread_sleeps(atomic_load(tid)) ? seen + 1 : 0;
    }
}

/* Keeps the CPU busy for that long. */
static UNUSED void spin_for(int64_t ns)
{
    for (int64_t until = gort_in(ns); gort_now() < until;)
        ;
}

/* Around a loop that must not need more memory the longer it runs. */
static UNUSED void check_flat(long before_kb, long allowed_kb)
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        return;
    long now = test_rss_kb();
    CHECK_MSG(now - before_kb < allowed_kb, "grew from %ld to %ld KiB", before_kb, now);
}

#endif

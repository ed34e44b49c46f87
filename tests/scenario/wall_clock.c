/* SPDX-License-Identifier: MIT */
/*
 * wall_clock.c - a wall clock that jumps disturbs nothing.
 * Covers: src/os/linux/clock.c src/time/clock.c
 *
 * To set the clock of the machine is not for a test. But whoever is disturbed by a jump must have read the
 * wall clock, and here every reading of it, by the runtime and by the C library on its behalf, goes through
 * this file: it jumps by hours, forth and back, and counts.
 */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "netting.h"

static atomic_long readings;

static int64_t jump(void)
{
    long n = atomic_fetch_add(&readings, 1);
    return (n % 2 ? -1 : 1) * (n % 7 + 1) * 3600;
}

/* Weak: in a static program the C library's own may be needed for its other names; then the test sees that it
 * does not count. */
__attribute__((weak)) int clock_gettime(clockid_t id, struct timespec *t)
{
    int err = (int)syscall(SYS_clock_gettime, id, t);
    if (!err && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI))
        t->tv_sec += jump();
    return err;
}

__attribute__((weak)) int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

__attribute__((weak)) time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

static atomic_long fired;

static void fire(void *unused)
{
    (void)unused;
    atomic_fetch_add(&fired, 1);
}

static void check_span(int64_t from, int64_t least)
{
    CHECK_GE(gort_now() - from, least);
    CHECK_LT(gort_now() - from, LONG_ENOUGH);
}

static void *thread_waits(void *unused)
{
    int64_t from = gort_now();
    gort_chan *never = gort_chan_new(0, 0);
    CHECK_EQ(gort_chan_recv_until(never, NULL, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    gort_chan_unref(never);
    check_span(from, 5 * GORT_MS);
    return unused;
}

TEST_GO(jumps_disturb_nothing, .procs = "1,2,4", .fuzz = true)
{
    struct timespec t;
    struct timeval tv;
    pthread_t thread;
    int ends[2];
    char byte;
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the tools have clocks of their own");
    long before = readings;
    clock_gettime(CLOCK_REALTIME, &t);
    gettimeofday(&tv, NULL);
    time(NULL);
    long after = readings;
    if (after < before + 3)
        SKIP("only in dynamically linked programs: here the clock cannot be replaced");
    gort_timer *timer = gort_timer_new(10 * GORT_MS, 0, fire, NULL);
    gort_ticker *ticker = gort_ticker_new(2 * GORT_MS);
    CHECK(timer && ticker);
    int64_t from = gort_now();
    CHECK_EQ(gort_sleep(5 * GORT_MS), 0);
    check_span(from, 5 * GORT_MS);
    tcp_pair(ends);
    from = gort_now();
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_wait_fd(ends[0], GORT_READ, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    check_span(from, 10 * GORT_MS);
    gort_ctx *ctx = gort_ctx_new(NULL, gort_in(5 * GORT_MS)), *former = gort_ctx_use(ctx);
    CHECK_EQ(gort_sleep(GORT_SEC * 3600), -ETIMEDOUT);
    gort_ctx_use(former);
    gort_ctx_unref(ctx);
    gort_mutex mutex = {0};
    gort_mutex_lock(&mutex);
    CHECK_EQ(gort_mutex_lock_until(&mutex, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    gort_mutex_unlock(&mutex);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_chan_recv_until(gort_ticker_chan(ticker), NULL, soon()), 1);
    await(&fired, 1);
    CHECK_EQ(pthread_create(&thread, NULL, thread_waits, NULL), 0);
    gort_block_enter();
    CHECK_EQ(pthread_join(thread, NULL), 0);
    gort_block_leave();
    close_pair(ends);
    gort_ticker_free(ticker);
    gort_timer_free(timer);
    settle();
    CHECK_EQ(readings, after); /* nobody has looked */
}

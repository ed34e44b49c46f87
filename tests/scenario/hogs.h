/* SPDX-License-Identifier: MIT */
/*
 * hogs.h - what the tests of preemption and of blocking calls share: goroutines that do not call gort, and
 * others that must go on beside them.
 *
 * Bounds here are generous: they tell "goes on" from "stands still" on a loaded machine, they measure
 * nothing.
 */
#ifndef GORT_TEST_HOGS_H
#define GORT_TEST_HOGS_H

#include <gort.h>

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

/* TSan keeps a signal back until the thread makes a libc call or an atomic operation. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

#define NEEDS_PURE_LOOPS()                                                                                   \
    do {                                                                                                     \
        if (UNDER_TSAN)                                                                                      \
            SKIP("only without ThreadSanitizer: it keeps signals back from loops that only compute");        \
    } while (0)
#define NEEDS_NATIVE_SPEED()                                                                                 \
    do {                                                                                                     \
        if (test_under_valgrind() || test_under_emulator())                                                  \
            SKIP("only natively: valgrind and emulators run threads one at a time, or too slowly");          \
    } while (0)

static inline int hog_tid(void)
{
    return (int)syscall(SYS_gettid);
}

/* The clock without a gort call. */
static inline int64_t hog_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * GORT_SEC + t.tv_nsec;
}

/* Sleeps n times for 1 ms, and says how long it took. */
static inline int64_t hog_ticks(int n)
{
    int64_t from = gort_now();
    for (int i = 0; i < n; i++)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    return gort_now() - from;
}

#endif

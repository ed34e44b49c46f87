/* SPDX-License-Identifier: MIT */
/*
 * timers.c - goroutines and plain threads set, stop, reset and wait for timers at random; the number of Ps
 * changes. In the end every call is accounted for.
 * Covers: src/sched/timers/timer.c src/time/timer.c src/time/sleep.c
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <gort.h>

#include "test.h"

static _Atomic int64_t started, prevented, called, slept, timed_out;
static atomic_bool over;
static uint64_t seed;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&called, 1);
}

/* One setting of a one-shot timer ends in a call or in a stop or reset that says so. */
static void play(uint64_t state)
{
    enum { N = 8 };
    gort_timer *t[N] = {0};
    while (!atomic_load(&over)) {
        int i = (int)(test_random(&state) % N);
        int64_t length = (int64_t)(test_random(&state) % 3 ? test_random(&state) % 300000
                                                           : test_random(&state) % 100000000);
        switch (test_random(&state) % 5) {
        case 0:
            if (!t[i]) {
                atomic_fetch_add(&started, 1);
                t[i] = gort_timer_new(length, 0, count, NULL);
            }
            break;
        case 1:
            if (t[i])
                atomic_fetch_add(&prevented, gort_timer_stop(t[i]));
            break;
        case 2:
            if (t[i]) {
                atomic_fetch_add(&started, 1);
                atomic_fetch_add(&prevented, gort_timer_reset(t[i], length, 0));
            }
            break;
        case 3: {
            int64_t from = gort_now();
            CHECK_EQ(gort_sleep(length % 400000), 0);
            CHECK_GE(gort_now() - from, length % 400000);
            atomic_fetch_add(&slept, 1);
            break;
        }
        default: {
            gort_sem sem = {0};
            int64_t deadline = gort_in(length % 200000);
            CHECK_EQ(gort_sem_acquire_until(&sem, deadline), -ETIMEDOUT);
            CHECK_GE(gort_now(), deadline);
            atomic_fetch_add(&timed_out, 1);
        }
        }
    }
    for (int i = 0; i < N; i++)
        if (t[i]) {
            atomic_fetch_add(&prevented, gort_timer_stop(t[i]));
            gort_timer_free(t[i]);
        }
}

static gort_wg wg;

static void player(void *i)
{
    play(seed * 31 + (uintptr_t)i);
    gort_wg_done(&wg);
}

static void *thread(void *i)
{
    play(seed * 37 + (uintptr_t)i);
    return NULL;
}

TEST_GO(conservation, .procs = "1,2,4", .fuzz = true)
{
    enum { GOROUTINES = 40, THREADS = 2 };
    pthread_t threads[THREADS];
    seed = test_seed();
    gort_wg_add(&wg, GOROUTINES);
    for (uintptr_t i = 0; i < GOROUTINES; i++)
        CHECK_EQ(gort_go(player, (void *)i), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread, (void *)i), 0);
    uint64_t state = seed;
    int64_t end = gort_in(GORT_SEC);
    /* For a second, and until all of it has happened. */
    while (gort_now() < end || !atomic_load(&called) || !atomic_load(&slept) || !atomic_load(&timed_out)) {
        CHECK_EQ(gort_sleep(20 * GORT_MS), 0);
        gort_maxprocs(1 + (int)(test_random(&state) % 6));
    }
    atomic_store(&over, true);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    gort_block_enter();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    gort_block_leave();
    int64_t deadline = gort_in(test_seconds(10)); /* calls whose goroutine was started and has not run yet */
    while (atomic_load(&called) + atomic_load(&prevented) < atomic_load(&started) && gort_now() < deadline)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_EQ(atomic_load(&called) + atomic_load(&prevented), atomic_load(&started));
}

/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - a second of everything at once: nothing is lost and nothing runs twice, however goroutines are
 * started, stolen, yield, wait, tie themselves to threads and end, while the number of Ps changes.
 * Covers: src/sched/core/spawn.c src/sched/core/gmain.c src/sched/threads/handoff.c src/sched/threads/p.c
 */
#include <gort.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "test.h"

#define SECONDS 1    /* make soak goes on for longer */
#define CREDIT  4000 /* goroutines alive at once, about */

static atomic_long started, ended, by_exit, handled, yields, waits, bound;
static _Atomic(int64_t) balance; /* sum of the numbers given out minus those that came back */
static atomic_bool stop;
static uint64_t seed;

struct order {
    int64_t number;
    int depth;
    char pad[100];
};

static void work(int64_t number, int depth);

static void work_to_order(void *order)
{
    work(((struct order *)order)->number, ((struct order *)order)->depth);
}

static void start_some(uint64_t *random, int depth, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t number = (int64_t)(test_random(random) >> 20);
        atomic_fetch_add(&started, 1);
        atomic_fetch_add(&balance, number);
        int err;
        if (test_random(random) % 16 == 0) {
            struct order copy = {number, depth, {0}};
            err = gort_go_copy(work_to_order, &copy, sizeof copy);
        } else {
            err = GORT_GO(work, number, depth);
        }
        CHECK_EQ(err, 0);
    }
}

static void yield_once(void *unused)
{
    (void)unused;
    gort_yield();
}

static void wait_for_children(uint64_t *random)
{
    gort_wg wg = {0};
    int n = 1 + (int)(test_random(random) % 5);
    for (int i = 0; i < n; i++)
        CHECK_EQ(gort_wg_go(&wg, yield_once, NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    atomic_fetch_add(&waits, 1);
}

static void at_end(void *number)
{
    atomic_fetch_sub(&balance, (int64_t)(intptr_t)number);
    atomic_fetch_add(&handled, 1);
    atomic_fetch_add(&ended, 1);
}

static void work(int64_t number, int depth)
{
    uint64_t random = seed ^ (uint64_t)number;
    uint64_t id = gort_id();
    for (int steps = (int)(test_random(&random) % 6); steps; steps--) {
        switch (test_random(&random) % 8) {
        case 0:
        case 1:
        case 2:
            gort_yield();
            atomic_fetch_add(&yields, 1);
            break;
        case 3:
            wait_for_children(&random);
            break;
        case 4:
            if (depth < 3 && !atomic_load(&stop) && atomic_load(&started) - atomic_load(&ended) < CREDIT)
                start_some(&random, depth + 1, (int)(test_random(&random) % 4));
            break;
        case 5:
            for (volatile int i = 0; i < 500; i++)
                ;
            break;
        case 6:
            if (test_random(&random) % 32 == 0) {
                gort_lock_thread();
                gort_yield();
                gort_unlock_thread();
                atomic_fetch_add(&bound, 1);
            }
            break;
        default:
            break;
        }
    }
    CHECK_EQ(gort_id(), id);
    if (test_random(&random) % 16 == 0) {
        CHECK_EQ(gort_on_exit(at_end, (void *)(intptr_t)number), 0);
        atomic_fetch_add(&by_exit, 1);
        gort_exit();
    }
    atomic_fetch_sub(&balance, number);
    atomic_fetch_add(&ended, 1);
}

static void mix(bool change_procs)
{
    seed = test_seed();
    uint64_t random = seed;
    int64_t until = gort_in(SECONDS * GORT_SEC);
    while (gort_now() < until || atomic_load(&started) <= 1000) {
        int burst = 1 + (int)(test_random(&random) % 600);
        if (atomic_load(&started) - atomic_load(&ended) < CREDIT)
            start_some(&random, 0, burst);
        if (change_procs && test_random(&random) % 8 == 0)
            gort_maxprocs(1 + (int)(test_random(&random) % 8));
        gort_yield();
    }
    atomic_store(&stop, true);
    while (gort_count() > 1)
        gort_yield();
    test_log("%ld goroutines, %ld by gort_exit, %ld yields, %ld waits, %ld bound", started, by_exit, yields,
             waits, bound);
    CHECK_EQ(atomic_load(&started), atomic_load(&ended));
    CHECK_EQ(atomic_load(&by_exit), atomic_load(&handled));
    CHECK_EQ(atomic_load(&balance), 0);
}

TEST_GO(a_mix_of_everything, .procs = "1,2,4,64", .fuzz = true)
{
    mix(false);
}

TEST_GO(a_mix_with_changing_procs, .procs = "2,64", .fuzz = true)
{
    mix(true);
}

static void *start_from_outside(void *arg)
{
    uint64_t random = test_seed() + (uint64_t)(uintptr_t)arg;
    while (!atomic_load(&stop)) {
        if (atomic_load(&started) - atomic_load(&ended) < CREDIT)
            start_some(&random, 0, 20);
        else
            sched_yield();
    }
    return NULL;
}

TEST_GO(a_mix_from_plain_threads, .procs = "1,4", .fuzz = true)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, start_from_outside, (void *)(i + 1)), 0);
    int64_t until = gort_in(SECONDS * GORT_SEC);
    while (gort_now() < until || atomic_load(&started) <= 100)
        gort_yield();
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    while (gort_count() > 1)
        gort_yield();
    CHECK_EQ(atomic_load(&started), atomic_load(&ended));
    CHECK_EQ(atomic_load(&balance), 0);
}

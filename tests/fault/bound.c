/* SPDX-License-Identifier: MIT */
/*
 * bound.c - goroutines that are bound to their threads, while there is no new thread for anybody else.
 * Build: faults
 * Covers: src/sched/threads/handoff.c src/sched/core/tight.c
 *
 * A bound goroutine that waits gives its P up, and whoever picks it later hands one back. When no M is there
 * to pick it, and none can be made, for want of memory or because the kernel refuses threads, its own M is
 * still there: it must not wait for others, for ever if need be. One P, so that there is no other M from the
 * start.
 */
#include <gort.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fault.h"
#include "test.h"

#define ROUNDS 50

static gort_wg gate;
static sem_t here, asked;
static atomic_bool enough;
static atomic_int ran;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ran, 1);
}

static void *open_when_asked(void *unused)
{
    gort_count(); /* a thread's first call needs memory */
    for (sem_post(&here); sem_wait(&asked) == 0 && !atomic_load(&enough);) {
        usleep(200);
        gort_wg_done(&gate);
    }
    return unused;
}

static void be_woken(int kind)
{
    pthread_t outside;
    CHECK_EQ(sem_init(&asked, 0, 0), 0);
    CHECK_EQ(sem_init(&here, 0, 0), 0);
    CHECK_EQ(pthread_create(&outside, NULL, open_when_asked, NULL), 0);
    sem_wait(&here);
    gort_lock_thread();
    fault_from(kind, 1);
    for (int n = 0; n < ROUNDS; n++) {
        gort_wg_add(&gate, 1);
        sem_post(&asked);
        CHECK_EQ(gort_wg_wait(&gate), 0);
    }
    CHECK_MSG(fault_off(), "no %s was refused", fault_name(kind));
    gort_unlock_thread();
    atomic_store(&enough, true);
    sem_post(&asked);
    pthread_join(outside, NULL);
}

TEST_GO(woken_without_memory, .env = "GORT_MAXPROCS=1")
{
    be_woken(FAULT_MAP);
}

TEST_GO(woken_without_threads, .env = "GORT_MAXPROCS=1")
{
    be_woken(FAULT_THREAD);
}

static intptr_t nap(void *unused)
{
    (void)unused;
    usleep(5000);
    return 3;
}

/* The P that it gave up is meant for a thread that does not come: it gets it back. */
TEST_GO(ends_a_call_without_threads, .env = "GORT_MAXPROCS=1")
{
    gort_lock_thread();
    CHECK_EQ(gort_go(count, NULL), 0);
    fault_from(FAULT_THREAD, 1);
    for (int n = 0; n < 5; n++)
        CHECK_EQ(gort_block(nap, NULL), 3);
    CHECK_EQ(atomic_load(&ran), 0);
    CHECK_MSG(fault_off(), "no thread was refused");
    while (atomic_load(&ran) < 1)
        gort_yield();
    gort_unlock_thread();
}

/* It waits for a time, and nobody but the monitor can see to it. */
static void sleep_alone(int kind)
{
    CHECK_EQ(gort_sleep(GORT_MS), 0); /* there is room for timers from now on */
    gort_lock_thread();
    fault_from(kind, 1);
    for (int n = 0; n < 5; n++) {
        int64_t from = gort_now();
        CHECK_EQ(gort_sleep(20 * GORT_MS), 0);
        CHECK_GE(gort_now(), from + 20 * GORT_MS);
    }
    CHECK_MSG(fault_off(), "no %s was refused", fault_name(kind));
    gort_unlock_thread();
}

TEST_GO(sleeps_without_memory, .env = "GORT_MAXPROCS=1", .timeout = 20)
{
    sleep_alone(FAULT_MAP);
}

TEST_GO(sleeps_without_threads, .env = "GORT_MAXPROCS=1", .timeout = 20)
{
    sleep_alone(FAULT_THREAD);
}

/* Others want to run, and cannot; it goes on meanwhile, and they run as soon as they can. */
static void yield_to_nobody(int kind)
{
    gort_lock_thread();
    for (int n = 0; n < 10; n++)
        CHECK_EQ(gort_go(count, NULL), 0);
    fault_from(kind, 1);
    for (int n = 0; n < ROUNDS; n++)
        gort_yield();
    CHECK_EQ(atomic_load(&ran), 0);
    CHECK_MSG(fault_off(), "no %s was refused", fault_name(kind));
    while (atomic_load(&ran) < 10)
        gort_yield();
    gort_unlock_thread();
}

TEST_GO(yields_without_memory, .env = "GORT_MAXPROCS=1")
{
    yield_to_nobody(FAULT_MAP);
}

TEST_GO(yields_without_threads, .env = "GORT_MAXPROCS=1")
{
    yield_to_nobody(FAULT_THREAD);
}

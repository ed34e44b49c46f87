/* SPDX-License-Identifier: MIT */
/*
 * thread_end.c - threads that end while destructors of their thread-local data take their time.
 * Covers: src/sched/threads/m.c src/sched/life/supervisor.c
 *
 * A goroutine that ends while it is bound takes its thread with it. What the destructors do is up to the
 * program: they may wait for a goroutine, which may need a new thread, or they may never return.
 */
#include <gort.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

#define CALLS 4

static pthread_key_t key;
static sem_t go_on;
static atomic_int destroying, destroyed;

static void wait_to_be_told(void *unused)
{
    (void)unused;
    atomic_fetch_add(&destroying, 1);
    while (sem_wait(&go_on))
        ;
    atomic_fetch_add(&destroyed, 1);
}

static void prepare(void)
{
    CHECK_EQ(sem_init(&go_on, 0, 0), 0);
    CHECK_EQ(pthread_key_create(&key, wait_to_be_told), 0);
}

static void end_tied(void *unused)
{
    (void)unused;
    gort_lock_thread();
    CHECK_EQ(pthread_setspecific(key, &key), 0);
}

/* A thread is in its destructor now. */
static void begin_to_end(void)
{
    int before = atomic_load(&destroying);
    CHECK_EQ(gort_go(end_tied, NULL), 0);
    while (atomic_load(&destroying) == before)
        gort_sleep(GORT_MS);
}

static pthread_barrier_t all_here;

static intptr_t meet(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all_here);
    return 0;
}

static void call(void *unused)
{
    (void)unused;
    gort_block(meet, NULL);
}

/* So many blocking calls at once need as many threads; each time one of our threads ends the destructor waits
 * for them. */
static int blocking_calls(void *unused)
{
    (void)unused;
    for (int round = 0; round < 3; round++) {
        gort_wg wg = {0};
        begin_to_end();
        CHECK_EQ(pthread_barrier_init(&all_here, NULL, (unsigned)(CALLS * (round + 1))), 0);
        for (int i = 0; i < CALLS * (round + 1); i++)
            CHECK_EQ(gort_wg_go(&wg, call, NULL), 0);
        gort_wg_wait(&wg);
        pthread_barrier_destroy(&all_here);
        CHECK_EQ(atomic_load(&destroyed), 0);
    }
    for (int i = 0; i < 3; i++)
        sem_post(&go_on);
    while (atomic_load(&destroyed) < 3)
        gort_sleep(GORT_MS);
    return 0;
}

TEST(a_destructor_waits_for_goroutines_that_need_threads, .procs = "1,2,4", .fuzz = true)
{
    prepare();
    CHECK_EQ(gort_run(blocking_calls, NULL), 0);
}

static int just_begin(void *unused)
{
    (void)unused;
    begin_to_end();
    return 7;
}

static int does_nothing(void *unused)
{
    (void)unused;
    return 8;
}

/* The run ends all the same, others follow, and what was left of it goes when the destructors are done. */
TEST(a_destructor_outlasts_its_run, .procs = "1,4")
{
    prepare();
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gort_run(just_begin, NULL), 7);
    CHECK_EQ(gort_run(does_nothing, NULL), 8);
    CHECK_EQ(atomic_load(&destroying), 2);
    CHECK_EQ(atomic_load(&destroyed), 0);
    for (int i = 0; i < 2; i++)
        sem_post(&go_on);
    while (atomic_load(&destroyed) < 2)
        usleep(1000);
    CHECK_EQ(gort_run(does_nothing, NULL), 8);
}

/* A thread that the end of the run itself ends: it was idle, or ran another goroutine. */
static void leave_data(void *unused)
{
    (void)unused;
    CHECK_EQ(pthread_setspecific(key, &key), 0);
}

static int leave_data_behind(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_go(&wg, leave_data, NULL), 0);
    gort_wg_wait(&wg);
    return 9;
}

TEST(a_destructor_at_the_end_of_a_run, .procs = "1,4")
{
    prepare();
    CHECK_EQ(gort_run(leave_data_behind, NULL), 9);
    CHECK_EQ(gort_run(does_nothing, NULL), 8);
    while (atomic_load(&destroying) < 1)
        usleep(1000);
    CHECK_EQ(atomic_load(&destroyed), 0);
    sem_post(&go_on);
    while (atomic_load(&destroyed) < 1)
        usleep(1000);
    CHECK_EQ(gort_run(does_nothing, NULL), 8);
}

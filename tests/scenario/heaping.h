/* SPDX-License-Identifier: MIT */
/*
 * heaping.h - ends of runs beside goroutines that are nearly always in malloc; afterwards everybody can go on
 * using it.
 *
 * For programs that differ in whose malloc they use (end_*.c). A goroutine that is frozen in it, with its
 * lock, makes the process hang: an alarm says so.
 */
#ifndef GORT_TEST_HEAPING_H
#define GORT_TEST_HEAPING_H

#include <gort.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { HEAPING_USERS = 4, HEAPING_ROUNDS = 12, HEAPING_THREADS = 8, HEAPING_BULK = 300 };

static atomic_int heaping_in, heaping_round;
static atomic_long heaping_turns;
/* More blocks at once than an allocator keeps for a thread: so that its locks are used. */
static bool heaping_bulk;
static void *(*volatile heaping_malloc)(size_t) = malloc; /* by pointers, too */
static void (*volatile heaping_free)(void *) = free;

static atomic_long heaping_progress, heaping_progress_before;
static unsigned heaping_patience; /* seconds */

/* On a busy machine everything may take long; but it goes on. */
static void heaping_hangs(int signo)
{
    long now = atomic_load(&heaping_progress);
    if (atomic_exchange(&heaping_progress_before, now) != now) {
        alarm(heaping_patience);
        return;
    }
    static const char text[] = "the process hangs after a run: a goroutine was frozen inside the allocator\n";
    (void)signo;
    (void)!write(2, text, sizeof text - 1);
    _exit(1);
}

/* All ways in, small and large blocks; and some time outside, as every program has. */
static void heaping_turn(uint64_t *state)
{
    uint64_t r = test_random(state);
    for (volatile int i = 0; i < 3000; i++)
        ;
    size_t n = 1 + (r >> 8) % (r & 0x100 ? 3000 : 300);
    void *p[4] = {malloc(n), calloc(2, n), heaping_malloc(n), NULL};
    CHECK(p[0] && p[1] && p[2]);
    memset(p[0], 1, n);
    p[0] = realloc(p[0], 2 * n);
    CHECK(p[0]);
    if (r % 16 == 0)
        CHECK_EQ(posix_memalign(&p[3], 64, n), 0);
    else if (r % 64 == 1)
        p[3] = calloc(1, 300000);
    else if (r % 64 == 2)
        p[3] = malloc(2 << 20);
    for (int i = 0; i < 3; i++)
        free(p[i]);
    heaping_free(p[3]);
}

/* What frozen goroutines had is never freed: that is no leak of the test's. Asked by LeakSanitizer. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

static void heaping_turn_bulk(uint64_t *state)
{
    void *p[HEAPING_BULK];
    for (int i = 0; i < HEAPING_BULK; i++) {
        uint64_t r = test_random(state);
        p[i] = malloc(1 + (r >> 8) % (r % 8 == 0 ? 100000 : 3000));
        CHECK(p[i]);
    }
    for (int i = 0; i < HEAPING_BULK; i++)
        free(p[i]);
}

static void heaping_use(void *arg)
{
    uint64_t state = test_seed() + (uint64_t)(uintptr_t)arg;
    atomic_fetch_add(&heaping_in, 1);
    for (;;) {
        heaping_turn(&state);
        if (heaping_bulk)
            heaping_turn_bulk(&state);
        atomic_fetch_add(&heaping_turns, 1);
    }
}

static void (*heaping_user)(void *) = heaping_use;

static void *heaping_nothing(void *unused)
{
    return unused;
}

/* libc keeps 40 MB of stacks of threads that have ended. With the next one it gives some back, and calls free
 * for each. */
static void heaping_fill_stack_cache(void)
{
    pthread_t t[HEAPING_THREADS];
    for (int i = 0; i < HEAPING_THREADS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, heaping_nothing, NULL), 0);
    for (int i = 0; i < HEAPING_THREADS; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static int heaping_leave(void *unused)
{
    (void)unused;
    long from = atomic_load(&heaping_turns);
    atomic_store(&heaping_in, 0);
    for (intptr_t i = 0; i < HEAPING_USERS; i++)
        CHECK_EQ(gort_go(heaping_user, (void *)(i + 100 * (intptr_t)atomic_load(&heaping_round))), 0);
    while (atomic_load(&heaping_in) < HEAPING_USERS && atomic_load(&heaping_turns) - from < 20)
        gort_sleep(GORT_MS / 5);
    gort_sleep(atomic_load(&heaping_round) % 4 * GORT_MS / 2);
    heaping_fill_stack_cache();
    return 6;
}

static void *heaping_go_on(void *arg)
{
    uint64_t state = test_seed() + (uint64_t)(uintptr_t)arg;
    for (int i = 0; i < 10; i++) {
        heaping_turn(&state);
        atomic_fetch_add(&heaping_progress, 1);
    }
    if (heaping_bulk)
        heaping_turn_bulk(&state);
    return NULL;
}

static int heaping_still_works(void *unused)
{
    (void)unused;
    heaping_go_on(NULL);
    return 7;
}

/* Goroutines of ended runs stay frozen, each with its thread: so not too many rounds. ENDS=1000 for more. */
static void heaping_end_runs(void)
{
    const char *more = getenv("ENDS");
    long rounds = more ? atol(more) : test_scaled(HEAPING_ROUNDS, 3);
    heaping_patience = (unsigned)(test_seconds(40) / GORT_SEC);
    signal(SIGALRM, heaping_hangs);
    alarm(heaping_patience);
    test_seed();
    for (long round = 0; round < rounds; round++) {
        pthread_t t[HEAPING_THREADS];
        atomic_store(&heaping_round, (int)round);
        CHECK_EQ(gort_run(heaping_leave, NULL), 6);
        for (int i = 0; i < HEAPING_THREADS; i++)
            CHECK_EQ(pthread_create(&t[i], NULL, heaping_go_on, (void *)(intptr_t)i), 0);
        heaping_go_on(NULL);
        for (int i = 0; i < HEAPING_THREADS; i++)
            CHECK_EQ(pthread_join(t[i], NULL), 0);
        CHECK_EQ(gort_run(heaping_still_works, NULL), 7);
    }
    alarm(0);
}

#endif

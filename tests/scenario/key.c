/* SPDX-License-Identifier: MIT */
/*
 * key.c - goroutine-local values: one a goroutine, destroyed once at its end, keys that come and go.
 * Covers: src/sched/core/key.c src/sched/core/extra.c
 */
#include <gort.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "test.h"

static gort_key key, other;
static atomic_long destroyed, counter;

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

static void count_destroyed(void *value)
{
    CHECK(value);
    atomic_fetch_add(&destroyed, 1);
}

static void own_value(intptr_t i)
{
    CHECK_EQ(gort_key_get(key), NULL);
    CHECK_EQ(gort_key_set(key, (void *)i), 0);
    CHECK_EQ(gort_key_set(other, (void *)(i * 2)), 0);
    for (int k = 0; k < 20; k++) { /* also on other threads */
        gort_yield();
        CHECK_EQ((intptr_t)gort_key_get(key), i);
        CHECK_EQ((intptr_t)gort_key_get(other), i * 2);
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(each_has_its_own, .procs = "1,2,4", .fuzz = true)
{
    CHECK_EQ(gort_key_create(&key, count_destroyed), 0);
    CHECK_EQ(gort_key_create(&other, NULL), 0);
    long n = test_scaled(5000, 500);
    CHECK_EQ(gort_key_set(key, &key), 0);
    for (intptr_t i = 1; i <= n; i++)
        CHECK_EQ(GORT_GO(own_value, i), 0);
    yield_until(n);
    settle();
    CHECK_EQ(atomic_load(&destroyed), n);
    CHECK_EQ(gort_key_get(key), &key);
    /* Records come round: none of the old values shows. */
    for (intptr_t i = 1; i <= n; i++)
        CHECK_EQ(GORT_GO(own_value, i), 0);
    yield_until(2 * n);
    settle();
    CHECK_EQ(atomic_load(&destroyed), 2 * n);
}

static void set_null_again(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_key_set(key, &key), 0);
    CHECK_EQ(gort_key_set(key, &other), 0);
    CHECK_EQ(gort_key_set(key, NULL), 0);
}

TEST_GO(null_is_not_destroyed)
{
    CHECK_EQ(gort_key_create(&key, count_destroyed), 0);
    CHECK_EQ(gort_go(set_null_again, NULL), 0);
    settle();
    CHECK_EQ(atomic_load(&destroyed), 0);
}

static void set_again(void *value)
{
    intptr_t n = (intptr_t)value;
    CHECK_EQ(gort_key_get(key), NULL); /* gone before its destructor is called */
    atomic_fetch_add(&destroyed, 1);
    if (n > 1)
        CHECK_EQ(gort_key_set(key, (void *)(n - 1)), 0);
}

static void set_key(intptr_t n)
{
    CHECK_EQ(gort_key_set(key, (void *)n), 0);
}

TEST_GO(destructors_may_set_values)
{
    CHECK_EQ(gort_key_create(&key, set_again), 0);
    CHECK_EQ(GORT_GO(set_key, 3), 0);
    settle();
    CHECK_EQ(atomic_load(&destroyed), 3);
    atomic_store(&destroyed, 0);
    CHECK_EQ(GORT_GO(set_key, 1000000000), 0); /* but not for ever */
    settle();
    CHECK_GE(atomic_load(&destroyed), 4);
    CHECK_LE(atomic_load(&destroyed), 100);
}

static void set_other(void *value)
{
    atomic_fetch_add(&destroyed, 1);
    CHECK_EQ(gort_key_set(other, value), 0);
}

TEST_GO(a_destructor_sets_another_key)
{
    CHECK_EQ(gort_key_create(&other, count_destroyed), 0); /* the lower one: it comes round again */
    CHECK_EQ(gort_key_create(&key, set_other), 0);
    CHECK_EQ(GORT_GO(set_key, 1), 0);
    settle();
    CHECK_EQ(atomic_load(&destroyed), 2);
}

static void set_and_wait(gort_wg *wg)
{
    CHECK_EQ(gort_key_set(key, wg), 0);
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(wg);
    CHECK_EQ(gort_key_get(key), NULL);
    CHECK_EQ(gort_key_set(key, wg), -EINVAL);
}

TEST_GO(a_deleted_key_is_dead)
{
    gort_wg wg = {0};
    gort_wg_add(&wg, 1);
    CHECK_EQ(gort_key_create(&key, count_destroyed), 0);
    CHECK_EQ(GORT_GO(set_and_wait, &wg), 0);
    yield_until(1);
    CHECK_EQ(gort_key_delete(key), 0);
    CHECK_EQ(gort_key_delete(key), -EINVAL);
    CHECK_EQ(gort_key_create(&other, count_destroyed), 0); /* most likely in the same place */
    CHECK_EQ(gort_key_get(other), NULL);
    gort_wg_done(&wg);
    settle();
    CHECK_EQ(atomic_load(&destroyed), 0);
    gort_key wrong = {GORT_KEYS_MAX, 1}, zero = {0, 0};
    CHECK_EQ(gort_key_set(wrong, &key), -EINVAL);
    CHECK_EQ(gort_key_get(wrong), NULL);
    CHECK_EQ(gort_key_delete(wrong), -EINVAL);
    CHECK_EQ(gort_key_delete(zero), -EINVAL);
    CHECK_EQ(gort_key_get(zero), NULL);
}

static gort_key all[GORT_KEYS_MAX];

static void set_all(void *unused)
{
    (void)unused;
    for (intptr_t i = 0; i < GORT_KEYS_MAX; i++)
        CHECK_EQ(gort_key_set(all[i], (void *)(i + 1)), 0);
    gort_yield();
    for (intptr_t i = 0; i < GORT_KEYS_MAX; i++)
        CHECK_EQ((intptr_t)gort_key_get(all[i]), i + 1);
}

TEST_GO(there_are_256, .procs = "1,2")
{
    for (int i = 0; i < GORT_KEYS_MAX; i++)
        CHECK_EQ(gort_key_create(&all[i], count_destroyed), 0);
    CHECK_EQ(gort_key_create(&key, NULL), -EAGAIN);
    CHECK_EQ(gort_key_delete(all[100]), 0);
    CHECK_EQ(gort_key_create(&all[100], count_destroyed), 0);
    CHECK_EQ(gort_key_create(&key, NULL), -EAGAIN);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_go(set_all, NULL), 0);
    settle();
    CHECK_EQ(atomic_load(&destroyed), 20 * GORT_KEYS_MAX);
}

TEST_GO(values_are_freed, .procs = "1")
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    for (int i = 0; i < GORT_KEYS_MAX; i++)
        CHECK_EQ(gort_key_create(&all[i], NULL), 0);
    long early = 0, n = test_scaled(20000, 2000);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(gort_go(set_all, NULL), 0);
        if (i % 10 == 0)
            settle();
        if (i == n / 10)
            early = test_rss_kb();
    }
    settle();
    CHECK_LT(test_rss_kb(), early + 2048);
}

static void *in_thread(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_key_get(key), NULL);
    CHECK_EQ(gort_key_set(key, &key), 0);
    CHECK_EQ(gort_key_get(key), &key);
    return NULL;
}

TEST_GO(plain_threads_have_values_too)
{
    pthread_t thread;
    CHECK_EQ(gort_key_create(&key, count_destroyed), 0);
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(atomic_load(&destroyed), 1);
}

/* A plain thread ends; its destructors and handlers are called, and meanwhile its run ends, or the next one
 * begins. */
static struct {
    sem_t inside, go_on;
    bool by_handler;
} slow;

static void destroy_slowly(void *unused)
{
    (void)unused;
    atomic_fetch_add(&destroyed, 1);
    sem_post(&slow.inside);
    while (sem_wait(&slow.go_on))
        ;
}

static void *end_slowly(void *unused)
{
    if (slow.by_handler) {
        CHECK_EQ(gort_on_exit(count_destroyed, &key), 0);
        CHECK_EQ(gort_on_exit(destroy_slowly, NULL), 0);
    } else {
        CHECK_EQ(gort_key_set(key, &key), 0);
    }
    CHECK_EQ(gort_key_set(other, &key), 0);
    return unused;
}

static int run_until_it_ends(void *thread)
{
    CHECK_EQ(pthread_create(thread, NULL, end_slowly, NULL), 0);
    while (sem_wait(&slow.inside))
        ;
    return 0;
}

static int run_beside_it(void *thread)
{
    sem_post(&slow.go_on);
    CHECK_EQ(pthread_join(*(pthread_t *)thread, NULL), 0);
    CHECK_EQ(gort_count(), 1);
    return 0;
}

TEST(the_run_ends_during_a_destructor, .procs = "1,2")
{
    CHECK_EQ(sem_init(&slow.inside, 0, 0), 0);
    CHECK_EQ(sem_init(&slow.go_on, 0, 0), 0);
    CHECK_EQ(gort_key_create(&key, destroy_slowly), 0);
    CHECK_EQ(gort_key_create(&other, count_destroyed), 0);
    for (int i = 1; i <= 40; i++) {
        pthread_t thread;
        slow.by_handler = i & 1;
        CHECK_EQ(gort_run(run_until_it_ends, &thread), 0);
        if (i & 2) {
            CHECK_EQ(gort_run(run_beside_it, &thread), 0);
        } else {
            sem_post(&slow.go_on);
            CHECK_EQ(pthread_join(thread, NULL), 0);
        }
        CHECK_EQ(atomic_load(&destroyed), i); /* the rest went with the run */
    }
    CHECK_EQ(gort_key_set(key, &key), -ESRCH);
}

static int use_in_run(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_key_get(key), NULL);
    CHECK_EQ(gort_key_set(key, &key), 0);
    return 0;
}

TEST(a_key_outlives_runs)
{
    CHECK_EQ(gort_key_create(&key, count_destroyed), 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(gort_run(use_in_run, NULL), 0);
        CHECK_EQ(atomic_load(&destroyed), i); /* main's value too */
    }
    CHECK_EQ(gort_key_get(key), NULL);
    CHECK_EQ(gort_key_delete(key), 0);
}

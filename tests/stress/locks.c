/* SPDX-License-Identifier: MIT */
/*
 * locks.c - mutexes, rwmutexes, semaphores and conditions under load, with deadlines and contexts: exclusion
 * holds and nothing is lost.
 * Covers: src/sync/mutex.c src/sync/rwmutex.c src/sync/sem.c src/sync/cond.c
 */
#include "scenario/waiting.h"

static gort_mutex mu;
static gort_rwmutex rw;
static gort_sem sem;
static gort_cond cond;
static gort_ctx *ctx;
static gort_wg workers;

#define PERMITS 3

static int in_mutex;              /* guarded by mu */
static long tokens;               /* guarded by mu: what cond is about */
static atomic_long in_rw, in_sem; /* readers + 10000 * writers; holders of permits */
static atomic_long made, taken, done[4], gave_up;

static int64_t deadline_of(uint64_t *seed)
{
    return test_random(seed) % 4 ? gort_in((int64_t)(test_random(seed) % (100 * GORT_US))) : GORT_FOREVER;
}

static void inside_for_a_while(uint64_t *seed)
{
    if (test_random(seed) % 8 == 0)
        gort_yield();
    if (test_random(seed) % 64 == 0)
        spin_for(20 * GORT_US);
}

static void with_mutex(uint64_t *seed)
{
    int err = test_random(seed) % 4 ? gort_mutex_lock_until(&mu, deadline_of(seed)) : gort_mutex_lock(&mu);
    if (err) {
        atomic_fetch_add(&gave_up, 1);
        return;
    }
    CHECK_EQ(in_mutex++, 0);
    inside_for_a_while(seed);
    CHECK_EQ(--in_mutex, 0);
    gort_mutex_unlock(&mu);
    atomic_fetch_add(&done[0], 1);
}

static void with_rwmutex(uint64_t *seed)
{
    bool writes = test_random(seed) % 3 == 0;
    int64_t deadline = deadline_of(seed);
    int err = writes ? gort_rwmutex_lock_until(&rw, deadline) : gort_rwmutex_rlock_until(&rw, deadline);
    if (err) {
        atomic_fetch_add(&gave_up, 1);
        return;
    }
    long n = atomic_fetch_add(&in_rw, writes ? 10000 : 1);
    CHECK(writes ? n == 0 : n < 10000);
    inside_for_a_while(seed);
    atomic_fetch_sub(&in_rw, writes ? 10000 : 1);
    if (writes)
        gort_rwmutex_unlock(&rw);
    else
        gort_rwmutex_runlock(&rw);
    atomic_fetch_add(&done[1], 1);
}

static void with_permit(uint64_t *seed)
{
    if (gort_sem_acquire_until(&sem, deadline_of(seed))) {
        atomic_fetch_add(&gave_up, 1);
        return;
    }
    CHECK_LE(atomic_fetch_add(&in_sem, 1) + 1, PERMITS);
    inside_for_a_while(seed);
    atomic_fetch_sub(&in_sem, 1);
    gort_sem_release(&sem);
    atomic_fetch_add(&done[2], 1);
}

static void with_condition(uint64_t *seed)
{
    CHECK_EQ(gort_mutex_lock(&mu), 0);
    CHECK_EQ(in_mutex++, 0);
    if (test_random(seed) % 2) {
        tokens++;
        atomic_fetch_add(&made, 1);
        if (test_random(seed) % 4)
            gort_cond_signal(&cond);
        else
            gort_cond_broadcast(&cond);
    } else {
        int err = 0;
        int64_t deadline = deadline_of(seed);
        while (tokens == 0 && err == 0) {
            in_mutex--;
            err = gort_cond_wait_until(&cond, &mu, deadline);
            CHECK_EQ(in_mutex++, 0); /* it has the mutex, whatever it returned */
        }
        if (tokens > 0) {
            tokens--;
            atomic_fetch_add(&taken, 1);
        } else {
            atomic_fetch_add(&gave_up, 1);
        }
    }
    CHECK_EQ(--in_mutex, 0);
    gort_mutex_unlock(&mu);
    atomic_fetch_add(&done[3], 1);
}

static void work(uint64_t seed)
{
    while (!gort_ctx_err(ctx))
        switch (test_random(&seed) % 4) {
        case 0:
            with_mutex(&seed);
            break;
        case 1:
            with_rwmutex(&seed);
            break;
        case 2:
            with_permit(&seed);
            break;
        default:
            with_condition(&seed);
        }
    gort_wg_done(&workers);
}

static void *thread_work(void *seed)
{
    gort_ctx_use(ctx);
    work((uint64_t)(uintptr_t)seed);
    gort_ctx_use(NULL);
    return NULL;
}

static bool all_done(void)
{
    for (int i = 0; i < 4; i++)
        if (!atomic_load(&done[i]))
            return false;
    return true;
}

TEST_GO(all_kinds_at_once, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[3];
    int rounds = (int)test_scaled(10, 3);
    for (int round = 0; round < rounds || !all_done(); round++) {
        ctx = gort_ctx_new(NULL, round % 2 ? GORT_FOREVER : gort_in(100 * GORT_MS));
        gort_sem_init(&sem, PERMITS);
        gort_wg_add(&workers, 19);
        for (uint64_t i = 0; i < 3; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, thread_work, (void *)(uintptr_t)(test_seed() + i)), 0);
        gort_ctx_use(ctx);
        for (uint64_t i = 0; i < 16; i++)
            CHECK_EQ(GORT_GO(work, test_seed() + 50 + i), 0);
        gort_ctx_use(NULL);
        let_pass(100 * GORT_MS);
        gort_ctx_cancel(ctx, 0);
        CHECK_EQ(gort_wg_wait_until(&workers, soon()), 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        settle();
        CHECK_EQ(atomic_load(&made), atomic_load(&taken) + tokens);
        CHECK(gort_mutex_trylock(&mu));
        gort_mutex_unlock(&mu);
        CHECK(gort_rwmutex_trylock(&rw));
        gort_rwmutex_unlock(&rw);
        for (int i = 0; i < PERMITS; i++)
            CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), 0);
        CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), -EAGAIN);
        gort_ctx_unref(ctx);
    }
    test_log("mutex %ld, rwmutex %ld, semaphore %ld, condition %ld; given up %ld", done[0], done[1], done[2],
             done[3], gave_up);
}

/* SPDX-License-Identifier: MIT */
/*
 * mutex.c - mutexes: exclusion, fairness, deadlines against grants, threads, lifetimes.
 * Covers: src/sync/mutex.c
 */
#include "waiting.h"

_Static_assert(sizeof(gort_mutex) == 8, "a mutex is one word");

static gort_mutex mu;
static atomic_long counter;
static long guarded; /* by mu; not atomic on purpose */
static int inside;   /* guarded by mu */

static void enter_section(void)
{
    CHECK_EQ(inside++, 0);
    guarded++;
}

static void leave_section(void)
{
    CHECK_EQ(--inside, 0);
}

static void one_after_the_other(void)
{
    gort_mutex m = {0};
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_mutex_lock(&m), 0);
        CHECK(!gort_mutex_trylock(&m));
        CHECK_EQ(gort_mutex_lock_until(&m, GORT_TRY), -EAGAIN);
        gort_mutex_unlock(&m);
        CHECK(gort_mutex_trylock(&m));
        CHECK_EQ(gort_mutex_lock_until(&m, GORT_TRY), -EAGAIN);
        gort_mutex_unlock(&m);
        CHECK_EQ(gort_mutex_lock_until(&m, GORT_TRY), 0);
        gort_mutex_unlock(&m);
        CHECK_EQ(gort_mutex_lock_until(&m, gort_now()), 0); /* what can happen does so past its deadline */
        gort_mutex_unlock(&m);
    }
    static const gort_mutex zero;
    CHECK(memcmp(&m, &zero, sizeof m) == 0);
}

TEST_GO(without_contention)
{
    one_after_the_other();
}

static int run_alone(void *unused)
{
    (void)unused;
    one_after_the_other();
    return 0;
}

TEST(before_between_and_after_runs)
{
    for (int i = 0; i < 3; i++) {
        one_after_the_other();
        CHECK_EQ(gort_mutex_lock(&mu), 0); /* locked outside, unlocked outside, a run between */
        CHECK_EQ(gort_run(run_alone, NULL), 0);
        gort_mutex_unlock(&mu);
    }
    one_after_the_other();
}

/* mutex_test.go HammerMutex, with yields so that others meet a locked one. */
static void hammer(int me, long n)
{
    long taken = 0;
    for (long i = 0; i < n; i++) {
        int how = (int)((i + me) % 5);
        if (how == 0 && gort_mutex_trylock(&mu)) {
            /* it has it */
        } else if (how == 1) {
            if (gort_mutex_lock_until(&mu, gort_in(20 * GORT_US)) != 0)
                continue;
        } else {
            CHECK_EQ(gort_mutex_lock(&mu), 0);
        }
        taken++;
        enter_section();
        if (i % 16 == 0)
            gort_yield();
        leave_section();
        gort_mutex_unlock(&mu);
    }
    atomic_fetch_add(&counter, taken);
}

static gort_wg all;

static void hammer_and_done(int me, long n)
{
    hammer(me, n);
    gort_wg_done(&all);
}

static void *thread_hammer(void *arg)
{
    hammer((int)(intptr_t)arg, test_scaled(3000, 300));
    gort_wg_done(&all);
    return NULL;
}

TEST_GO(hammered_by_goroutines, .procs = "1,2,4,64", .fuzz = true)
{
    gort_wg_add(&all, 10);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(hammer_and_done, i, test_scaled(20000, 1000)), 0);
    CHECK_EQ(gort_wg_wait(&all), 0);
    CHECK_EQ(guarded, atomic_load(&counter));
    CHECK_GT(guarded, 0);
    CHECK(gort_mutex_trylock(&mu));
    settle();
}

TEST_GO(hammered_by_goroutines_and_threads, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[4];
    gort_wg_add(&all, 8);
    for (intptr_t i = 0; i < 4; i++) {
        CHECK_EQ(GORT_GO(hammer_and_done, (int)i, test_scaled(3000, 300)), 0);
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_hammer, (void *)(i + 2)), 0);
    }
    CHECK_EQ(gort_wg_wait(&all), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(guarded, atomic_load(&counter));
    CHECK(gort_mutex_trylock(&mu));
    settle();
}

/* --- unlocked by somebody else -------------------------------------------------------------------- */

static void unlock_it(void *m)
{
    for (int i = 0; i < 3; i++)
        gort_yield();
    gort_mutex_unlock(m);
}

static void *thread_unlock_it(void *m)
{
    gort_mutex_unlock(m);
    return NULL;
}

TEST_GO(another_may_unlock, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        CHECK_EQ(gort_mutex_lock(&mu), 0);
        if (i % 4 == 0)
            CHECK_EQ(pthread_create(&thread, NULL, thread_unlock_it, &mu), 0);
        else
            CHECK_EQ(gort_go(unlock_it, &mu), 0);
        CHECK_EQ(gort_mutex_lock(&mu), 0);
        gort_mutex_unlock(&mu);
        if (i % 4 == 0)
            pthread_join(thread, NULL);
    }
    settle();
}

/* --- fairness ------------------------------------------------------------------------------------- */

static atomic_bool stop;

static void hog(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        gort_mutex_lock(&mu);
        let_pass(100 * GORT_US);
        gort_mutex_unlock(&mu);
    }
}

/* mutex_test.go TestMutexFairness. */
TEST_GO(a_hog_lets_the_other_through, .procs = "1,2,4,64", .fuzz = true)
{
    CHECK_EQ(gort_go(hog, NULL), 0);
    int64_t from = gort_now();
    for (int i = 0; i < 10; i++) {
        let_pass(100 * GORT_US);
        CHECK_EQ(gort_mutex_lock(&mu), 0);
        gort_mutex_unlock(&mu);
    }
    CHECK_LT(gort_now() - from, test_seconds(30));
    atomic_store(&stop, true);
    settle();
}

static void *thread_hog(void *unused)
{
    while (!atomic_load(&stop)) {
        gort_mutex_lock(&mu);
        spin_for(100 * GORT_US);
        gort_mutex_unlock(&mu);
    }
    return unused;
}

TEST_GO(a_hogging_thread_lets_the_other_through, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_hog, NULL), 0);
    int64_t from = gort_now();
    for (int i = 0; i < 10; i++) {
        let_pass(100 * GORT_US);
        CHECK_EQ(gort_mutex_lock(&mu), 0);
        gort_mutex_unlock(&mu);
    }
    CHECK_LT(gort_now() - from, test_seconds(30));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static int turns[20];
static int turn;

static void take_turn(int me)
{
    CHECK_EQ(me % 2 ? gort_mutex_lock(&mu) : gort_mutex_lock_until(&mu, soon()), 0);
    turns[turn++] = me;
    gort_mutex_unlock(&mu);
}

TEST_GO(waiters_are_served_in_order, .procs = "1,2,4,64", .fuzz = true)
{
    CHECK_EQ(gort_mutex_lock(&mu), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(GORT_GO(take_turn, i), 0);
        await_waiting("mutex", i + 1);
    }
    let_pass(2 * GORT_MS); /* from now on it is handed over */
    gort_mutex_unlock(&mu);
    settle();
    for (int i = 0; i < 20; i++)
        CHECK_EQ(turns[i], i);
    CHECK_EQ(turn, 20);
}

/* --- deadlines ------------------------------------------------------------------------------------ */

TEST_GO(a_deadline_is_not_early, .procs = "1,2,4,64", .fuzz = true)
{
    CHECK_EQ(gort_mutex_lock(&mu), 0);
    for (int i = 0; i < 10; i++) {
        int64_t until = gort_in(2 * GORT_MS), from = gort_now();
        CHECK_EQ(gort_mutex_lock_until(&mu, until), -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK_LT(gort_now() - from, test_seconds(20));
        CHECK_EQ(gort_mutex_lock_until(&mu, gort_now()), -ETIMEDOUT);
    }
    gort_mutex_unlock(&mu); /* nobody is in its queue */
    static const gort_mutex zero;
    CHECK(memcmp(&mu, &zero, sizeof mu) == 0);
}

static atomic_long in_time, too_late;

/* The mutex is let go around the deadline of those who wait: 0 means that it is mine and nobody else's. */
static void lock_near_deadline(uint64_t seed, long n)
{
    for (long i = 0; i < n; i++) {
        int err = gort_mutex_lock_until(&mu, gort_in((int64_t)(test_random(&seed) % (40 * GORT_US))));
        if (err == 0) {
            enter_section();
            if (i % 4 == 0)
                spin_for(10 * GORT_US);
            if (i % 32 == 0)
                let_pass(20 * GORT_US);
            leave_section();
            gort_mutex_unlock(&mu);
            atomic_fetch_add(&in_time, 1);
        } else {
            CHECK_EQ(err, -ETIMEDOUT);
            atomic_fetch_add(&too_late, 1);
        }
    }
    gort_wg_done(&all);
}

static void *thread_near_deadline(void *seed)
{
    lock_near_deadline((uint64_t)(uintptr_t)seed, test_scaled(2000, 300));
    return NULL;
}

TEST_GO(a_grant_at_the_deadline_is_not_lost, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t thread;
    gort_wg_add(&all, 7);
    for (uint64_t i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(lock_near_deadline, test_seed() + i, test_scaled(4000, 400)), 0);
    CHECK_EQ(pthread_create(&thread, NULL, thread_near_deadline, (void *)(uintptr_t)(test_seed() + 9)), 0);
    CHECK_EQ(gort_wg_wait(&all), 0);
    pthread_join(thread, NULL);
    settle();
    CHECK_EQ(guarded, atomic_load(&in_time));
    CHECK_GT(atomic_load(&in_time), 0);
    CHECK_GT(atomic_load(&too_late), 0);
    CHECK_EQ(gort_mutex_lock_until(&mu, GORT_TRY), 0); /* it is free */
}

/* --- contexts ------------------------------------------------------------------------------------- */

static void lock_plainly(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_mutex_lock(&mu), 0);
    enter_section();
    leave_section();
    gort_mutex_unlock(&mu);
    atomic_fetch_add(&counter, 1);
}

static void lock_until_cancelled(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_mutex_lock_until(&mu, GORT_FOREVER), -ECANCELED);
    atomic_fetch_add(&counter, 100);
}

TEST_GO(a_cancelled_context_ends_only_the_timed_form, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    CHECK_EQ(gort_mutex_lock(&mu), 0);
    gort_ctx_use(ctx);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(gort_go(lock_plainly, NULL), 0);
        CHECK_EQ(gort_go(lock_until_cancelled, NULL), 0);
    }
    gort_ctx_use(NULL);
    await_waiting("mutex", 10);
    gort_ctx_cancel(ctx, 0);
    await(&counter, 500);
    await_waiting("mutex", 5);
    CHECK_EQ(atomic_load(&counter), 500);
    gort_ctx_use(ctx); /* and nobody can be made to wait any more, but what is free can be had */
    CHECK_EQ(gort_mutex_lock_until(&mu, soon()), -ECANCELED);
    gort_mutex_unlock(&mu);
    await(&counter, 505);
    CHECK_EQ(gort_mutex_lock(&mu), 0);
    gort_mutex_unlock(&mu);
    CHECK_EQ(gort_mutex_lock_until(&mu, soon()), 0);
    gort_mutex_unlock(&mu);
    gort_ctx_use(NULL);
    settle();
    gort_ctx_unref(ctx);
}

/* --- lifetimes ------------------------------------------------------------------------------------ */

struct object {
    gort_mutex mu;
    int users;
};

/* The last user frees it: whoever unlocked before may still be on its way out of unlock. */
static void use_and_drop(void *arg)
{
    struct object *o = arg;
    CHECK_EQ(gort_mutex_lock(&o->mu), 0);
    if (o->users % 2)
        gort_yield();
    bool last = --o->users == 0;
    gort_mutex_unlock(&o->mu);
    if (last) {
        memset(o, 0xa5, sizeof *o);
        free(o);
        atomic_fetch_add(&counter, 1);
    }
}

static void *thread_use_and_drop(void *arg)
{
    struct object **objects = arg;
    for (int i = 0; i < 100; i++)
        use_and_drop(objects[i]);
    return NULL;
}

TEST_GO(freed_by_whoever_locked_last, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(20, 4);
    for (long i = 0; i < n; i++) {
        struct object *objects[100];
        pthread_t threads[2];
        for (int k = 0; k < 100; k++) {
            objects[k] = calloc(1, sizeof **objects);
            objects[k]->users = 5;
        }
        for (int t = 0; t < 2; t++)
            CHECK_EQ(pthread_create(&threads[t], NULL, thread_use_and_drop, objects), 0);
        for (int k = 0; k < 100; k++)
            for (int u = 0; u < 3; u++)
                CHECK_EQ(gort_go(use_and_drop, objects[k]), 0);
        await(&counter, (i + 1) * 100);
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], NULL);
        settle();
    }
}

/* --- over several runs ---------------------------------------------------------------------------- */

static void lock_for_ever(int kind)
{
    int err = kind % 2 ? gort_mutex_lock(&mu) : gort_mutex_lock_until(&mu, soon());
    CHECK_MSG(false, "got it: %d", err);
}

static int leave_waiters(void *unused)
{
    (void)unused;
    for (int i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(lock_for_ever, i), 0);
    await_waiting("mutex", 6);
    return 0;
}

static int contend(void *unused)
{
    (void)unused;
    gort_wg_add(&all, 4);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(GORT_GO(hammer_and_done, i, 100), 0);
    CHECK_EQ(gort_wg_wait(&all), 0);
    return 0;
}

/* A thread holds it over the end of a run in which goroutines waited for it. */
TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_mutex_lock(&mu), 0);
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        CHECK(!gort_mutex_trylock(&mu));
        CHECK_EQ(gort_mutex_lock_until(&mu, GORT_TRY), -EAGAIN);
        gort_mutex_unlock(&mu);
        CHECK(gort_mutex_trylock(&mu));
        gort_mutex_unlock(&mu);
        CHECK_EQ(gort_run(contend, NULL), 0);
    }
}

static int unlock_in_run(void *unused)
{
    gort_mutex_unlock(&mu);
    return contend(unused);
}

TEST(waiters_of_an_ended_run_are_forgotten_in_the_next, .procs = "1,2,4,64")
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_mutex_lock(&mu), 0);
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        CHECK_EQ(gort_run(leave_waiters, NULL), 0); /* new ones behind dead ones */
        CHECK_EQ(gort_run(unlock_in_run, NULL), 0);
    }
}

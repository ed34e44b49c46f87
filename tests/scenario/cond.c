/* SPDX-License-Identifier: MIT */
/*
 * cond.c - conditions: a signal wakes exactly one, in order, and is never lost to one that gave up.
 * Covers: src/sync/cond.c src/sync/object.c
 */
#include "waiting.h"

static gort_mutex mu;
static gort_cond cond;
static atomic_long counter;
static gort_chan *awake;

static void wait_once(int me)
{
    gort_mutex_lock(&mu);
    CHECK_EQ(me % 2 ? gort_cond_wait(&cond, &mu) : gort_cond_wait_until(&cond, &mu, soon()), 0);
    CHECK(!gort_mutex_trylock(&mu)); /* it has the mutex again */
    gort_mutex_unlock(&mu);
    CHECK_EQ(gort_chan_send(awake, &me), 0);
}

TEST_GO(a_signal_wakes_one_and_in_order, .procs = "1,2,4,64", .fuzz = true)
{
    awake = gort_chan_new(sizeof(int), 0);
    gort_cond_signal(&cond); /* nobody waits: it does nothing, later either */
    gort_cond_broadcast(&cond);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(GORT_GO(wait_once, i), 0);
        await_waiting("cond wait", i + 1);
    }
    for (int i = 0, who; i < 20; i++) {
        CHECK_EQ(gort_chan_recv_until(awake, &who, GORT_TRY), -EAGAIN);
        gort_mutex_lock(&mu);
        gort_cond_signal(&cond);
        gort_mutex_unlock(&mu);
        CHECK_EQ(gort_chan_recv_until(awake, &who, soon()), 1);
        CHECK_EQ(who, i);
        CHECK_EQ(waiting("cond wait"), 19 - i); /* and it woke nobody else */
    }
    gort_cond_signal(&cond);
    settle();
    gort_chan_unref(awake);
}

static int round_of[16];
static int in_round, running;

static void wait_for_rounds(int me)
{
    gort_mutex_lock(&mu);
    while (round_of[me] < 20) {
        running++;
        CHECK_EQ(gort_cond_wait(&cond, &mu), 0);
        round_of[me]++;
    }
    gort_mutex_unlock(&mu);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_broadcast_wakes_all_once, .procs = "1,2,4,64", .fuzz = true)
{
    (void)in_round;
    for (int i = 0; i < 16; i++)
        CHECK_EQ(GORT_GO(wait_for_rounds, i), 0);
    for (int round = 1; round <= 20; round++) {
        gort_mutex_lock(&mu);
        while (running < 16) {
            gort_mutex_unlock(&mu);
            gort_yield();
            gort_mutex_lock(&mu);
        }
        for (int i = 0; i < 16; i++)
            CHECK_EQ(round_of[i], round - 1);
        running = 0;
        gort_cond_broadcast(&cond);
        gort_mutex_unlock(&mu);
    }
    await(&counter, 16);
    settle();
}

/* --- a bounded buffer: waiting and signalling from both sides ------------------------------------------ */

#define ROOM 4
static long buffer[ROOM];
static int used, next_out;
static gort_cond not_full, not_empty;
static atomic_long sum;

static void put_all(long n)
{
    for (long i = 1; i <= n; i++) {
        gort_mutex_lock(&mu);
        while (used == ROOM)
            CHECK_EQ(gort_cond_wait(&not_full, &mu), 0);
        buffer[(next_out + used++) % ROOM] = i;
        gort_cond_signal(&not_empty);
        gort_mutex_unlock(&mu);
        atomic_fetch_add(&sum, i);
    }
    atomic_fetch_add(&counter, 1);
}

static void take_all(long n)
{
    for (long i = 1; i <= n; i++) {
        gort_mutex_lock(&mu);
        while (used == 0)
            CHECK_EQ(gort_cond_wait(&not_empty, &mu), 0);
        long v = buffer[next_out];
        next_out = (next_out + 1) % ROOM;
        used--;
        gort_mutex_unlock(&mu);
        gort_cond_signal(&not_full); /* without the mutex is fine too */
        atomic_fetch_sub(&sum, v);
    }
    atomic_fetch_add(&counter, 1);
}

static void *thread_put(void *n)
{
    put_all((long)(intptr_t)n);
    return NULL;
}

static void *thread_take(void *n)
{
    take_all((long)(intptr_t)n);
    return NULL;
}

TEST_GO(a_bounded_buffer_of_goroutines_and_threads, .procs = "1,2,4,64", .fuzz = true)
{
    intptr_t n = test_scaled(5000, 500);
    pthread_t threads[4];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(GORT_GO(put_all, (long)n), 0);
        CHECK_EQ(GORT_GO(take_all, (long)n), 0);
        CHECK_EQ(pthread_create(&threads[2 * i], NULL, thread_put, (void *)n), 0);
        CHECK_EQ(pthread_create(&threads[2 * i + 1], NULL, thread_take, (void *)n), 0);
    }
    await(&counter, 8);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(atomic_load(&sum), 0);
    CHECK_EQ(used, 0);
    settle();
}

/* --- deadlines ------------------------------------------------------------------------------------- */

TEST_GO(a_deadline_is_not_early_and_the_mutex_is_back, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 10; i++) {
        gort_mutex_lock(&mu);
        int64_t until = gort_in(GORT_MS);
        CHECK_EQ(gort_cond_wait_until(&cond, &mu, until), -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK(!gort_mutex_trylock(&mu));
        CHECK_EQ(gort_cond_wait_until(&cond, &mu, gort_now()), -ETIMEDOUT);
        CHECK(!gort_mutex_trylock(&mu));
        CHECK_EQ(gort_cond_wait_until(&cond, &mu, GORT_TRY), -EAGAIN);
        CHECK(!gort_mutex_trylock(&mu));
        gort_mutex_unlock(&mu);
    }
}

static atomic_long woken, late;

static void wait_briefly(int64_t until)
{
    gort_mutex_lock(&mu);
    int err = gort_cond_wait_until(&cond, &mu, until);
    gort_mutex_unlock(&mu);
    CHECK(err == 0 || err == -ETIMEDOUT);
    atomic_fetch_add(err ? &late : &woken, 1);
}

static void wait_patiently(void *unused)
{
    (void)unused;
    gort_mutex_lock(&mu);
    CHECK_EQ(gort_cond_wait(&cond, &mu), 0);
    gort_mutex_unlock(&mu);
    atomic_fetch_add(&woken, 1);
}

/* A signal around the deadline of the first goes to it or to the second, never to nobody. */
TEST_GO(a_signal_at_the_deadline_is_not_lost, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(2000, 200), in_time = 0;
    uint64_t seed = test_seed();
    for (long i = 0; i < n; i++) {
        atomic_store(&woken, 0);
        atomic_store(&late, 0);
        int64_t until = gort_in(150 * GORT_US);
        CHECK_EQ(GORT_GO(wait_briefly, until), 0);
        CHECK_EQ(gort_go(wait_patiently, NULL), 0);
        for (long gone = 0; gone + waiting("cond wait") < 2; gone = atomic_load(&late))
            gort_yield(); /* the first may be through already; it is not counted twice */
        int64_t at = until - 20 * GORT_US + (int64_t)(test_random(&seed) % (60 * GORT_US));
        while (gort_now() < at)
            gort_yield();
        gort_cond_signal(&cond);
        await(&woken, 1);
        while (gort_now() < until || atomic_load(&woken) + atomic_load(&late) + waiting("cond wait") < 2)
            gort_yield();
        in_time += atomic_load(&late) == 0;
        CHECK_EQ(atomic_load(&woken), 1);
        gort_cond_signal(&cond);
        settle();
        CHECK_EQ(atomic_load(&woken) + atomic_load(&late), 2);
    }
    test_log("%ld of %ld in time", in_time, n);
}

static void wait_cancelled(int kind)
{
    gort_mutex_lock(&mu);
    CHECK_EQ(gort_cond_wait_until(&cond, &mu, kind ? GORT_FOREVER : soon()), -ECANCELED);
    CHECK(!gort_mutex_trylock(&mu));
    gort_mutex_unlock(&mu);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_context_ends_the_wait, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_ctx_use(ctx);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(wait_cancelled, i % 2), 0);
    gort_ctx_use(NULL);
    await_waiting("cond wait", 10);
    CHECK_EQ(gort_go(wait_patiently, NULL), 0);
    await_waiting("cond wait", 11);
    gort_ctx_cancel(ctx, 0);
    await(&counter, 10);
    await_waiting("cond wait", 1);
    gort_cond_signal(&cond); /* goes to who still waits, not to one that is gone */
    await(&woken, 1);
    settle();
    gort_ctx_unref(ctx);
}

/* --- over several runs ---------------------------------------------------------------------------- */

static void wait_for_ever(int kind)
{
    gort_mutex_lock(&mu);
    int err = kind ? gort_cond_wait(&cond, &mu) : gort_cond_wait_until(&cond, &mu, soon());
    CHECK_MSG(false, "was woken: %d", err);
}

static int leave_waiters(void *unused)
{
    (void)unused;
    for (int i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(wait_for_ever, i % 2), 0);
    await_waiting("cond wait", 6);
    return 0;
}

static int use_it(void *unused)
{
    (void)unused;
    atomic_store(&woken, 0);
    CHECK_EQ(gort_go(wait_patiently, NULL), 0);
    await_waiting("cond wait", 1);
    gort_cond_signal(&cond);
    await(&woken, 1);
    settle();
    return 0;
}

TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    gort_cond_signal(&cond);
    gort_cond_broadcast(&cond);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        if (i % 3 == 1)
            gort_cond_signal(&cond);
        if (i % 3 == 2)
            gort_cond_broadcast(&cond);
        CHECK(gort_mutex_trylock(&mu));
        gort_mutex_unlock(&mu);
        CHECK_EQ(gort_run(use_it, NULL), 0);
    }
}

/* A plain thread waits when the run ends; the mutex is with a goroutine that is gone, or with a thread that
 * goes on. */
static atomic_int thread_has;
static atomic_bool let_go;

static void *wait_in_thread(void *unused)
{
    CHECK_EQ(gort_mutex_lock(&mu), 0);
    atomic_store(&thread_has, 1);
    CHECK_EQ(gort_cond_wait(&cond, &mu), -ECANCELED);
    CHECK(!gort_mutex_trylock(&mu)); /* it has the mutex again */
    atomic_store(&thread_has, 2);
    gort_mutex_unlock(&mu);
    return unused;
}

static void *hold_in_thread(void *unused)
{
    CHECK_EQ(gort_mutex_lock(&mu), 0); /* once the other one waits */
    atomic_store(&thread_has, 3);
    while (!atomic_load(&let_go))
        usleep(1000);
    CHECK_EQ(atomic_load(&thread_has), 3);
    gort_mutex_unlock(&mu);
    return unused;
}

static int leave_thread_waiting(void *threads)
{
    pthread_t *t = threads;
    const char *gone = getenv("TEST_GONE");
    CHECK_EQ(pthread_create(&t[0], NULL, wait_in_thread, NULL), 0);
    while (atomic_load(&thread_has) != 1)
        gort_yield();
    if (gone) {
        CHECK_EQ(gort_mutex_lock(&mu), 0);
        if (*gone == '2')
            __atomic_store_n(GORT_PRIV_BYTE(&mu), 0x80,
                             __ATOMIC_RELAXED); /* as sync/mutex.c has it meanwhile */
        return 0;
    }
    CHECK_EQ(pthread_create(&t[1], NULL, hold_in_thread, NULL), 0);
    while (atomic_load(&thread_has) != 3)
        gort_yield();
    return 0;
}

TEST(the_run_ends_while_another_thread_has_the_mutex, .procs = "1,2")
{
    pthread_t t[2];
    CHECK_EQ(gort_run(leave_thread_waiting, t), 0);
    usleep(20000);
    atomic_store(&let_go, true);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(atomic_load(&thread_has), 2);
    CHECK(gort_mutex_trylock(&mu));
}

static void inherit_it(void)
{
    pthread_t t[2];
    CHECK_EQ(gort_run(leave_thread_waiting, t), 0);
    CHECK_EQ(pthread_join(t[0], NULL), 0); /* after a second of patience */
    CHECK_EQ(atomic_load(&thread_has), 2);
    CHECK(gort_mutex_trylock(&mu));
}

TEST(the_run_ends_while_one_of_it_has_the_mutex, .procs = "1,2", .env = "TEST_GONE=1")
{
    inherit_it();
}

/* Of an unlock that must wake somebody, the first half is done. */
TEST(the_run_ends_while_one_of_it_unlocks_the_mutex, .procs = "1,2", .env = "TEST_GONE=2")
{
    inherit_it();
}

/* SPDX-License-Identifier: MIT */
/*
 * rwmutex.c - many readers or one writer: exclusion, no starvation either way, deadlines.
 * Covers: src/sync/rwmutex.c
 */
#include "waiting.h"

static gort_rwmutex rw;
static atomic_long counter, activity; /* activity: readers + 10000 * writers, as in rwmutex_test.go */
static gort_wg all;

static void one_after_the_other(void)
{
    gort_rwmutex r = {0};
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(gort_rwmutex_lock(&r), 0);
        CHECK(!gort_rwmutex_trylock(&r));
        CHECK(!gort_rwmutex_tryrlock(&r));
        CHECK_EQ(gort_rwmutex_lock_until(&r, GORT_TRY), -EAGAIN);
        CHECK_EQ(gort_rwmutex_rlock_until(&r, GORT_TRY), -EAGAIN);
        gort_rwmutex_unlock(&r);
        CHECK_EQ(gort_rwmutex_rlock(&r), 0);
        CHECK(gort_rwmutex_tryrlock(&r));
        CHECK_EQ(gort_rwmutex_rlock_until(&r, GORT_TRY), 0);
        CHECK_EQ(gort_rwmutex_rlock_until(&r, gort_now()), 0); /* past, but possible */
        CHECK(!gort_rwmutex_trylock(&r));
        CHECK_EQ(gort_rwmutex_lock_until(&r, GORT_TRY), -EAGAIN);
        for (int k = 0; k < 4; k++)
            gort_rwmutex_runlock(&r);
        CHECK_EQ(gort_rwmutex_lock_until(&r, gort_now()), 0);
        gort_rwmutex_unlock(&r);
        CHECK(gort_rwmutex_trylock(&r));
        gort_rwmutex_unlock(&r);
    }
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
        CHECK_EQ(gort_run(run_alone, NULL), 0);
    }
    one_after_the_other();
}

static void reading(void)
{
    long n = atomic_fetch_add(&activity, 1) + 1;
    CHECK_MSG(n >= 1 && n < 10000, "a reader sees %ld", n);
}

static void writing(void)
{
    long n = atomic_fetch_add(&activity, 10000) + 10000;
    CHECK_EQ(n, 10000);
}

static void reader(long n)
{
    for (long i = 0; i < n; i++) {
        if (i % 5 == 0) {
            if (!gort_rwmutex_tryrlock(&rw))
                continue;
        } else if (i % 5 == 1) {
            if (gort_rwmutex_rlock_until(&rw, gort_in(20 * GORT_US)))
                continue;
        } else {
            CHECK_EQ(gort_rwmutex_rlock(&rw), 0);
        }
        reading();
        if (i % 3 == 0)
            gort_yield();
        atomic_fetch_sub(&activity, 1);
        gort_rwmutex_runlock(&rw);
    }
    gort_wg_done(&all);
}

static void writer(long n)
{
    for (long i = 0; i < n; i++) {
        if (i % 5 == 0) {
            if (!gort_rwmutex_trylock(&rw))
                continue;
        } else if (i % 5 == 1) {
            if (gort_rwmutex_lock_until(&rw, gort_in(20 * GORT_US)))
                continue;
        } else {
            CHECK_EQ(gort_rwmutex_lock(&rw), 0);
        }
        writing();
        if (i % 3 == 0)
            gort_yield();
        atomic_fetch_sub(&activity, 10000);
        gort_rwmutex_unlock(&rw);
    }
    gort_wg_done(&all);
}

static void *thread_reader(void *n)
{
    reader((long)(intptr_t)n);
    return NULL;
}

static void *thread_writer(void *n)
{
    writer((long)(intptr_t)n);
    return NULL;
}

static void check_free(void)
{
    CHECK(gort_rwmutex_trylock(&rw));
    gort_rwmutex_unlock(&rw);
}

TEST_GO(hammered, .procs = "1,4,10,64", .fuzz = true)
{
    static const int readers[] = {1, 3, 10};
    long n = test_scaled(3000, 200);
    for (int r = 0; r < 3; r++) {
        gort_wg_add(&all, readers[r] + 2);
        for (int i = 0; i < readers[r]; i++)
            CHECK_EQ(GORT_GO(reader, n), 0);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(GORT_GO(writer, n), 0);
        CHECK_EQ(gort_wg_wait(&all), 0);
        CHECK_EQ(atomic_load(&activity), 0);
        check_free();
    }
    settle();
}

TEST_GO(hammered_by_threads_too, .procs = "1,2,4,64", .fuzz = true)
{
    intptr_t n = test_scaled(1500, 150);
    pthread_t threads[4];
    gort_wg_add(&all, 8);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(GORT_GO(reader, (long)n), 0);
        CHECK_EQ(GORT_GO(writer, (long)n), 0);
        CHECK_EQ(pthread_create(&threads[2 * i], NULL, thread_reader, (void *)n), 0);
        CHECK_EQ(pthread_create(&threads[2 * i + 1], NULL, thread_writer, (void *)n), 0);
    }
    CHECK_EQ(gort_wg_wait(&all), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    check_free();
    settle();
}

/* --- who gets in ----------------------------------------------------------------------------------- */

static gort_chan *in, *out;

static void parallel_reader(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_rwmutex_rlock(&rw), 0);
    CHECK_EQ(gort_chan_send(in, NULL), 0);
    CHECK_EQ(gort_chan_recv(out, NULL), 1);
    gort_rwmutex_runlock(&rw);
}

TEST_GO(readers_hold_it_together, .procs = "1,2,4,64", .fuzz = true)
{
    in = gort_chan_new(0, 0);
    out = gort_chan_new(0, 0);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(gort_go(parallel_reader, NULL), 0);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(gort_chan_recv_until(in, NULL, soon()), 1); /* each has the lock before any gives it back */
    CHECK(!gort_rwmutex_trylock(&rw));
    for (int i = 0; i < 40; i++)
        CHECK_EQ(gort_chan_send(out, NULL), 0);
    settle();
    check_free();
    gort_chan_unref(in);
    gort_chan_unref(out);
}

static char story[32];
static atomic_int written;

static void tell(char c)
{
    story[atomic_fetch_add(&written, 1)] = c;
}

static void late_reader(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_rwmutex_rlock(&rw), 0);
    tell('r');
    gort_rwmutex_runlock(&rw);
}

static void late_writer(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_rwmutex_lock(&rw), 0);
    tell('W');
    gort_rwmutex_unlock(&rw);
}

TEST_GO(no_reader_passes_a_waiting_writer, .procs = "1,2,4,64", .fuzz = true)
{
    static const char order[] = "WrrWWrWrr";
    CHECK_EQ(gort_rwmutex_rlock(&rw), 0);
    for (int i = 0; order[i]; i++) {
        CHECK_EQ(gort_go(order[i] == 'W' ? late_writer : late_reader, NULL), 0);
        await_waiting("rwmutex", i + 1);
    }
    CHECK(!gort_rwmutex_tryrlock(&rw));
    CHECK_EQ(gort_rwmutex_rlock_until(&rw, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(atomic_load(&written), 0);
    gort_rwmutex_runlock(&rw);
    settle();
    CHECK_STR(story, order); /* readers between two writers look alike */
    check_free();
}

static atomic_bool stop;

static void read_on_and_on(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        CHECK_EQ(gort_rwmutex_rlock(&rw), 0);
        gort_yield();
        gort_rwmutex_runlock(&rw);
        atomic_fetch_add(&counter, 1);
    }
}

static void write_on_and_on(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        CHECK_EQ(gort_rwmutex_lock(&rw), 0);
        gort_yield();
        gort_rwmutex_unlock(&rw);
        atomic_fetch_add(&counter, 1);
    }
}

TEST_GO(a_writer_gets_through_many_readers, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 8; i++)
        CHECK_EQ(gort_go(read_on_and_on, NULL), 0);
    await(&counter, 20);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_rwmutex_lock_until(&rw, soon()), 0);
        gort_rwmutex_unlock(&rw);
        gort_yield();
    }
    atomic_store(&stop, true);
    settle();
}

TEST_GO(a_reader_gets_through_many_writers, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(write_on_and_on, NULL), 0);
    await(&counter, 20);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_rwmutex_rlock_until(&rw, soon()), 0);
        gort_rwmutex_runlock(&rw);
        gort_yield();
    }
    atomic_store(&stop, true);
    settle();
}

/* --- deadlines ------------------------------------------------------------------------------------- */

/* A writer that gave up must not keep out the readers that came after it. */
static void writer_gives_up(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_rwmutex_lock_until(&rw, gort_in(20 * GORT_MS)), -ETIMEDOUT);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_writer_that_gives_up_lets_readers_in, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 5; i++) {
        atomic_store(&counter, 0);
        CHECK_EQ(gort_rwmutex_rlock(&rw), 0);
        CHECK_EQ(gort_go(writer_gives_up, NULL), 0);
        CHECK_EQ(gort_go(writer_gives_up, NULL), 0);
        for (int k = 0; k < 3; k++)
            CHECK_EQ(gort_go(late_reader, NULL), 0);
        settle(); /* all have ended though the read lock is still held */
        CHECK_EQ(atomic_load(&counter), 2);
        CHECK(gort_rwmutex_tryrlock(&rw));
        gort_rwmutex_runlock(&rw);
        gort_rwmutex_runlock(&rw);
        check_free();
        atomic_store(&written, 0);
    }
}

static atomic_long in_time, too_late;

static void near_deadline(uint64_t seed, long n)
{
    for (long i = 0; i < n; i++) {
        int64_t until = gort_in((int64_t)(test_random(&seed) % (40 * GORT_US)));
        bool writes = test_random(&seed) % 3 == 0;
        int err = writes ? gort_rwmutex_lock_until(&rw, until) : gort_rwmutex_rlock_until(&rw, until);
        if (err) {
            CHECK_EQ(err, -ETIMEDOUT);
            atomic_fetch_add(&too_late, 1);
            continue;
        }
        atomic_fetch_add(&in_time, 1);
        if (writes)
            writing();
        else
            reading();
        if (i % 4 == 0)
            spin_for(5 * GORT_US);
        if (i % 16 == 0)
            let_pass(20 * GORT_US);
        atomic_fetch_sub(&activity, writes ? 10000 : 1);
        if (writes)
            gort_rwmutex_unlock(&rw);
        else
            gort_rwmutex_runlock(&rw);
    }
    gort_wg_done(&all);
}

TEST_GO(a_grant_at_the_deadline_is_not_lost, .procs = "1,2,4,64", .fuzz = true)
{
    gort_wg_add(&all, 8);
    for (uint64_t i = 0; i < 8; i++)
        CHECK_EQ(GORT_GO(near_deadline, test_seed() + i, test_scaled(3000, 300)), 0);
    CHECK_EQ(gort_wg_wait(&all), 0);
    CHECK_EQ(atomic_load(&activity), 0);
    CHECK_GT(atomic_load(&in_time), 0);
    CHECK_GT(atomic_load(&too_late), 0);
    check_free();
    settle();
}

TEST_GO(a_deadline_is_not_early, .procs = "1,2")
{
    CHECK_EQ(gort_rwmutex_lock(&rw), 0);
    for (int i = 0; i < 6; i++) {
        int64_t until = gort_in(2 * GORT_MS);
        CHECK_EQ(i % 2 ? gort_rwmutex_lock_until(&rw, until) : gort_rwmutex_rlock_until(&rw, until),
                 -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
    }
    gort_rwmutex_unlock(&rw);
    check_free();
}

/* --- contexts ------------------------------------------------------------------------------------- */

static void cancelled(int kind)
{
    CHECK_EQ(kind ? gort_rwmutex_lock_until(&rw, GORT_FOREVER) : gort_rwmutex_rlock_until(&rw, GORT_FOREVER),
             -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_cancelled_context_ends_only_the_timed_forms, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    CHECK_EQ(gort_rwmutex_lock(&rw), 0);
    gort_ctx_use(ctx);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_go(late_reader, NULL), 0);
        CHECK_EQ(gort_go(late_writer, NULL), 0);
        CHECK_EQ(GORT_GO(cancelled, 0), 0);
        CHECK_EQ(GORT_GO(cancelled, 1), 0);
    }
    gort_ctx_use(NULL);
    await_waiting("rwmutex", 12);
    gort_ctx_cancel(ctx, 0);
    await(&counter, 6);
    await_waiting("rwmutex", 6);
    CHECK_EQ(atomic_load(&written), 0);
    gort_rwmutex_unlock(&rw);
    settle();
    CHECK_EQ(atomic_load(&written), 6);
    check_free();
    gort_ctx_unref(ctx);
}

/* --- lifetimes ------------------------------------------------------------------------------------ */

struct object {
    gort_rwmutex rw;
    atomic_int users;
};

static void write_and_drop(void *arg)
{
    struct object *o = arg;
    CHECK_EQ(gort_rwmutex_lock(&o->rw), 0);
    bool last = atomic_fetch_sub(&o->users, 1) == 1;
    gort_rwmutex_unlock(&o->rw);
    if (last) {
        free(o);
        atomic_fetch_add(&counter, 1);
    }
}

TEST_GO(freed_by_whoever_locked_last, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(5000, 500);
    for (long i = 0; i < n; i++) {
        struct object *o = calloc(1, sizeof *o);
        atomic_init(&o->users, 3);
        for (int k = 0; k < 3; k++)
            CHECK_EQ(gort_go(write_and_drop, o), 0);
        if (i % 16 == 0)
            await(&counter, i + 1);
    }
    await(&counter, n);
    settle();
}

/* --- over several runs ---------------------------------------------------------------------------- */

static void wait_for_ever(int kind)
{
    int err = kind % 2 ? gort_rwmutex_lock(&rw) : gort_rwmutex_rlock_until(&rw, soon());
    CHECK_MSG(false, "got it: %d", err);
}

static int leave_waiters(void *unused)
{
    (void)unused;
    for (int i = 0; i < 6; i++)
        CHECK_EQ(GORT_GO(wait_for_ever, i), 0);
    await_waiting("rwmutex", 6);
    return 0;
}

static int contend(void *unlock)
{
    if (unlock)
        gort_rwmutex_unlock(&rw);
    gort_wg_add(&all, 4);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(GORT_GO(reader, 50L), 0);
        CHECK_EQ(GORT_GO(writer, 50L), 0);
    }
    CHECK_EQ(gort_wg_wait(&all), 0);
    check_free();
    return 0;
}

TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(gort_rwmutex_lock(&rw), 0);
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        if (i % 2)
            gort_rwmutex_unlock(&rw);
        CHECK_EQ(gort_run(contend, i % 2 ? NULL : &rw), 0);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * time.c - sleep, timers and tickers: what they promise about when, and about stop and reset.
 * Covers: src/time/clock.c src/time/sleep.c src/time/timer.c src/time/ticker.c src/sched/timers/timer.c src/sched/core/wake_defer.c
 *
 * Lower bounds are strict, upper ones loose: the machine may be busy.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

#include <gort.h>

#include "test.h"

static atomic_int calls;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&calls, 1);
}

TEST_GO(sleep_is_never_short, .procs = "1,4", .fuzz = true)
{
    static const int64_t lengths[] = {1, 50 * GORT_US, GORT_MS, 20 * GORT_MS};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int64_t from = gort_now();
        CHECK_EQ(gort_sleep(lengths[i]), 0);
        CHECK_GE(gort_now() - from, lengths[i]);
    }
    int64_t from = gort_now();
    CHECK_EQ(gort_sleep(0), 0);
    CHECK_EQ(gort_sleep(-3600 * GORT_SEC), 0);
    CHECK_EQ(gort_sleep_until(1), 0);
    CHECK_EQ(gort_sleep_until(GORT_TRY), 0);
    CHECK_LT(gort_now() - from, test_seconds(30));
}

/* Also one that lies before the start of the run, in debug builds too. */
TEST_GO(a_deadline_in_the_past_is_legal, .procs = "1,2")
{
    static const int64_t ages[] = {1, GORT_MS, GORT_SEC, 30 * GORT_SEC};
    gort_chan *empty = gort_chan_new(0, 0), *full = gort_chan_new(sizeof(int), 1);
    gort_sem sem = {0};
    gort_wg count_of_one = {0};
    int ends[2], value = 7;
    CHECK_EQ(gort_chan_send(full, &value), 0);
    gort_wg_add(&count_of_one, 1);
    CHECK_EQ(gort_pipe(ends), 0);
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        int64_t past = gort_in(-ages[i]);
        CHECK_LT(past, gort_now());
        gort_case cases[] = {{.ch = empty, .op = GORT_RECV}};
        CHECK_EQ(gort_chan_recv_until(empty, NULL, past), -ETIMEDOUT);
        CHECK_EQ(gort_chan_send_until(full, &value, past), -ETIMEDOUT);
        CHECK_EQ(gort_select(cases, 1, past), -ETIMEDOUT);
        CHECK_EQ(gort_sem_acquire_until(&sem, past), -ETIMEDOUT);
        CHECK_EQ(gort_wg_wait_until(&count_of_one, past), -ETIMEDOUT);
        CHECK_EQ(gort_wait_fd(ends[0], GORT_READ, past), -ETIMEDOUT);
        CHECK_EQ(gort_read_until(ends[0], &value, 1, past), -ETIMEDOUT);
        CHECK_EQ(gort_set_deadline(ends[0], GORT_READ, past), 0);
        CHECK_EQ(gort_read(ends[0], &value, 1), -ETIMEDOUT);
        CHECK_EQ(gort_set_deadline(ends[0], GORT_READ, GORT_FOREVER), 0);
        CHECK_EQ(gort_sleep_until(past), 0);
        gort_ctx *ctx = gort_ctx_new(NULL, past);
        CHECK_EQ(gort_ctx_err(ctx), -ETIMEDOUT);
        gort_ctx_use(ctx);
        CHECK_EQ(gort_chan_recv(empty, NULL), -ETIMEDOUT);
        gort_ctx_use(NULL);
        gort_ctx_unref(ctx);
        CHECK_EQ(gort_chan_recv_until(full, &value, past), 1); /* what can happen at once does */
        CHECK_EQ(gort_chan_send_until(full, &value, past), 0);
    }
    gort_chan_unref(empty);
    gort_chan_unref(full);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_close(ends[1]), 0);
}

TEST(deadlines_saturate)
{
    CHECK_EQ(gort_in(INT64_MAX), GORT_FOREVER);
    CHECK_EQ(gort_in(INT64_MAX - 1), GORT_FOREVER);
    CHECK_EQ(gort_in(INT64_MIN), 0); /* passed, and not GORT_TRY */
    CHECK_EQ(gort_in(-gort_now() - GORT_SEC), 0);
    CHECK_GT(gort_in(0), 0);
}

static gort_wg wg;
static int64_t due_at[8], awake_at[8];

static void sleep_in_slot(void *slot)
{
    intptr_t i = (intptr_t)slot;
    CHECK_EQ(gort_sleep_until(due_at[i]), 0);
    awake_at[i] = gort_now();
}

/* In the order of their times, not of their calls; but when the machine stands still they are due
 * together. */
TEST_GO(sleepers_wake_in_order, .procs = "1,2,4")
{
    static const int slots[] = {5, 3, 6, 1, 2, 7, 4, 0};
    int64_t from = gort_in(40 * GORT_MS);
    for (int i = 0; i < 8; i++)
        due_at[i] = from + i * 40 * GORT_MS;
    for (size_t i = 0; i < 8; i++)
        CHECK_EQ(gort_wg_go(&wg, sleep_in_slot, (void *)(intptr_t)slots[i]), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    for (int i = 0; i < 7; i++) {
        CHECK_GE(awake_at[i], due_at[i]);
        CHECK(awake_at[i] <= awake_at[i + 1] || awake_at[i] >= due_at[i + 1]);
    }
}

static void sleep_a_little(void *ms)
{
    int64_t from = gort_now(), length = (int64_t)(intptr_t)ms * GORT_MS;
    CHECK_EQ(gort_sleep(length), 0);
    CHECK_GE(gort_now() - from, length);
    atomic_fetch_add(&calls, 1);
}

TEST_GO(many_sleep_at_once, .procs = "1,4,64", .fuzz = true)
{
    int n = (int)test_scaled(10000, 500);
    for (int i = 0; i < n; i++)
        CHECK_EQ(gort_wg_go(&wg, sleep_a_little, (void *)(intptr_t)(i % 100)), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(atomic_load(&calls), n);
}

static void sleep_for_ever(void *unused)
{
    (void)unused;
    gort_sleep(INT64_MAX);
    atomic_store(&calls, 1000);
}

TEST_GO(a_huge_sleep_disturbs_nobody)
{
    CHECK_EQ(gort_go(sleep_for_ever, NULL), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_EQ(atomic_load(&calls), 0);
    gort_timer *t = gort_timer_new(INT64_MAX, INT64_MAX, count, NULL);
    CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK(gort_timer_stop(t));
    gort_timer_free(t);
    CHECK_EQ(atomic_load(&calls), 0);
}

static void end_well(int signo)
{
    (void)signo;
    _exit(0);
}

TEST_GO(a_huge_sleep_is_no_deadlock)
{
    CHECK(signal(SIGALRM, end_well) != SIG_ERR);
    CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 300000}}, NULL), 0);
    gort_sleep(INT64_MAX);
    CHECK(false);
}

static void *sleep_in_thread(void *unused)
{
    int64_t from = gort_now();
    CHECK_EQ(gort_sleep(20 * GORT_MS), 0);
    CHECK_GE(gort_now() - from, 20 * GORT_MS);
    return unused;
}

TEST_GO(threads_sleep_too)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, sleep_in_thread, NULL), 0);
    CHECK_EQ(gort_sleep(50 * GORT_MS), 0);
    pthread_join(t, NULL);
}

TEST(sleep_outside_runs)
{
    sleep_in_thread(NULL);
}

TEST_GO(a_context_ends_a_sleep)
{
    int64_t from = gort_now();
    gort_ctx *ctx = gort_ctx_new(NULL, from + 10 * GORT_MS);
    gort_ctx_use(ctx);
    CHECK_EQ(gort_sleep(3600 * GORT_SEC), -ETIMEDOUT);
    CHECK_GE(gort_now() - from, 10 * GORT_MS);
    gort_ctx_use(NULL);
    gort_ctx_unref(ctx);
}

TEST_GO(stop_and_reset_tell_the_truth, .procs = "1,2,4", .fuzz = true)
{
    gort_timer *t = gort_timer_new(GORT_SEC * 3600, 0, count, NULL);
    CHECK(gort_timer_stop(t));
    CHECK(!gort_timer_stop(t));
    CHECK(!gort_timer_reset(t, GORT_SEC * 3600, 0));
    CHECK(gort_timer_reset(t, 0, 0));
    while (atomic_load(&calls) == 0)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK(!gort_timer_stop(t));
    CHECK_EQ(atomic_load(&calls), 1);
    gort_timer_free(t);
}

/* Around its due time: whatever stop says, that is what happened. */
TEST_GO(stop_races_with_firing, .procs = "1,2,4", .fuzz = true)
{
    int rounds = (int)test_scaled(2000, 100), prevented = 0;
    for (int i = 0; i < rounds; i++) {
        gort_timer *t = gort_timer_new((i % 100) * GORT_US, 0, count, NULL);
        if (i % 3 == 0)
            gort_yield();
        prevented += gort_timer_stop(t);
        CHECK_EQ(gort_timer_stop_wait(t), 0);
        CHECK_EQ(atomic_load(&calls), i + 1 - prevented);
        gort_timer_free(t);
    }
    CHECK_EQ(gort_sleep(2 * GORT_MS), 0);
    CHECK_EQ(atomic_load(&calls), rounds - prevented);
}

static gort_timer *own;

static void use_itself(void *how)
{
    switch (atomic_fetch_add(&calls, 1)) {
    case 0:
        CHECK_EQ(gort_timer_stop_wait(own), -EDEADLK);
        CHECK(!gort_timer_reset(own, GORT_MS, 0));
        break;
    default:
        CHECK(!gort_timer_stop(own));
        gort_timer_free(own);
        gort_wg_done(how);
    }
}

TEST_GO(a_callback_may_do_anything, .procs = "1,4", .fuzz = true)
{
    for (int i = 0; i < 20; i++) {
        atomic_store(&calls, 0);
        gort_wg_add(&wg, 1);
        own = gort_timer_new(GORT_SEC * 3600, 0, use_itself, &wg);
        CHECK(gort_timer_reset(own, 0, 0));
        CHECK_EQ(gort_wg_wait(&wg), 0);
        CHECK_EQ(atomic_load(&calls), 2);
    }
}

TEST_GO(periodic_ones_do_not_drift, .serial = true)
{
    int64_t from = gort_now();
    gort_timer *t = gort_timer_new(2 * GORT_MS, 2 * GORT_MS, count, NULL);
    while (atomic_load(&calls) < 50)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_EQ(gort_timer_stop_wait(t), 0);
    int64_t took = gort_now() - from;
    CHECK_GE(took, 100 * GORT_MS);
    CHECK_LT(took, test_seconds(20));
    gort_timer_free(t);
}

TEST_GO(a_slow_receiver_loses_ticks, .serial = true)
{
    int64_t first, second;
    gort_ticker *ticker = gort_ticker_new(2 * GORT_MS);
    gort_chan *ch = gort_ticker_chan(ticker);
    CHECK_EQ(gort_sleep(50 * GORT_MS), 0);
    CHECK_EQ(gort_chan_len(ch), 1);
    CHECK_EQ(gort_chan_recv(ch, &first), 1);
    CHECK_EQ(gort_chan_recv(ch, &second), 1);
    CHECK_GE(second - first, GORT_MS); /* no burst */
    gort_ticker_reset(ticker, GORT_SEC * 3600);
    CHECK_EQ(gort_chan_recv_until(ch, &first, GORT_TRY), -EAGAIN); /* no stale tick */
    gort_chan_ref(ch);
    gort_ticker_free(ticker);
    CHECK_EQ(gort_chan_recv_until(ch, &first, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    gort_chan_unref(ch);
}

static int make_timers(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++)
        CHECK(gort_timer_new(GORT_SEC, 0, count, NULL) != NULL);
    gort_sleep(GORT_MS);
    return 0;
}

/* --- a crowd, of which one computes ------------------------------------------------------------ */

enum { FAR = 600, FEW = 10, TICKS = 50 };
static int64_t crowd_from;
static atomic_int crowd_awake, crowd_hog;
static gort_timer *crowd[FEW][FAR];

/* They wake together, a few every millisecond. The first to wake the last time computes until all are
 * awake. */
static void wake_in_crowd(void *slot)
{
    gort_timer **far = crowd[(intptr_t)slot];
    for (int i = 0; i < FAR; i++) /* here, so that each P has many */
        CHECK((far[i] = gort_timer_new(3600 * GORT_SEC, 0, count, NULL)) != NULL);
    for (int i = 1; i <= TICKS; i++)
        CHECK_EQ(gort_sleep_until(crowd_from + i * GORT_MS), 0);
    atomic_fetch_add(&crowd_awake, 1);
    if (!atomic_exchange(&crowd_hog, 1))
        while (atomic_load(&crowd_awake) < FEW)
            ;
    for (int i = 0; i < FAR; i++)
        gort_timer_free(far[i]);
}

/* For the few of a crowd nobody else is woken at first: those who are queued behind it still run. */
TEST_GO(a_crowd_does_not_wait_for_one_that_computes, .procs = "2,4")
{
    for (int turn = 0; turn < 5; turn++) {
        atomic_store(&crowd_awake, 0);
        atomic_store(&crowd_hog, 0);
        crowd_from = gort_in(5 * GORT_MS);
        for (int i = 0; i < FEW; i++)
            CHECK_EQ(gort_wg_go(&wg, wake_in_crowd, (void *)(intptr_t)i), 0);
        CHECK_EQ(gort_wg_wait(&wg), 0);
    }
}

TEST(timers_end_with_the_run)
{
    for (int i = 0; i < 5; i++)
        CHECK_EQ(gort_run(make_timers, NULL), 0);
    usleep(1200000);
    CHECK_EQ(atomic_load(&calls), 0);
}

TEST_GO(a_million_timers_leave_nothing)
{
    long rss = 0;
    long rounds = test_scaled(1000000, 10000);
    for (long i = 0; i < rounds; i++) {
        gort_timer *t = gort_timer_new(3600 * GORT_SEC, 0, count, NULL);
        CHECK(gort_timer_stop(t));
        gort_timer_free(t);
        if (i == rounds / 10)
            rss = test_rss_kb();
    }
    if (!test_under_sanitizer() && !test_under_valgrind() && !test_under_emulator())
        CHECK_LT(test_rss_kb(), rss + 4096);
}

/* SPDX-License-Identifier: MIT */
/*
 * timers.c - timers under changing circumstances: many of them, Ps that come and go or compute without a
 * call, threads without a P, clocks.
 * Covers: src/sched/timers/timer.c src/time/timer.c src/time/sleep.c
 *
 * Lower bounds are strict, upper ones loose: the machine may be busy.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gort.h>

#include "sched/life/life.h"

#include "test.h"

static atomic_int calls;
static gort_wg wg;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&calls, 1);
}

static void on_alarm(int signo)
{
    (void)signo;
}

/* Signals make the kernel's sleeps return; ours go on, and end when they should. */
TEST_GO(signals_do_not_change_a_sleep, .procs = "1,2")
{
    struct sigaction sa = {.sa_handler = on_alarm};
    struct itimerval often = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t from = gort_now();
    CHECK_EQ(gort_sleep(150 * GORT_MS), 0);
    CHECK_GE(gort_now() - from, 150 * GORT_MS);
    CHECK_LT(gort_now() - from, test_seconds(30));
    setitimer(ITIMER_REAL, &off, NULL);
}

/* A short sleep is not rounded up to the next millisecond: the best of many is well below one. */
TEST_GO(sleeps_below_a_millisecond, .procs = "1,2")
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < 200 && best > 500 * GORT_US; i++) {
        int64_t from = gort_now();
        CHECK_EQ(gort_sleep(50 * GORT_US), 0);
        int64_t took = gort_now() - from;
        CHECK_GE(took, 50 * GORT_US);
        best = took < best ? took : best;
    }
    CHECK_LT(best, 900 * GORT_US);
}

/* Many timers are set to other times; the short ones come in time. */
TEST_GO(adjusted_timers_come_in_time, .procs = "1,2,4", .fuzz = true)
{
    enum { N = 100 };
    gort_timer *t[N];
    for (int i = 0; i < N; i++)
        t[i] = gort_timer_new((i % 2 ? 3600 : 1800) * GORT_SEC, 0, count, NULL);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < N; i++)
            CHECK(gort_timer_reset(t[i], (int64_t)((i * 7919 + round * 104729) % 3600 + 60) * GORT_SEC, 0));
    int64_t from = gort_now();
    for (int i = 0; i < N; i++)
        CHECK(gort_timer_reset(t[i], i * GORT_MS / 4, 0));
    while (atomic_load(&calls) < N)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_GE(gort_now() - from, (N - 1) * GORT_MS / 4);
    CHECK_LT(gort_now() - from, test_seconds(20));
    for (int i = 0; i < N; i++) {
        CHECK(!gort_timer_stop(t[i]));
        gort_timer_free(t[i]);
    }
    CHECK_EQ(atomic_load(&calls), N);
}

/* Each has come to its call, which is a goroutine, or was stopped, and from then on nothing comes any
 * more. */
static void check_no_more(const atomic_int *n, const atomic_int *stopped, int total)
{
    for (int64_t until = gort_in(test_seconds(30));
         atomic_load(n) + atomic_load(stopped) < total && gort_now() < until;)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    CHECK_EQ(gort_sleep(60 * GORT_MS), 0);
    CHECK_EQ(atomic_load(n) + atomic_load(stopped), total);
}

/* Those that are stopped half-way never come. */
TEST_GO(stopped_timers_never_come, .procs = "1,4", .fuzz = true)
{
    enum { N = 200 };
    gort_timer *t[N];
    atomic_int stopped = 0;
    for (int i = 0; i < N; i++)
        t[i] = gort_timer_new((20 + i % 40) * GORT_MS, 0, count, NULL);
    CHECK_EQ(gort_sleep(30 * GORT_MS), 0);
    for (int i = 0; i < N; i++)
        stopped += gort_timer_stop(t[i]);
    check_no_more(&calls, &stopped, N);
    for (int i = 0; i < N; i++)
        gort_timer_free(t[i]);
}

static gort_timer *others[50];
static atomic_int stopped_by_one;

static void stop_others(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++)
        if (gort_timer_stop(others[i]))
            atomic_fetch_add(&stopped_by_one, 1);
    atomic_fetch_add(&calls, 1000);
}

/* One call stops others that are due at the same moment. */
TEST_GO(a_call_stops_others, .procs = "1,2,4", .fuzz = true)
{
    int64_t at = gort_in(20 * GORT_MS);
    gort_timer *one = gort_timer_new(at - gort_now(), 0, stop_others, NULL);
    for (int i = 0; i < 50; i++)
        others[i] = gort_timer_new(at - gort_now(), 0, count, NULL);
    while (atomic_load(&calls) < 1000)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    check_no_more(&calls, &stopped_by_one, 1050);
    for (int i = 0; i < 50; i++)
        gort_timer_free(others[i]);
    gort_timer_free(one);
}

/* Thousands that wait long, and others that come and go: the long ones cost nothing. */
static void ping(gort_chan *ch)
{
    int v;
    while (gort_chan_recv_until(ch, &v, gort_in(test_seconds(30))) == 1)
        ;
}

TEST_GO(deadlines_beside_a_full_heap, .procs = "1,2")
{
    int n = (int)test_scaled(5000, 500), messages = (int)test_scaled(20000, 1000);
    gort_timer **t = calloc((size_t)n, sizeof *t);
    gort_chan *ch = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < n; i++)
        t[i] = gort_timer_new(600 * GORT_SEC, 0, count, NULL);
    CHECK_EQ(GORT_GO(ping, ch), 0);
    for (int i = 0; i < messages; i++)
        CHECK_EQ(gort_chan_send_until(ch, &i, gort_in(test_seconds(30))), 0);
    gort_chan_close(ch);
    for (int i = 0; i < n; i++) {
        CHECK(gort_timer_stop(t[i]));
        gort_timer_free(t[i]);
    }
    free(t);
    CHECK_EQ(atomic_load(&calls), 0);
}

static void sleep_until_then(void *at)
{
    int64_t when = *(int64_t *)at;
    CHECK_EQ(gort_sleep_until(when), 0);
    CHECK_GE(gort_now(), when);
    atomic_fetch_add(&calls, 1);
    gort_wg_done(&wg);
}

/* The number of Ps changes while timers are pending on all of them: none is lost, none is early. */
TEST_GO(maxprocs_changes_lose_no_timer, .procs = "4")
{
    int n = (int)test_scaled(10000, 500);
    int64_t base = gort_in(100 * GORT_MS), *at = calloc((size_t)n, sizeof *at);
    gort_wg_add(&wg, n);
    for (int i = 0; i < n; i++) {
        at[i] = base + (i * 7919 % 200) * GORT_MS;
        CHECK_EQ(gort_go(sleep_until_then, &at[i]), 0);
        if (i % 100 == 0)
            gort_yield();
    }
    static const int procs[] = {1, 8, 2, 16, 1, 4};
    for (int i = 0; i < 30; i++) {
        gort_maxprocs(procs[i % 6]);
        CHECK_EQ(gort_sleep(5 * GORT_MS), 0);
    }
    gort_maxprocs(1);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(atomic_load(&calls), n);
    free(at);
}

static atomic_bool computing, enough;

static void compute(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++)
        CHECK(gort_timer_new(5 * GORT_MS, 0, count, NULL) != NULL);
    atomic_store(&computing, true);
    int64_t deadline = gort_in(test_seconds(20));
    while (!atomic_load(&enough) && gort_now() < deadline)
        ;
}

static int compute_beside_timers(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(compute, NULL), 0);
    while (!atomic_load(&computing) || atomic_load(&calls) < 20)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    atomic_store(&enough, true);
    return 0;
}

/* The P that owns the timers runs a goroutine that never calls us: another P fires them. */
TEST(timers_of_a_busy_p_fire)
{
    gort_config config = {.maxprocs = 2};
    CHECK_EQ(gort_run_with(&config, compute_beside_timers, NULL), 0);
    CHECK_EQ(atomic_load(&calls), 20);
}

static void *wait_in_thread(void *ch)
{
    int v;
    int64_t from = gort_now();
    while (!atomic_load(&computing))
        usleep(100);
    CHECK_EQ(gort_chan_recv_until(ch, &v, gort_in(10 * GORT_MS)), -ETIMEDOUT);
    CHECK_GE(gort_now() - from, 10 * GORT_MS);
    atomic_store(&enough, true);
    return NULL;
}

static int compute_beside_a_thread(void *unused)
{
    (void)unused;
    pthread_t t;
    gort_chan *ch = gort_chan_new(sizeof(int), 0);
    CHECK_EQ(pthread_create(&t, NULL, wait_in_thread, ch), 0);
    atomic_store(&computing, true);
    int64_t from = gort_now();
    while (!atomic_load(&enough))
        CHECK_LT(gort_now() - from, test_seconds(20));
    pthread_join(t, NULL);
    gort_chan_unref(ch);
    return 0;
}

/* The only P computes: a thread's deadline is met all the same, by a thread without a P. */
TEST(a_thread_is_not_held_up_by_a_busy_p)
{
    gort_config config = {.maxprocs = 1};
    CHECK_EQ(gort_run_with(&config, compute_beside_a_thread, NULL), 0);
}

static atomic_int ready;

static void *sleeps_shortly(void *unused)
{
    atomic_fetch_add(&ready, 1);
    int64_t from = gort_now();
    CHECK_EQ(gort_sleep(2 * GORT_MS), 0);
    CHECK_LT(gort_now() - from, test_seconds(30));
    return unused;
}

static void sleep_an_hour(void *unused)
{
    (void)unused;
    gort_sleep(3600 * GORT_SEC);
}

/* Everybody is asleep until a far timer; then a thread sets a near one, which must break that sleep. */
TEST_GO(a_near_timer_breaks_a_long_sleep, .procs = "1,2,4", .timeout = 20)
{
    pthread_t t;
    CHECK_EQ(gort_go(sleep_an_hour, NULL), 0);
    CHECK_EQ(gort_sleep(5 * GORT_MS), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(pthread_create(&t, NULL, sleeps_shortly, NULL), 0);
        gort_block_enter();
        pthread_join(t, NULL);
        gort_block_leave();
    }
    CHECK_EQ(atomic_load(&ready), 10);
}

static gort_timer *shared;

static void hammer(void *unused)
{
    (void)unused;
    for (int i = 0; i < 300; i++) {
        gort_timer_reset(shared, 1 + i % 3 * 1000, 0);
        if (i % 7 == 0)
            gort_timer_stop(shared);
        if (i % 16 == 0)
            gort_yield();
    }
    gort_wg_done(&wg);
}

/* Many goroutines start and stop one timer: no crash, and when all is over it can still be stopped for
 * good. */
TEST_GO(one_timer_for_many, .procs = "1,2,4", .fuzz = true)
{
    shared = gort_timer_new(3600 * GORT_SEC, 0, count, NULL);
    gort_wg_add(&wg, 16);
    for (int i = 0; i < 16; i++)
        CHECK_EQ(gort_go(hammer, NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    gort_timer_stop(shared);
    CHECK_EQ(gort_timer_stop_wait(shared), 0);
    int seen = atomic_load(&calls);
    CHECK_EQ(gort_sleep(5 * GORT_MS), 0);
    CHECK_EQ(atomic_load(&calls), seen);
    gort_timer_reset(shared, GORT_MS, 0);
    while (atomic_load(&calls) == seen)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    gort_timer_free(shared);
}

static int just_set(void *unused)
{
    (void)unused;
    shared = gort_timer_new(GORT_MS, GORT_MS, count, NULL);
    return 0;
}

static int set_again(void *unused)
{
    (void)unused;
    int seen = atomic_load(&calls);
    CHECK(!gort_timer_reset(shared, GORT_MS, 0));
    while (atomic_load(&calls) == seen)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    return 0;
}

/* A timer outlives its run, stopped; it can be used in the next one. Without a run it never comes. */
TEST(a_timer_outlives_its_run, .procs = "1,4")
{
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(gort_run(just_set, NULL), 0);
        CHECK(!gort_timer_stop(shared));
        CHECK(!gort_timer_reset(shared, 1, 0));
        CHECK(!gort_timer_stop(shared));
        CHECK_EQ(gort_run(set_again, NULL), 0);
        gort_timer_free(shared);
    }
}

/* A million pending ones are taken back: the memory of the heap shrinks, that of timers is used again. */
TEST_GO(a_million_pending_leave_nothing)
{
    long n = test_scaled(1000000, 5000), rss[2];
    gort_timer **t = calloc((size_t)n, sizeof *t);
    for (int round = 0; round < 2; round++) {
        for (long i = 0; i < n; i++)
            t[i] = gort_timer_new(3600 * GORT_SEC + i * 7919 % 1000003, 0, count, NULL);
        for (long i = 0; i < n; i++) {
            CHECK(gort_timer_stop(t[i]));
            gort_timer_free(t[i]);
        }
        rss[round] = test_rss_kb();
    }
    if (!test_under_sanitizer() && !test_under_valgrind() && !test_under_emulator())
        CHECK_LT(rss[1], rss[0] + 4096);
    free(t);
    CHECK_EQ(atomic_load(&calls), 0);
}

/* --- a crowd at one instant ------------------------------------------------------------------------------------------- */

static struct {
    int64_t at;
    atomic_long called;
    size_t first; /* how many were ready to run when the first one ran */
} crowd;

static void in_crowd(void *unused)
{
    (void)unused;
    CHECK_GE(gort_now(), crowd.at);
    if (atomic_fetch_add(&crowd.called, 1) == 0)
        crowd.first = gort_count(); /* each has a goroutine once it has been fired */
}

/* Timers for one instant, all set before it has come. */
static gort_timer **set_crowd(long n)
{
    gort_timer **t = calloc((size_t)n, sizeof *t);
    CHECK(t);
    for (int64_t ahead = GORT_SEC;; ahead *= 2) {
        crowd.at = gort_in(ahead);
        for (long i = 0; i < n; i++) {
            t[i] = gort_timer_new(crowd.at - gort_now(), 0, in_crowd, NULL);
            CHECK(t[i]);
        }
        if (gort_now() < crowd.at)
            return t;
        for (long i = 0; i < n; i++) { /* the machine is slow */
            CHECK_EQ(gort_timer_stop_wait(t[i]), 0);
            gort_timer_free(t[i]);
        }
        atomic_store(&crowd.called, 0);
    }
}

TEST_GO(the_first_of_a_crowd_does_not_wait_for_the_last, .procs = "1,2,4")
{
    long n = test_scaled(200000, 20000);
    gort_timer **t = set_crowd(n);
    for (int64_t until = gort_in(test_seconds(100)); atomic_load(&crowd.called) < n; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "%ld of %ld", atomic_load(&crowd.called), n);
    if (gort_maxprocs(0) == 1) /* else others fire while the first one runs */
        CHECK_LT(crowd.first, n / 4);
    for (long i = 0; i < n; i++)
        gort_timer_free(t[i]);
    free(t);
}

static atomic_long sleeping;
static uint32_t queued_at_first;

static void sleep_in_crowd(void *unused)
{
    (void)unused;
    atomic_fetch_add(&sleeping, 1);
    CHECK_EQ(gort_sleep_until(crowd.at), 0);
    if (atomic_fetch_add(&crowd.called, 1) == 0)
        queued_at_first = gort__load(&gort__sched.global.n, RELAXED);
}

TEST_GO(the_first_sleeper_does_not_wait_for_the_last, .procs = "1,2,4")
{
    long n = test_scaled(20000, 1000);
    for (int64_t ahead = GORT_SEC; !crowd.at || gort_now() >= crowd.at; ahead *= 2) {
        gort_wg_wait(&wg);
        crowd.at = gort_in(ahead);
        atomic_store(&crowd.called, 0);
        atomic_store(&sleeping, 0);
        for (long i = 0; i < n; i++)
            CHECK_EQ(gort_wg_go(&wg, sleep_in_crowd, NULL), 0);
        while (atomic_load(&sleeping) < n)
            gort_yield();
    }
    gort_wg_wait(&wg);
    CHECK_EQ(atomic_load(&crowd.called), n);
    if (gort_maxprocs(0) == 1)
        CHECK_LT(queued_at_first, n / 4);
}

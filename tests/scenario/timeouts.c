/* SPDX-License-Identifier: MIT */
/*
 * timeouts.c - time-outs, which are reset again and again: never early, never lost, what a reset says is
 * true, and long ones, which go by a cached clock (sched/core/cached_now.c), are no later than others.
 * Covers: src/time/timer.c src/sched/core/cached_now.c
 *
 * Lower bounds are strict, upper ones loose: the machine may be busy.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gort.h>

#include "sched/timers/timer.h"
#include "sched/life/life.h"

#include "test.h"

static atomic_int calls;
static gort_wg wg;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&calls, 1);
}

enum { TIME_OUTS = 200 };

static struct time_out {
    gort_timer *t;
    int64_t ns;
    _Atomic int64_t from; /* when it was last set, or before */
    _Atomic int64_t came;
    atomic_int due; /* calls that have not ended, or begun */
} time_outs[TIME_OUTS];

static void expect(struct time_out *o, int n)
{
    atomic_fetch_add(&o->due, n);
    gort_wg_add(&wg, n);
}

static void comes(void *arg)
{
    struct time_out *o = arg;
    o->came = gort_now();
    CHECK_GE(o->came, atomic_load(&o->from) + o->ns);
    expect(o, -1);
}

static void move(struct time_out *o)
{
    if (atomic_load(&o->due) >
        1) /* a call of a former setting has not ended, and would meet the new `from` */
        return;
    int64_t now = gort_now();
    expect(o, 1); /* before it can come */
    if (gort_timer_reset(o->t, o->ns, 0)) {
        atomic_store(&o->from, now);
        expect(o, -1);
    } /* else it has been called, or is just being so, and there will be one more */
}

/* Each is moved some times, with calls, sleeps and long computations in between. Of each pair the first asks
 * for the time, the second, a nanosecond longer, is the shortest one that goes by the cached clock. */
static void move_all(int64_t longer)
{
    for (int i = 0; i < TIME_OUTS; i++) {
        struct time_out *o = &time_outs[i];
        o->ns = i % 2 ? longer : longer - 1;
        expect(o, 1);
        atomic_store(&o->from, gort_now());
        o->t = gort_timer_new(o->ns, 0, comes, o);
        CHECK(o->t != NULL);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = round % 3 * 2; i + 1 < TIME_OUTS; i += 6) {
            move(&time_outs[i]);
            move(&time_outs[i + 1]);
        }
        if (round % 4 < 2)
            CHECK_EQ(gort_sleep(round % 4 * 7 * GORT_MS + 1), 0);
        else
            for (int64_t until = gort_now() + round % 4 * GORT_MS; gort_now() < until;)
                ;
    }
}

static int64_t late(const struct time_out *o)
{
    return o->came - o->from - o->ns;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns by how much more the second of a pair was late than the first: the median of all pairs. */
static int64_t until_all_came(void)
{
    int64_t latest = 0, more[TIME_OUTS / 2];
    CHECK_EQ(gort_wg_wait(&wg), 0);
    for (int i = 0; i < TIME_OUTS; i++) {
        latest = late(&time_outs[i]) > latest ? late(&time_outs[i]) : latest;
        if (i % 2)
            more[i / 2] = late(&time_outs[i]) - late(&time_outs[i - 1]);
        gort_timer_free(time_outs[i].t);
    }
    qsort(more, TIME_OUTS / 2, sizeof more[0], by_size);
    test_log("at most %ld us late", (long)(latest / GORT_US));
    return more[TIME_OUTS / 4];
}

TEST_GO(short_ones_are_not_early, .procs = "1,2,4")
{
    move_all(60 * GORT_MS);
    until_all_came();
}

TEST_GO(long_ones_are_neither_early_nor_later_than_others, .procs = "1,2,4")
{
    move_all(GORT_SEC);
    int64_t later = until_all_came();
    test_log("long ones came %ld us later", (long)(later / GORT_US));
    CHECK_LT(later, 2 * GORT_MS);
}

/* The only timer that is pending comes ns after a moment since `from`, or a little later. */
static void is_due_in(int64_t ns, int64_t from)
{
    int64_t to = gort_now();
    gort_timer *first = gort_timer_new(60 * GORT_MS, 0, count, NULL);
    CHECK(first != NULL);
    gort_timer_stop(first); /* so that the heap looks when the next one is due */
    gort_timer_free(first);
    CHECK_GE(gort__timer_next(), from + ns);
    CHECK_LE(gort__timer_next(), to + ns + GORT_MS / 5);
}

static void are_set_for_their_time(int64_t ns)
{
    int64_t from = gort_now();
    gort_timer *t = gort_timer_new(ns, 0, count, NULL);
    CHECK(t != NULL);
    is_due_in(ns, from);
    for (int k = 1; k <= 6; k++) { /* later by little, and by much, and then sooner */
        int64_t other = k < 4 ? ns + k * GORT_US : k < 6 ? ns * k : ns + 1;
        from = gort_now();
        CHECK(gort_timer_reset(t, other, 0));
        is_due_in(other, from);
    }
    CHECK(gort_timer_stop(t));
    CHECK_EQ(gort__timer_next(), INT64_MAX);
    gort_timer_free(t);
}

/* However long they are: nobody has to wait for half an hour to see when they will come. Long enough for the
 * monitor to have begun. */
TEST_GO(long_ones_are_set_for_their_time, .procs = "1")
{
    static const int64_t seconds[] = {1, 29, 30, 31, 600, 3600, 10800, 31536000};
    for (int64_t until = gort_now() + 100 * GORT_MS; gort_now() < until;)
        for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
            are_set_for_their_time(seconds[i] * GORT_SEC);
}

/* The process is stopped meanwhile, for longer than some of the time-outs. */
TEST_GO(not_early_in_a_stopped_process, .procs = "1,2", .native = TEST_FORKS)
{
    pid_t parent = getpid(), child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        for (int i = 0; i < 4; i++) {
            usleep(17000);
            kill(parent, SIGSTOP);
            usleep(i % 2 ? 20000 : 90000);
            kill(parent, SIGCONT);
        }
        _exit(0);
    }
    move_all(60 * GORT_MS);
    until_all_came();
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static gort_timer *wanted; /* by everybody */
static atomic_bool enough;

static void stop_and_reset(void *unused)
{
    (void)unused;
    while (!atomic_load(&enough)) {
        gort_timer_stop(wanted);
        gort_timer_reset(wanted, GORT_SEC * 60, 0);
    }
    gort_wg_done(&wg);
}

/* Whoever is stopped in a reset, because its time slice is over or the world is stopped, has no lock that
 * others want. */
TEST_GO(stopped_in_a_reset, .procs = "1,2")
{
    enum { N = 3 };
    gort__world_timeout = 30 * GORT_SEC;
    wanted = gort_timer_new(GORT_SEC * 60, 0, count, NULL);
    CHECK(wanted != NULL);
    gort_wg_add(&wg, N);
    for (int i = 0; i < N; i++)
        CHECK_EQ(gort_go(stop_and_reset, NULL), 0);
    for (int64_t until = gort_now() + GORT_SEC; gort_now() < until;) {
        CHECK_EQ(gort_sleep(GORT_MS), 0);
        CHECK_EQ(gort_world_stop(), 0);
        gort_timer_stop(wanted);
        gort_world_start();
    }
    atomic_store(&enough, true);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    gort_timer_free(wanted);
    CHECK_EQ(atomic_load(&calls), 0);
}

/* --- at the last moment -------------------------------------------------------------------------- */

enum { ALMOST = 100, ROUNDS = 12, TIME_OUT = 60 /* ms */ };

struct almost {
    _Atomic int64_t not_before;
    atomic_int calls;
    uint64_t random;
};

static void rings(void *arg)
{
    struct almost *a = arg;
    CHECK_GE(gort_now(), atomic_load(&a->not_before));
    atomic_fetch_add(&a->calls, 1);
}

/* Moves a time-out once, at about the time when it is due. If that was in time there is no call before the
 * new time, and then one; else there is one already, or just about to be counted, and later one more. */
static void moves_it_at_the_last_moment(void *arg)
{
    struct almost *a = arg;
    gort_timer *t = gort_timer_new(GORT_SEC * 3600, 0, rings, a);
    CHECK(t != NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t now = gort_now();
        atomic_store(&a->calls, 0);
        atomic_store(&a->not_before, now + TIME_OUT * GORT_MS);
        gort_timer_reset(t, TIME_OUT * GORT_MS, 0);
        CHECK_EQ(gort_sleep_until(now + TIME_OUT * GORT_MS / 2), 0);
        int64_t entry = now + TIME_OUT * GORT_MS; /* of the heap, which stays where it is */
        int64_t moved = gort_now() + TIME_OUT * GORT_MS;
        bool active = gort_timer_reset(t, TIME_OUT * GORT_MS, 0);
        if (active) { /* else no CPU for so long */
            atomic_store(&a->not_before, moved);
            int64_t about = test_random(&a->random) % 4 ? moved : entry;
            int64_t ns = (int64_t)(test_random(&a->random) % (uint64_t)(2 * GORT_MS));
            CHECK_EQ(gort_sleep_until(about - GORT_MS + ns), 0);
            moved = gort_now() + TIME_OUT * GORT_MS;
            active = gort_timer_reset(t, TIME_OUT * GORT_MS, 0);
        }
        if (active)
            atomic_store(&a->not_before, moved);
        while (atomic_load(&a->calls) < 2 - active)
            CHECK_EQ(gort_sleep(GORT_MS), 0);
        CHECK_GE(gort_now(), moved);
        gort_timer_reset(t, GORT_SEC * 3600, 0);
        CHECK_EQ(atomic_load(&a->calls), 2 - active);
    }
    gort_timer_free(t);
    gort_wg_done(&wg);
}

TEST_GO(moved_at_the_last_moment, .procs = "1,2,4", .fuzz = 1)
{
    static struct almost almost[ALMOST];
    gort_wg_add(&wg, ALMOST);
    for (int i = 0; i < ALMOST; i++) {
        almost[i].random = test_seed() + (uint64_t)i;
        CHECK_EQ(gort_go(moves_it_at_the_last_moment, &almost[i]), 0);
    }
    CHECK_EQ(gort_wg_wait(&wg), 0);
}

/* --- from all sides ------------------------------------------------------------------------------ */

static gort_timer *common;

/* Goroutines and a plain thread move, shorten, stop and start the same timer. */
static void uses_it(void *arg)
{
    uint64_t random = test_seed() + (uintptr_t)arg;
    for (int64_t until = gort_now() + GORT_SEC / 2; gort_now() < until;) {
        for (int i = 0; i < 100; i++) {
            uint64_t what = test_random(&random) % 64;
            if (what == 0)
                gort_timer_stop(common);
            else if (what == 1)
                gort_timer_reset(common, GORT_US, 0);
            else if (what == 2)
                gort_timer_reset(common, GORT_MS, 3 * GORT_MS);
            else
                gort_timer_reset(common, (int64_t)(20 + what) * GORT_MS, 0);
        }
        if (test_random(&random) % 8 == 0)
            gort_sleep(GORT_US * 100);
    }
    gort_wg_done(&wg);
}
static void *uses_it_in_a_thread(void *arg)
{
    uses_it(arg);
    return NULL;
}

TEST_GO(used_from_all_sides, .procs = "1,2,4", .fuzz = 1)
{
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        common = gort_timer_new(GORT_SEC, 0, count, NULL);
        CHECK(common != NULL);
        gort_wg_add(&wg, 4);
        for (uintptr_t k = 0; k < 3; k++)
            CHECK_EQ(gort_go(uses_it, (void *)k), 0);
        CHECK_EQ(pthread_create(&thread, NULL, uses_it_in_a_thread, (void *)3), 0);
        CHECK_EQ(gort_wg_wait(&wg), 0);
        pthread_join(thread, NULL);
        /* Whatever they did: it is stopped when it was stopped, and comes when it was set. */
        CHECK_EQ(gort_timer_stop_wait(common), 0);
        int before = atomic_load(&calls);
        CHECK_EQ(gort_sleep(100 * GORT_MS), 0);
        CHECK_EQ(atomic_load(&calls), before);
        CHECK(!gort_timer_reset(common, 60 * GORT_SEC, 0));
        CHECK(gort_timer_reset(common, 61 * GORT_SEC, 0));
        CHECK(gort_timer_reset(common, 30 * GORT_MS, 0));
        while (atomic_load(&calls) == before)
            CHECK_EQ(gort_sleep(GORT_MS), 0);
        CHECK_EQ(atomic_load(&calls), before + 1);
        CHECK(!gort_timer_stop(common));
        gort_timer_free(common);
    }
}

/* Those of an ended run are not active any more, nor are they called; in the next one they can be set
 * again. */
static bool came_between; /* the call of the first reset has come before the second */
static int leaves_it_pending(void *wait)
{
    int64_t ns = (wait ? 30 : 60000) * GORT_MS;
    bool active = gort_timer_reset(common, ns, 0);
    came_between = !gort_timer_reset(common, ns + 5 * GORT_MS, 0);
    while (wait && !atomic_load(&calls))
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    return active;
}
TEST(over_the_end_of_a_run)
{
    common = gort_timer_new(30 * GORT_MS, 0, count, NULL);
    CHECK(common != NULL);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(gort_run(leaves_it_pending, NULL), 0);
        CHECK(!came_between);
        CHECK(!gort_timer_reset(common, 30 * GORT_MS, 0));
    }
    CHECK_EQ(atomic_load(&calls), 0);
    CHECK_EQ(gort_run(leaves_it_pending, common), 0);
    CHECK_GE(atomic_load(&calls), 1);
    CHECK_LE(atomic_load(&calls), 1 + came_between);
    gort_timer_free(common);
}

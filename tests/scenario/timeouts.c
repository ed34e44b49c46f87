/* SPDX-License-Identifier: MIT */
/*
 * timeouts.c - long timers, which are moved again and again without asking for the time (sched/lease.c) and without a lock
 * (time/move.h): never early, never lost, and what a reset says is true. Here already those of 40 ms.
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

#include "sched/verbs.h"

#include "test.h"

static atomic_int calls;
static gort_wg wg;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&calls, 1);
}

enum { TIME_OUTS = 200, TIME_OUT = 60 /* ms */ };

static struct time_out {
    gort_timer *t;
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
    CHECK_GE(o->came, atomic_load(&o->from) + TIME_OUT * GORT_MS);
    expect(o, -1);
}

static void move(struct time_out *o)
{
    if (atomic_load(&o->due) >
        1) /* a call of a former setting has not ended, and would meet the new `from` */
        return;
    int64_t now = gort_now();
    expect(o, 1); /* before it can come */
    if (gort_timer_reset(o->t, TIME_OUT * GORT_MS, 0)) {
        atomic_store(&o->from, now);
        expect(o, -1);
    } /* else it has been called, or is just being so, and there will be one more */
}

/* Each is moved some times, with calls, sleeps and long computations in between. */
static void move_all(void)
{
    for (int i = 0; i < TIME_OUTS; i++) {
        struct time_out *o = &time_outs[i];
        expect(o, 1);
        atomic_store(&o->from, gort_now());
        o->t = gort_timer_new(TIME_OUT * GORT_MS, 0, comes, o);
        CHECK(o->t != NULL);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = round % 3; i < TIME_OUTS; i += 3)
            move(&time_outs[i]);
        if (round % 4 < 2)
            CHECK_EQ(gort_sleep(round % 4 * 7 * GORT_MS + 1), 0);
        else
            for (int64_t until = gort_now() + round % 4 * GORT_MS; gort_now() < until;)
                ;
    }
}

static void until_all_came(void)
{
    int64_t latest = 0;
    CHECK_EQ(gort_wg_wait(&wg), 0);
    for (int i = 0; i < TIME_OUTS; i++) {
        int64_t late = time_outs[i].came - time_outs[i].from - TIME_OUT * GORT_MS;
        latest = late > latest ? late : latest;
        gort_timer_free(time_outs[i].t);
    }
    test_log("at most %ld ms late", (long)(latest / GORT_MS));
}

TEST_GO(long_ones_are_not_early, .procs = "1,2,4")
{
    gort__store(&gort__lease.least, 40 * GORT_MS, RELAXED);
    move_all();
    until_all_came();
}

/* The same when the process is stopped meanwhile, so that nobody extends the lease, for longer than the time-out. */
TEST_GO(long_ones_and_a_stopped_process, .procs = "1,2")
{
    if (test_under_emulator())
        SKIP("the emulator is stopped as well, and does not go on");
    gort__store(&gort__lease.least, 40 * GORT_MS, RELAXED);
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
    move_all();
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

/* Whoever is stopped in a reset, because its time slice is over or the world is stopped, has no lock that others want. */
TEST_GO(stopped_in_a_reset, .procs = "1,2")
{
    enum { N = 3 };
    gort__world_patience = 30 * GORT_SEC;
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

enum { ALMOST = 100, ROUNDS = 12, AHEAD = 50 /* ms: a time-out may be so late */ };

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

/* Moves a time-out once, at about the time when it is due. If that was in time there is no call before the new time, and
 * then one; else there is one already, or just about to be counted, and later one more. */
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
        int64_t moved = gort_now() +
                        TIME_OUT * GORT_MS; /* not the entry of the heap, which stays where it is */
        bool active = gort_timer_reset(t, TIME_OUT * GORT_MS, 0);
        if (active) { /* else no CPU for so long */
            atomic_store(&a->not_before, moved);
            int64_t ns = (int64_t)(test_random(&a->random) % (uint64_t)((TIME_OUT / 2 + AHEAD) * GORT_MS));
            CHECK_EQ(gort_sleep_until(now + TIME_OUT * GORT_MS + ns), 0);
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
    gort__store(&gort__lease.least, 20 * GORT_MS, RELAXED);
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
    gort__store(&gort__lease.least, 20 * GORT_MS, RELAXED);
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

/* Those of an ended run are not active any more, nor are they called; in the next one they can be set again. */
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
    gort__lease.least = 20 * GORT_MS;
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

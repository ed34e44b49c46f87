/* SPDX-License-Identifier: MIT */
/*
 * cputime.c - when a goroutine that has not run yet may start beside many that are preempted: few threads,
 * and nobody starves.
 * Covers: src/sched/core/cputime.c
 *
 * Plays scheduler with numbers instead of threads, so that a machine of any speed can be tried.
 */
#include <string.h>

#include "sched/life/life.h"

#include "test.h"

#define MS INT64_C(1000000)

enum { JOBS = 1000 };

struct play {
    int64_t left[JOBS]; /* CPU time that each needs to end; the preempted ones are a ring, oldest first */
    int ring[JOBS], first, held, fresh, most;
};

static void set_up(int procs)
{
    gort__sched.procs = procs;
    gort__sched.preempted.n = 0;
    gort__sched.preempted.cpu = gort__sched.preempted.admitted_at = 0;
}

/* Somebody runs for one time slice, in which he gets a share of a CPU. True: a new one was started for
 * that. */
static bool slice(struct play *p, int64_t share)
{
    int64_t length = 10 * MS + 10 * MS * p->held / 8, used = (length < 100 * MS ? length : 100 * MS) / share;
    bool start = p->fresh < JOBS && gort__cputime_admit_new();
    if (!start && !p->held)
        return false;
    int who = start ? p->fresh++ : p->ring[p->first];
    if (!start) {
        p->first = (p->first + 1) % JOBS;
        p->held--;
    }
    if (p->left[who] > used) {
        p->left[who] -= used;
        gort__sched.preempted.cpu += used;
        p->ring[(p->first + p->held++) % JOBS] = who;
    }
    p->most = p->held > p->most ? p->held : p->most;
    gort__sched.preempted.n = (uint32_t)p->held;
    return start;
}

static int most_held(int64_t cpu, int procs, int64_t share)
{
    static struct play p;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < JOBS; i++)
        p.left[i] = cpu;
    set_up(procs);
    while (p.fresh < JOBS || p.held)
        slice(&p, share);
    test_log("%d ms each, %d procs, 1/%d of a CPU: at most %d held", (int)(cpu / MS), procs, (int)share,
             p.most);
    return p.most;
}

TEST(jobs_of_50_ms_hold_few_threads)
{
    for (int procs = 1; procs <= 8; procs *= 2)
        for (int64_t share = 1; share <= 64; share *= 2)
            CHECK_LE(most_held(50 * MS, procs, share), 40); /* 100 threads, with all others there are */
}

TEST(longer_jobs_hold_more)
{
    CHECK_LE(most_held(200 * MS, 2, 1), 60);
    CHECK_LE(most_held(1000 * MS, 2, 1), 250);
    CHECK_LE(most_held(1000 * MS, 2, 16), 250);
}

TEST(endless_loops_let_new_ones_start)
{
    static struct play p;
    for (int i = 0; i < JOBS; i++)
        p.left[i] = INT64_MAX;
    set_up(2);
    for (int i = 0; i < 10000 && p.fresh < 200; i++)
        slice(&p, 1);
    CHECK_EQ(p.fresh, 200);
}

/* What passes is CPU time of those who are held; the clock on the wall says nothing. */
TEST(a_start_has_its_price)
{
    set_up(2);
    gort__sched.preempted.n = 15;
    for (int i = 0; i < 100; i++)
        CHECK(gort__cputime_admit_new());
    gort__sched.preempted.n = 16;
    CHECK(!gort__cputime_admit_new());
    gort__os_nap(150 * MS);
    CHECK(!gort__cputime_admit_new());
    gort__sched.preempted.cpu += 99 * MS;
    CHECK(!gort__cputime_admit_new());
    gort__sched.preempted.cpu += MS;
    CHECK(gort__cputime_admit_new());
    CHECK(!gort__cputime_admit_new());
    gort__sched.preempted.n = 32;
    gort__sched.preempted.cpu += 199 * MS;
    CHECK(!gort__cputime_admit_new());
    gort__sched.preempted.cpu += MS;
    CHECK(gort__cputime_admit_new());
}

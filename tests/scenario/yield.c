/* SPDX-License-Identifier: MIT */
/*
 * yield.c - taking turns: whoever can run does run, whichever queue it waits in.
 * Covers: src/sched/core/schedule.c src/sched/core/runq.c src/sched/core/queue.c
 *
 * Where one P is asked for, the order is known, and bounds count turns instead of time.
 */
#include <gort.h>

#include <stdatomic.h>
#include <stdlib.h>

#include "test.h"

static atomic_long counter;
static atomic_bool stop;

/* --- progress ----------------------------------------------------------------------------------- */

static void set_stop(void *unused)
{
    (void)unused;
    atomic_store(&stop, true);
}

static void set_stop_locked(void *unused)
{
    gort_lock_thread();
    for (int i = 0; i < 3; i++)
        gort_yield();
    set_stop(unused);
    gort_unlock_thread();
}

TEST_GO(a_polling_loop_lets_others_through, .procs = "1,2,4", .fuzz = true)
{
    CHECK_EQ(gort_go(set_stop, NULL), 0);
    while (!atomic_load(&stop))
        CHECK_EQ(gort_yield(), 0);
}

TEST_GO(a_locked_polling_loop_lets_others_through, .procs = "1,2,4", .fuzz = true)
{
    gort_lock_thread();
    CHECK_EQ(gort_go(set_stop, NULL), 0);
    while (!atomic_load(&stop))
        gort_yield();
    gort_unlock_thread();
}

TEST_GO(a_polling_loop_lets_a_locked_one_through, .procs = "1,2,4", .fuzz = true)
{
    CHECK_EQ(gort_go(set_stop_locked, NULL), 0);
    while (!atomic_load(&stop))
        gort_yield();
}

static int sum_of_all; /* one P: no need for atomics */

static void add_thrice(int n)
{
    for (int i = 0; i < n; i++) {
        sum_of_all += 1;
        gort_yield();
    }
}

TEST_GO(the_sum_is_right, .procs = "1", .env = "GORT_DEBUG=preempt=off")
{
    CHECK_EQ(GORT_GO(add_thrice, 7), 0);
    CHECK_EQ(GORT_GO(add_thrice, 7), 0);
    CHECK_EQ(GORT_GO(add_thrice, 7), 0);
    CHECK_EQ(GORT_GO(add_thrice, 11), 0);
    CHECK_EQ(GORT_GO(add_thrice, 5), 0);
    CHECK_EQ(GORT_GO(add_thrice, 5), 0);
    CHECK_EQ(sum_of_all, 0);
    for (int i = 0; i < 12; i++)
        gort_yield();
    CHECK_EQ(sum_of_all, 42);
}

/* --- who runs next ------------------------------------------------------------------------------- */

static void respawn(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
    if (!atomic_load(&stop))
        CHECK_EQ(gort_go(respawn, NULL), 0);
}

static gort_wg reached;

static void reach(void *unused)
{
    (void)unused;
    gort_wg_done(&reached);
}

static void nothing(void *unused)
{
    (void)unused;
}

/* Waits for a goroutine that stands at the tail of the ring, and returns how far the hogs got meanwhile. */
static long wait_for_tail(void)
{
    gort_wg_add(&reached, 1);
    CHECK_EQ(gort_go(reach, NULL), 0);
    CHECK_EQ(gort_go(nothing, NULL), 0); /* runs next in its place */
    long before = atomic_load(&counter);
    gort_wg_wait(&reached);
    return atomic_load(&counter) - before;
}

/* The chain is always what its P runs next; others must get a turn now and then. */
TEST_GO(a_chain_that_starts_itself_lets_others_run, .procs = "1", .fuzz = true)
{
    long sum_of_waits = 0;
    CHECK_EQ(gort_go(respawn, NULL), 0);
    while (atomic_load(&counter) == 0)
        gort_yield();
    for (int round = 0; round < 50; round++) {
        long waited = wait_for_tail();
        if (gort_maxprocs(0) == 1)
            CHECK_LT(waited, 1000);
        sum_of_waits += waited;
    }
    if (gort_maxprocs(0) == 1)     /* else the chain may be on a P whose thread gets no CPU meanwhile */
        CHECK_GT(sum_of_waits, 0); /* there was something to let others run between */
    atomic_store(&stop, true);
}

static struct {
    gort_wg wake;
} pair[2];

/* Wakes the other and waits for it: through `next`, the two could keep a P to themselves for ever. */
static void ping(int me)
{
    gort_wg *mine = &pair[me].wake, *others = &pair[!me].wake;
    for (;;) {
        gort_wg_wait(mine);
        gort_wg_add(mine, 1);
        atomic_fetch_add(&counter, 1);
        if (atomic_load(&stop)) {
            gort_wg_done(others);
            return;
        }
        gort_wg_done(others);
    }
}

TEST_GO(two_that_wake_each_other_let_others_run, .procs = "1", .env = "GORT_DEBUG=preempt=off")
{
    gort_wg_add(&pair[0].wake, 1);
    gort_wg_add(&pair[1].wake, 1);
    CHECK_EQ(GORT_GO(ping, 0), 0);
    CHECK_EQ(GORT_GO(ping, 1), 0);
    gort_wg_done(&pair[0].wake);
    while (atomic_load(&counter) == 0)
        gort_yield();
    long sum_of_waits = 0;
    for (int round = 0; round < 50; round++) {
        long waited = wait_for_tail();
        CHECK_LT(waited, 1000);
        sum_of_waits += waited;
    }
    CHECK_GT(sum_of_waits, 50);
    atomic_store(&stop, true);
    while (gort_count() > 1)
        gort_yield();
}

/* --- round robin --------------------------------------------------------------------------------- */

#define ROUNDS 200
static int *order;
static long order_n;
static gort_wg all_done;

static void take_turns(int me)
{
    for (int i = 0; i < ROUNDS; i++) {
        order[order_n++] = me; /* one P: nobody else runs */
        gort_yield();
    }
    gort_wg_done(&all_done);
}

static void run_turns(int k)
{
    CHECK(order = calloc((size_t)k * ROUNDS, sizeof *order));
    gort_wg_add(&all_done, k);
    for (int i = 0; i < k; i++)
        CHECK_EQ(GORT_GO(take_turns, i), 0);
    gort_wg_wait(&all_done);
    CHECK_EQ(order_n, (long)k * ROUNDS);
}

static void check_strict(int k)
{
    run_turns(k);
    for (long i = k; i < order_n; i++)
        CHECK_MSG(order[i] == order[i - k], "turn %ld is %d's, but %d turns before it was %d's", i, order[i],
                  k, order[i - k]);
}

TEST_GO(three_take_turns, .procs = "1", .env = "GORT_DEBUG=preempt=off")
{
    check_strict(3);
}

TEST_GO(as_many_as_a_ring_holds_take_turns, .procs = "1", .env = "GORT_DEBUG=preempt=off")
{
    check_strict(250);
}

/* They overflow into the global queue, which is looked at out of turn now and then: nobody is more than a
 * few turns ahead of anybody else. */
TEST_GO(a_thousand_take_turns, .procs = "1", .env = "GORT_DEBUG=preempt=off")
{
    enum { K = 1000 };
    static int turns[K];
    run_turns(K);
    int worst = 0;
    for (long i = 0; i < order_n; i++) {
        turns[order[i]]++;
        if (i % K)
            continue;
        int least = ROUNDS, most = 0;
        for (int k = 0; k < K; k++) {
            least = turns[k] < least ? turns[k] : least;
            most = turns[k] > most ? turns[k] : most;
        }
        worst = most - least > worst ? most - least : worst;
    }
    test_log("worst distance: %d turns of %d", worst, ROUNDS);
    CHECK_LE(worst, ROUNDS / 10);
}

/* --- nothing starves ------------------------------------------------------------------------------ */

enum kind { RING, GLOBAL, CHAIN, LOCKED, WOKEN, HOG, KINDS };
static const char *const kind_names[] = {"in the ring",          "in the global queue",
                                         "in a chain of starts", "locked to its thread",
                                         "woken by others",      "preempted"};
static atomic_long turns_of[KINDS];

static void take_many(int kind)
{
    if (kind == LOCKED)
        gort_lock_thread();
    while (!atomic_load(&stop)) {
        atomic_fetch_add(&turns_of[kind], 1);
        gort_yield();
    }
}

static void chain_on(void *unused)
{
    (void)unused;
    atomic_fetch_add(&turns_of[CHAIN], 1);
    if (!atomic_load(&stop))
        CHECK_EQ(gort_go(chain_on, NULL), 0);
}

static void wake_each_other(int me)
{
    gort_wg *mine = &pair[me].wake, *others = &pair[!me].wake;
    for (bool last = false; !last;) {
        gort_wg_wait(mine);
        gort_wg_add(mine, 1);
        atomic_fetch_add(&turns_of[WOKEN], 1);
        last = atomic_load(&stop);
        gort_wg_done(others);
    }
}

static void hog(void)
{
    while (!atomic_load(&stop))
        atomic_fetch_add(&turns_of[HOG], 1);
}

/* All ways to be runnable at once, with more goroutines than a ring holds: each gets on. */
static void all_get_on(int hogs)
{
    turns_of[HOG] = hogs ? 0 : 20;
    for (int i = 0; i < hogs; i++)
        CHECK_EQ(GORT_GO(hog), 0);
    gort_wg_add(&pair[0].wake, 1);
    gort_wg_add(&pair[1].wake, 1);
    CHECK_EQ(GORT_GO(wake_each_other, 0), 0);
    CHECK_EQ(GORT_GO(wake_each_other, 1), 0);
    gort_wg_done(&pair[0].wake);
    CHECK_EQ(gort_go(chain_on, NULL), 0);
    CHECK_EQ(GORT_GO(take_many, (int)LOCKED), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(take_many, (int)RING), 0);
    for (int i = 0; i < 600; i++)
        CHECK_EQ(GORT_GO(take_many, (int)GLOBAL), 0);
    int64_t until = gort_in(test_seconds(60));
    for (bool all = false; !all;) {
        all = true;
        for (int k = 0; k < KINDS; k++)
            all &= atomic_load(&turns_of[k]) >= 20;
        if (gort_now() > until)
            for (int k = 0; k < KINDS; k++)
                CHECK_MSG(turns_of[k] >= 20, "what was %s had %ld turns in 60 s", kind_names[k], turns_of[k]);
        gort_yield(); /* main counts too: it comes back */
    }
    atomic_store(&stop, true);
    while (gort_count() > 1)
        gort_yield();
}

TEST_GO(nothing_starves, .procs = "1,2,4", .fuzz = true)
{
    all_get_on(0);
}

TEST_GO(nothing_starves_beside_hogs, .procs = "1,2")
{
    all_get_on(4);
}

/* SPDX-License-Identifier: MIT */
/*
 * timers.c - timers that were promised come, also when the heaps of timers are full and there is no memory
 * for more.
 *
 * Build: faults
 * Covers: src/sched/timers/timer.c src/time/timer.c src/time/ticker.c
 */
#include <gort.h>

#include <stdatomic.h>

#include "fault.h"
#include "test.h"

#define SLEEPERS 3000

static gort_wg gate, asked;
static atomic_long refused, called, again;

static void sleeper(void *unused)
{
    (void)unused;
    gort_wg_wait(&gate);
    gort_wg_done(&asked);
    if (gort_sleep(3600 * GORT_SEC) == -ENOMEM)
        atomic_fetch_add(&refused, 1);
}

/* Goroutines that sleep take all places. */
static void fill_heaps(void)
{
    gort_wg_add(&gate, 1);
    for (int i = 0; i < SLEEPERS; i++) {
        gort_wg_add(&asked, 1);
        CHECK_EQ(gort_go(sleeper, NULL), 0);
    }
    for (int i = 0; i < 4; i++)
        gort_yield();
    fault_from(FAULT_MAP, 1);
    gort_wg_done(&gate);
    CHECK_EQ(gort_wg_wait(&asked), 0);
    while (!atomic_load(&refused))
        gort_yield();
}

static void count(void *what)
{
    atomic_fetch_add((atomic_long *)what, 1);
}

static gort_timer *periodic, *once, *never;
static gort_ticker *ticker;

static int full_run(void *unused)
{
    (void)unused;
    int64_t tick, start = gort_now();
    fill_heaps();
    CHECK(!gort_timer_reset(periodic, GORT_MS, GORT_MS));
    CHECK(!gort_timer_reset(never, 3600 * GORT_SEC, 0));
    gort_ticker_reset(ticker, GORT_MS);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_chan_recv(gort_ticker_chan(ticker), &tick), 1);
    CHECK_GE(tick, start + 10 * GORT_MS);
    while (atomic_load(&called) < 10)
        gort_yield();
    CHECK_GE(gort_now(), start + 10 * GORT_MS);
    CHECK(!gort_timer_reset(once, 3600 * GORT_SEC, 0));
    CHECK(gort_timer_reset(once, 7200 * GORT_SEC, 0)); /* later: the same place */
    start = gort_now();
    CHECK(gort_timer_reset(once, 10 * GORT_MS, 0)); /* earlier: another one */
    while (!atomic_load(&again))
        gort_yield();
    CHECK_GE(gort_now(), start + 10 * GORT_MS);
    CHECK(!gort_timer_stop(once));
    CHECK_EQ(gort_timer_stop_wait(periodic), 0);
    CHECK(gort_timer_stop(never));
    gort_ticker_reset(ticker, GORT_MS); /* a place that is in use */
    CHECK(!gort_timer_reset(never, 3600 * GORT_SEC, 0));
    CHECK(gort_timer_stop(never)); /* the next one is the ticker's, and in a list as well */
    long before = atomic_load(&called);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_chan_recv(gort_ticker_chan(ticker), &tick), 1);
    CHECK_EQ(atomic_load(&called), before);
    CHECK(!gort_timer_reset(never, 3600 * GORT_SEC, 0)); /* pending at the end of the run */
    return 0;
}

static int next_run(void *unused)
{
    int64_t tick;
    long before = atomic_load(&again);
    (void)unused;
    CHECK(!gort_timer_reset(once, GORT_MS, 0));
    CHECK(!gort_timer_stop(never));
    gort_ticker_reset(ticker, GORT_MS);
    CHECK_EQ(gort_chan_recv(gort_ticker_chan(ticker), &tick), 1);
    while (atomic_load(&again) == before)
        gort_yield();
    return 0;
}

/* Made outside of the run they have no place in it yet. */
TEST(set_without_memory, .procs = "1,2,4", .fuzz = true)
{
    periodic = gort_timer_new(0, 0, count, &called);
    once = gort_timer_new(0, 0, count, &again);
    never = gort_timer_new(0, 0, count, &called);
    ticker = gort_ticker_new(GORT_SEC);
    CHECK(periodic && once && never && ticker);
    CHECK_EQ(gort_run(full_run, NULL), 0);
    CHECK(fault_off());
    CHECK_EQ(gort_run(next_run, NULL), 0);
    gort_timer_free(periodic);
    gort_timer_free(once);
    gort_timer_free(never);
    gort_ticker_free(ticker);
}

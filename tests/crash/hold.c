/* SPDX-License-Identifier: MIT */
/*
 * hold.c - what a goroutine must not do with its thread, and deadlocks around calls that block.
 * Covers: src/sched/monitor/preempt.c src/sched/life/entry.c src/sched/life/supervisor.c
 */
#include <gort.h>

#include <pthread.h>
#include <unistd.h>

#include "test.h"

static gort_wg never = {0};

TEST_GO(preempt_on_alone, .procs = "1,2", .crash = "^gort: fatal: gort_preempt_on without gort_preempt_off")
{
    gort_preempt_off();
    gort_preempt_on();
    gort_preempt_on();
}

static void end_thread(void *unused)
{
    pthread_exit(unused);
}

TEST_GO(pthread_exit, .procs = "1,2", .crash = "^gort: fatal: a goroutine ended its thread .*: use gort_exit")
{
    if (test_under_sanitizer())
        SKIP("only without sanitizers: their pthread_exit checks the stack it is called on");
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(end_thread, NULL), 0);
    gort_wg_wait(&never);
}

/* How long the detector was silent. */
static void block_a_while(void *how)
{
    if (how)
        gort_block_enter();
    usleep(100000);
    if (how)
        gort_block_leave();
    test_log("back from the call");
}

#define BACK_THEN_DEADLOCK "back from the call\n^gort: fatal: all goroutines are asleep.* - deadlock!$"

TEST_GO(deadlock_after_an_announced_call, .procs = "1,2", .crash = BACK_THEN_DEADLOCK)
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(block_a_while, &never), 0);
    gort_wg_wait(&never);
}

TEST_GO(deadlock_after_an_unannounced_call, .procs = "1,2", .crash = BACK_THEN_DEADLOCK)
{
    gort_wg_add(&never, 1);
    CHECK_EQ(gort_go(block_a_while, NULL), 0);
    gort_wg_wait(&never);
}

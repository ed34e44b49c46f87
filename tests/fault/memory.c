/* SPDX-License-Identifier: MIT */
/*
 * memory.c - no memory: gort_go says so, what runs goes on, and once some have ended it works again.
 * Covers: src/sched/core/spawn.c src/sched/life/run.c src/mem/stack.c
 *
 * The address space is limited for real; the sanitizers could not live with that.
 */
#include <gort.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)

static atomic_long counter;
static gort_wg gate;

static void limit_space(size_t more)
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the tools need more address space than the limit leaves");
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f);
    CHECK_EQ(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    struct rlimit limit = {(size_t)pages * (size_t)sysconf(_SC_PAGESIZE) + more, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void lift_limit(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void wait_at_gate(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(&gate);
    atomic_fetch_add(&counter, 1);
}

static long start_until_refused(void)
{
    long n = 0;
    int err;
    while ((err = gort_go(wait_at_gate, NULL)) == 0) {
        n++;
        CHECK_LT(n, 1000000);
        if (n % 50 == 0)
            gort_yield();
    }
    CHECK_EQ(err, -ENOMEM);
    return n;
}

static void settle(void)
{
    while (gort_count() > 1)
        gort_yield();
}

TEST_GO(go_is_refused_and_works_again, .procs = "1,4", .fuzz = true)
{
    limit_space(512 * MIB);
    for (int round = 0; round < 3; round++) {
        gort_wg_add(&gate, 1);
        atomic_store(&counter, 0);
        long n = start_until_refused();
        CHECK_GT(n, 300);
        int again = gort_go(wait_at_gate, NULL); /* perhaps another P has given one back meanwhile */
        CHECK(again == 0 || again == -ENOMEM);
        n += again == 0;
        while (atomic_load(&counter) < n) /* whoever could be started can run */
            gort_yield();
        gort_wg_done(&gate);
        while (atomic_load(&counter) < 2 * n)
            gort_yield();
        settle();
    }
    lift_limit();
    gort_wg_add(&gate, 1);
    for (int i = 0; i < 5000; i++)
        CHECK_EQ(gort_go(wait_at_gate, NULL), 0);
    gort_wg_done(&gate);
    settle();
}

TEST_GO(large_stacks_are_refused, .procs = "1,2")
{
    limit_space(512 * MIB);
    gort_wg_add(&gate, 1);
    size_t before = gort_count();
    CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = 1024 * MIB}, wait_at_gate, NULL), -ENOMEM);
    CHECK_EQ(gort_count(), before);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = 1024 * MIB}, wait_at_gate, NULL), -ENOMEM);
    CHECK_EQ(gort_go(wait_at_gate, NULL), 0);
    gort_wg_done(&gate);
    settle();
    lift_limit();
    CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = 1024 * MIB}, wait_at_gate, NULL), 0);
    settle();
}

TEST_GO(copies_and_handlers_are_refused, .procs = "1")
{
    static char block[GORT_GO_COPY_MAX];
    limit_space(64 * MIB);
    long n = 0;
    int err;
    while ((err = gort_on_exit(free, NULL)) == 0)
        CHECK_LT(++n, 10000000);
    CHECK_EQ(err, -ENOMEM);
    CHECK_GT(n, 1000);
    err = gort_go_copy(wait_at_gate, block, sizeof block);
    CHECK(err == 0 || err == -ENOMEM);
    lift_limit();
    CHECK_EQ(gort_go_copy(wait_at_gate, block, sizeof block), 0);
    settle();
}

static int return_7(void *unused)
{
    (void)unused;
    return 7;
}

TEST(a_run_that_cannot_start_says_so, .procs = "1,4,1024")
{
    int vmas = 0, runs = 0;
    gort_run(return_7, NULL);
    for (size_t more = 0; more < 64 * MIB; more += 256 << 10, runs++) {
        limit_space(more);
        int got = gort_run(return_7, NULL);
        CHECK_MSG(got == 7 || got == -ENOMEM || got == -EAGAIN, "with %zu KiB more: %d", more >> 10, got);
        if (more == 0) {
            CHECK_LT(got, 0);
            vmas = test_vma_count();
        }
        lift_limit();
    }
    CHECK_LT(test_vma_count(), vmas + runs / 2); /* libc keeps some stacks of threads */
    CHECK_EQ(gort_run(return_7, NULL), 7);
}

TEST_GO(more_procs_are_refused, .procs = "1")
{
    limit_space(1 * MIB);
    int n = gort_maxprocs(1024);
    CHECK_EQ(n, 1);
    n = gort_maxprocs(0);
    CHECK(n == 1 || n == 1024);
    lift_limit();
    gort_maxprocs(4);
    CHECK_EQ(gort_maxprocs(0), 4);
    gort_wg_add(&gate, 1);
    CHECK_EQ(gort_go(wait_at_gate, NULL), 0);
    gort_wg_done(&gate);
    settle();
}

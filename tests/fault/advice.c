/* SPDX-License-Identifier: MIT */
/*
 * advice.c - memory that cannot be given back, as locked memory of old kernels: it is kept, and used again.
 * Build: faults
 * Covers: src/os/linux/vm.c src/mem/stack.c
 */
#include <gort.h>

#include <stdatomic.h>
#include <string.h>

#include "fault.h"
#include "test.h"

#define MANY 300

static gort_wg gate, done;
static atomic_long sum, started;

static void use_some_stack(void *arg)
{
    char local[8192];
    memset(local, 1, sizeof local);
    atomic_fetch_add(&started, 1);
    gort_wg_wait(&gate);
    for (size_t i = 0; i < sizeof local; i++)
        atomic_fetch_add(&sum, local[i]);
    (void)arg;
}

/* Many at a time, each on a stack of its own. All advice may be refused from before the first of them is
 * free. */
static void burst(bool refused)
{
    atomic_store(&sum, 0);
    atomic_store(&started, 0);
    gort_wg_add(&gate, 1);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(gort_wg_go(&done, use_some_stack, NULL), 0);
    while (atomic_load(&started) < MANY)
        gort_yield();
    if (refused)
        fault_from(FAULT_ADVISE, 1);
    gort_wg_done(&gate);
    CHECK_EQ(gort_wg_wait(&done), 0);
    CHECK_EQ(atomic_load(&sum), MANY * 8192L);
}

TEST_GO(stacks_whose_pages_stay_are_used_again, .procs = "1,2")
{
    long was = fault_fired(FAULT_ADVISE);
    burst(true);
    int64_t until = gort_in(test_seconds(20));
    while (fault_fired(FAULT_ADVISE) < was + 4 && gort_now() < until)
        gort_sleep(10 * GORT_MS);
    gort_sleep(100 * GORT_MS);
    fault_off();
    CHECK_GE(fault_fired(FAULT_ADVISE), was + 4); /* somebody tried */
    burst(false);
}

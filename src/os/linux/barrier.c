/* SPDX-License-Identifier: MIT */
/*
 * barrier.c - the rare half of the asymmetric fence that os.h describes.
 *
 * Why: every public call would pay a full fence (about 20 cycles) for something that sysmon asks a few
 * times a second. membarrier(PRIVATE_EXPEDITED) moves the cost there: it interrupts each CPU that
 * runs a thread of this process, and that thread passes a full fence wherever it was. A thread that
 * does not run has passed one when it was switched off.
 * Invariants: gort__os_light_is_full is true until membarrier is known to work, and changes only in init:
 * while it is false the frequent half costs nothing and only the kernel can do our half. Changing over during
 * a run, when membarrier is refused all of a sudden, would need every thread to know before anybody relies on
 * it, and all protocols that have begun with a light fence (a lock's sleepers) to end first: so the rare half
 * finds another way (fence_without).
 * Threads: any; init alone.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/fence.h"
#include "os/force.h"
#include "os/linux/init.h"

#define BITS 8192 /* as many CPUs as Linux can be built for */

bool gort__os_light_is_full = true;
static bool refused; /* membarrier has worked at the start of the run and does not any more; atomic */

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void gort__barrier_init(void)
{
    static uint32_t said;
    bool full = gort__os_force.no_membarrier;
    if (!full && (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0 ||
                  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)) {
        full = true;
        if (gort__os_refused(errno))
            gort__os_say_refused(&said, "membarrier", errno, "every call pays some 20 cycles for a fence");
    }
    gort__store(&refused, false, RELAXED);
    gort__store(&gort__os_light_is_full, full, RELAXED);
}

/*
 * membarrier is refused from now on, by a sandbox that was closed during the run, and the frequent halves of
 * all threads go on without a fence. The caller visits each CPU in turn: when it runs there, whatever thread
 * of ours was running on that CPU has been switched off, and a switch is a full fence. One that moves from a
 * CPU not yet visited to one that was is switched off, too. CPUs that refuse us run nobody of ours: the
 * kernel refuses only those that are not there or not in the process's cpuset. A visit takes as long as it
 * takes to get a CPU; the next run begins with full fences on both sides.
 */
static bool visit_all_cpus(void)
{
    unsigned long was[BITS / 64], one[BITS / 64];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof was, was);
    bool all = bytes > 0, any = false;
    for (long cpu = 0; all && cpu < bytes * 8; cpu++) {
        for (long i = 0; i < bytes / 8; i++)
            one[i] = i == cpu / 64 ? 1ul << cpu % 64 : 0;
        bool there = syscall(SYS_sched_setaffinity, 0, bytes, one) == 0;
        all = there || errno == EINVAL;
        any |= there;
    }
    if (any)
        all &= syscall(SYS_sched_setaffinity, 0, bytes, was) == 0;
    return all && any;
}

static void fence_without(void)
{
    static uint32_t said;
    int err = errno;
    if (gort__os_refused(err))
        gort__store(&refused, true, RELAXED);
    if (visit_all_cpus())
        gort__os_say_refused(&said, "membarrier", err,
                             "until the run ends, gort makes fences by visiting every CPU, which is slow");
    else {
        gort__os_say_refused(
            &said, "membarrier", err,
            "sched_setaffinity is refused too, so until the run ends, gort makes fences by waiting 10 ms, which "
            "no processor guarantees to be enough");
        gort__os_nap(10000000);
    }
    gort__fence(SEQ_CST);
}

void gort__os_fence_heavy(void)
{
    gort__fence(SEQ_CST); /* pairs with gort__os_fence_light */
    if (gort__load(&gort__os_light_is_full, RELAXED))
        return;
    int saved = errno;
    /* The fast one can fail for want of memory; the slow one waits some milliseconds but needs none. */
    if (gort__load(&refused, RELAXED) ||
        (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 && membarrier(MEMBARRIER_CMD_GLOBAL) != 0))
        fence_without();
    errno = saved;
}

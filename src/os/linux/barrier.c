/* SPDX-License-Identifier: MIT */
/*
 * barrier.c - the rare half of the asymmetric fence that os.h describes.
 *
 * Why: every public call would pay a full fence (about 20 cycles) for something that sysmon asks a few
 * times a second. membarrier(PRIVATE_EXPEDITED) moves the cost there: it interrupts each CPU that
 * runs a thread of this process, and that thread passes a full fence wherever it was. A thread that
 * does not run has passed one when it was switched off.
 * Invariants: gort__os_light_is_full is true until membarrier is known to work, and changes only in
 * init: while it is false the frequent half costs nothing and only the kernel can do our half.
 * Threads: any; init alone.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fatal.h"
#include "os/fence.h"
#include "os/force.h"
#include "os/linux/init.h"

bool gort__os_light_is_full = true;

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void gort__barrier_init(void)
{
    bool full = gort__os_force.no_membarrier || membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0 ||
                membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
    gort__store(&gort__os_light_is_full, full, RELAXED);
}

void gort__os_fence_heavy(void)
{
    gort__fence(SEQ_CST); /* pairs with gort__os_fence_light */
    if (gort__load(&gort__os_light_is_full, RELAXED))
        return;
    int saved = errno;
    /* The fast one can fail for want of memory; the slow one waits some milliseconds but needs none. */
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 && membarrier(MEMBARRIER_CMD_GLOBAL) != 0)
        gort__throw("membarrier worked at the start and fails now: errno %d", errno);
    errno = saved;
}

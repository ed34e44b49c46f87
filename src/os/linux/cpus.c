/* SPDX-License-Identifier: MIT */
/*
 * cpus.c - how many CPUs this process may use.
 *
 * Why: a container with 2 CPUs on a machine of 64 is throttled for most of each period when 64 threads
 * spend its quota at once, so maxprocs must start from what we are allowed, not from what is there.
 * First the affinity mask (cpusets, taskset), then the bandwidth limits of all groups (cgroup.c).
 * Limits are rounded up: with 2.5 CPUs, two threads would leave a fifth of what was paid for unused.
 * Threads: any; nothing is remembered, so every call sees the limits of that moment.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/linux/cgroup.h"
#include "os/os.h"

/* The kernel refuses a mask that is smaller than its own (the cpu_set_t of libc ends at 1,024 CPUs) and
 * fills only as much as it has, so one generous size is both simpler and cheaper than growing. */
#define MASK_WORDS (65536 / (8 * sizeof(unsigned long)))

static int affinity_cpus(void)
{
    unsigned long mask[MASK_WORDS];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int count = 0;
    for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof mask[0]; i++)
        count += __builtin_popcountl(mask[i]);
    if (count > 0)
        return count;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online <= INT_MAX ? (int)online : 1;
}

int gort__os_cpus_below(const char *root, int affinity)
{
    int saved = errno;
    int limit = gort__cgroup_cpus(strcmp(root, "/") == 0 ? "" : root);
    int cpus = limit < affinity ? limit : affinity;
    errno = saved;
    return cpus > 1 ? cpus : 1;
}

int gort__os_cpus(void)
{
    int saved = errno;
    int cpus = gort__os_cpus_below("", affinity_cpus());
    errno = saved;
    return cpus;
}

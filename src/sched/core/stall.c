/* SPDX-License-Identifier: MIT */
/*
 * stall.c - whether a thread sleeps in the kernel: its CPU clock stands still, and /proc says so.
 *
 * Threads: by sysmon, and by the supervisor at the end of a run.
 */
#include "sched/core/core.h"

bool gort__stall_asleep(struct gort__cpu_stall *s, int tid, int64_t now, bool since_last)
{
    int64_t cpu = gort__os_thread_cpu(tid);
    if (cpu < 0 || cpu != s->cpu) {
        *s = (struct gort__cpu_stall){cpu, now};
        if (since_last)
            return false;
    }
    enum gort__os_task state = gort__os_thread_state(tid);
    return state == GORT__OS_TASK_SLEEPS || (state == GORT__OS_TASK_UNKNOWN && now - s->since >= GORT_BLIND);
}

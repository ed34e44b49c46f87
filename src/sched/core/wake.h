/* SPDX-License-Identifier: MIT */
/*
 * wake.h - after work was published: is somebody to be woken for it?
 *
 * Why: these looks come after every put into a queue, so they are inline; what they decide is in threads/idle.c and
 * monitor/sysmon_sleep.c.
 */
#ifndef GORT_SRC_SCHED_CORE_WAKE_H
#define GORT_SRC_SCHED_CORE_WAKE_H

#include "sched/core/hooks.h"
#include "sched/core/sched.h"

/* Somebody has put a goroutine into a queue while no P may be idle: sysmon looks soon whether it still
 * waits. */
static inline void gort__wake_note_work(void)
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.sysmon.state, RELAXED) == GORT_MON_LONG))
        gort__hooks.monitor.sysmon_work();
}

static inline void gort__wake_idle(void) /* after a SEQ_CST read-modify-write that published work */
{
    gort__arch_fence_after_rmw();
    if (GORT_LIKELY(gort__load(&gort__sched.idle_count, RELAXED) == 0))
        gort__wake_note_work();
    else if (gort__load(&gort__sched.spinning, RELAXED) == 0)
        gort__hooks.threads.wake_p();
}

static inline void gort__wake_sysmon(void) /* there may be something for it to do soon */
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.sysmon.state, RELAXED) >= GORT_MON_LONG))
        gort__hooks.monitor.sysmon_notify();
}

static inline bool gort__wake_sysmon_armed(void)
{
    enum gort__mon mon = gort__load(&gort__sched.sysmon.state, RELAXED);
    return mon == GORT_MON_ARMED || mon == GORT_MON_ARMED_SOON;
}

#endif

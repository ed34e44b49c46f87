/* SPDX-License-Identifier: MIT */
/*
 * force.h - makes this room behave as on an older kernel, so that tests reach every path on any.
 *
 * Set by sched/core/conf.c from GORT_DEBUG, or by a test; gort__os_init reads it. Never changed while a run is on.
 */
#ifndef GORT_SRC_OS_FORCE_H
#define GORT_SRC_OS_FORCE_H

#include "base/compiler.h"

struct gort__os_force {
    bool no_guard_install; /* guards by mprotect, one mapping each */
    bool no_guard;         /* no guards at all, as when the budget of mappings is used up */
    bool no_pagemap_scan;  /* what is resident is read page by page */
    bool no_membarrier;    /* both halves of the asymmetric fence are full fences */
    bool no_epoll_pwait2;  /* sleeps of the poller through ppoll */
    bool no_timerfd;       /* alarms by a futex, no beats */
    bool no_pidfd;         /* children are waited for in a blocking call */
    bool
        no_altstack; /* handlers run on the stack that the signal meets, but for that of faults; atomic: threads
                              that a run left behind are in such a handler when the next run begins */
};
extern struct gort__os_force gort__os_force;

#endif

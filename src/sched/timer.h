/* SPDX-License-Identifier: MIT */
/*
 * timer.h - something to do at a time: the verbs for the rooms above.
 */
#ifndef GORT_SRC_SCHED_TIMER_H
#define GORT_SRC_SCHED_TIMER_H

#include "base/compiler.h"

/* Zero-valid. May live on a stack that is left after gort__timer_del. */
struct gort__timer {
    int64_t when;
    void (*fn)(void *arg); /* called inside, on a thread that holds no runtime lock; must not park */
    void *arg;
    uint32_t index; /* its place in the heap plus one; 0: not in it */
};

/* Calls fn(arg) once when `when` (monotonic) has come. The timer is not pending. 0 or -ENOMEM. Inside. */
int gort__timer_set(struct gort__timer *t, int64_t when, void (*fn)(void *), void *arg);
/* Takes it back. When it returns fn is not running and will not be called. Inside; not from fn. */
void gort__timer_del(struct gort__timer *t);

/* The keeper's half: fires what is due; returns when to look again (INT64_MAX: nothing is pending). */
int64_t gort__timer_run(void);
/* How many are pending. */
uint32_t gort__timer_count(void);
/* The end of a run: forgets all. */
void gort__timer_reset(void);

#endif

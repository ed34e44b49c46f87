/* SPDX-License-Identifier: MIT */
/*
 * verbs.h - what the rooms above may ask of the scheduler. A new primitive needs nothing else.
 */
#ifndef GORT_SRC_SCHED_VERBS_H
#define GORT_SRC_SCHED_VERBS_H

#include "sched/core/cached_now.h"
#include "sched/core/enter.h"
#include "sched/core/fuzz.h"
#include "sched/core/gmain.h"
#include "sched/core/park.h"
#include "sched/core/ras.h"
#include "sched/core/ready.h"
#include "sched/core/spawn.h"

/* Called at the end of each run, if set, when nobody is inside any more: for what a room above left to
 * goroutines that are gone. Set by that room (atomically). */
extern void (*gort__run_at_end)(void) GORT_HIDDEN;

/* The caller is about to wait for an fd, and counts in gort__poll_pending: somebody must look. Inside. */
void gort__poller_notice_fd(struct gort__m *m);

/* The caller has waited so long for a mutex. Inside. */
void gort__latency_mutex(struct gort__m *m, int64_t ns);

/* Lets others run first; returns the M it is on now. Inside. */
struct gort__m *gort__schedule_yield(struct gort__m *m);

#endif

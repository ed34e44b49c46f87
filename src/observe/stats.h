/* SPDX-License-Identifier: MIT */
/*
 * stats.h - the look at everything, for the files that show it.
 */
#ifndef GORT_SRC_OBSERVE_STATS_H
#define GORT_SRC_OBSERVE_STATS_H

#include <gort/stats.h>

#include "sched/life/life.h"

/* A look, during which the run does not end. False: there is none. */
struct gort__stats_look {
    struct gort__m *m;
};
bool gort__stats_begin(struct gort__stats_look *look);
void gort__stats_end(struct gort__stats_look *look);

/* Between them. */
void gort__stats_fill(gort_stats *s);
bool gort__stats_fill_proc(gort_stats_proc *proc, int i); /* false: there is no such P */

/* What an M does. */
enum gort__stats_thread {
    GORT_STATS_RUNNING,
    GORT_STATS_SEARCHING,
    GORT_STATS_BLOCKED,
    GORT_STATS_STOPPED,
    GORT_STATS_IDLE,
    GORT_STATS_THREADS
};
/* With sched.lock held. *state: of its goroutine, GORT_G_IDLE: it has none. */
enum gort__stats_thread gort__stats_thread_locked(struct gort__m *m, enum gort__gstate *state);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * life.h - the beginning and the end: of runs, of calls, of stops of the world.
 */
#ifndef GORT_SRC_SCHED_LIFE_LIFE_H
#define GORT_SRC_SCHED_LIFE_LIFE_H

#include "sched/monitor/monitor.h"

/* --- entry.c ------------------------------------------------------------------------------------- */
struct gort__m *gort__entry_plain(void);        /* the slow half of gort__enter, */
void gort__entry_leave_slow(struct gort__m *m); /* of gort__leave, */
void gort__entry_light_slow(struct gort__m *m); /* and of gort__enter_light */
bool gort__entry_exposed(void);
__attribute__((noreturn)) void gort__entry_end_thread(struct gort__m *m); /* the run is over */
void gort__entry_thread_ends(void *m); /* a plain thread, or one of ours, comes to its end */
/* Back to a blocking call: nobody looks but for a stop of the world. */
void gort__entry_leave_blocking(struct gort__m *m);
void gort__entry_attend(struct gort__m *m); /* with inside set: does what attention asks for */

/* --- run.c --------------------------------------------------------------------------------------- */
void gort__zombie_free(struct gort__zombie *e);
void gort__run_main_ends(void);         /* the main goroutine ends */
void gort__run_done_locked(int result); /* main returned, or the last goroutine ended */

/* --- supervisor.c -------------------------------------------------------------------------------- */
void gort__supervisor_wake_locked(void);
void gort__supervisor_loop(void);
void gort__supervisor_deadlock_locked(void);

/* --- world.c ------------------------------------------------------------------------------------- */
/* *self: the caller's M, updated; NULL: the supervisor. False: the run is ending, nothing was stopped. */
bool gort__world_stop(struct gort__m **self);
bool gort__world_turn(struct gort__m **self); /* its two steps: nobody else may, which may take time; */
void gort__world_stop_now(struct gort__m *self);
void gort__world_start(void);
void gort__world_wait(struct gort__m *m); /* attention said so */
void gort__world_event(void);
extern int64_t gort__world_timeout;         /* ns; tests shorten it */
void gort__world_disown(struct gort__m *m); /* main returns: if it has stopped the world it goes on */
void gort__world_publish_sp(struct gort__m *m, void *sp);
void gort__world_retract_sp(struct gort__m *m);

#endif

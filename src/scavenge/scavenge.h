/* SPDX-License-Identifier: MIT */
/*
 * scavenge.h - what gives memory back; called by hooks.
 */
#ifndef GORT_SRC_SCAVENGE_SCAVENGE_H
#define GORT_SRC_SCAVENGE_SCAVENGE_H

#include "sched/life/life.h"

/* --- scavenge_g.c -------------------------------------------------------------------------------- */
/* scavenge_g.c, by the supervisor: at each tick, true: there is something to do; some of it, until that time,
 * true: there is more. */
bool gort__scavenge_g_tick(void);
bool gort__scavenge_g(int64_t until);
void gort__scavenge_g_reset(void);

/* --- scavenge_stack.c ---------------------------------------------------------------------------- */
/* By the supervisor: when it wants to be called again, INT64_MAX: not soon. */
int64_t gort__scavenge_stack(int64_t now);
/* All Ps are idle: a good moment, if it has not looked for long. */
void gort__scavenge_stack_stir_locked(void);
void gort__scavenge_stack_stir(void); /* the same for whoever does not hold sched.lock: a P is at work */

#endif

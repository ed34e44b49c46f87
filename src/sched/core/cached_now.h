/* SPDX-License-Identifier: MIT */
/* cached_now.h - roughly the time; see cached_now.c. */
#ifndef GORT_SRC_SCHED_CORE_CACHED_NOW_H
#define GORT_SRC_SCHED_CORE_CACHED_NOW_H

#include "sched/core/m.h"

/* Not before now, and at most 100 us after it; cheaper than the clock. For time-outs that are much longer.
 * Inside. */
int64_t gort__cached_now(struct gort__m *m);
void gort__cached_now_init(void); /* while no run is on */

#endif

/* SPDX-License-Identifier: MIT */
/* gmain.h - what is to be done when a goroutine ends; see gmain.c. */
#ifndef GORT_SRC_SCHED_CORE_GMAIN_H
#define GORT_SRC_SCHED_CORE_GMAIN_H

#include "sched/core/g.h"

bool gort__gmain_at_end(struct gort__g *g, void (*fn)(void *), void *arg); /* false: no memory */
void gort__gmain_at_end_cancel(struct gort__g *g, void (*fn)(void *), void *arg);

#endif

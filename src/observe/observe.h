/* SPDX-License-Identifier: MIT */
/*
 * observe.h - what others call of this room, all of it by hooks.
 */
#ifndef GORT_SRC_OBSERVE_OBSERVE_H
#define GORT_SRC_OBSERVE_OBSERVE_H

#include "sched/life/life.h"

/* --- census.c ------------------------------------------------------------------------------------ */
void gort__census_take(struct gort__g *g); /* GORT_G_CHECKED: it has ended, and is off its stack */
void gort__census_print(void);             /* at the end of a run, while its goroutines are still there */

/* --- dump.c -------------------------------------------------------------------------------------- */
size_t gort__dump_name(const struct gort__g *g, char *buf, size_t size); /* dump.c: "goroutine 7 (worker)" */
size_t gort__dump_who(char *buf, size_t size); /* dump.c: the calling goroutine; 0 in a plain thread */

/* --- overflow.c ---------------------------------------------------------------------------------- */
void gort__overflow_init(void);               /* at the start of a run: faults are reported from now on */
void gort__overflow_end(void);                /* at its end */
void gort__overflow_check(struct gort__g *g); /* GORT_G_CHECKED: fatal when it has run over its stack's end */

/* --- schedtrace.c -------------------------------------------------------------------------------- */
/* By the supervisor: prints if it is time; when it wants to be called again, INT64_MAX: never. */
int64_t gort__schedtrace_tick(int64_t now);

#endif

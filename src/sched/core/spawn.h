/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - starting goroutines.
 */
#ifndef GORT_SRC_SCHED_CORE_SPAWN_H
#define GORT_SRC_SCHED_CORE_SPAWN_H

#include <gort/run.h>

#include "sched/core/g.h"

struct gort__m;

/* Starts a goroutine on behalf of m. 0 or -errno. Inside. */
int gort__spawn(struct gort__m *m, const gort_attr *attr, void (*fn)(void), const uintptr_t *args, int nargs);
/* The same with up to three words, and done(done_arg) is called (outside) when the goroutine ends, however it
 * does. */
int gort__spawn_finally(struct gort__m *m, void (*fn)(void), const uintptr_t *args, int nargs,
                        void (*done)(void *), void *done_arg);
/* The same with two words, of which the first is a block (gort__argmem_get of args[1] bytes) that lives until
 * fn returns. */
int gort__spawn_owning(struct gort__m *m, void (*fn)(void), const uintptr_t args[2]);
/* One that has not run and waits: it begins when it is readied, which somebody must do. NULL: no memory.
 * Inside. */
struct gort__g *gort__spawn_parked(struct gort__m *m, void (*fn)(void), uintptr_t arg,
                                   enum gort__reason reason);

#endif

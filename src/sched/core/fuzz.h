/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - delays and unusual choices at points where order matters; see fuzz.c.
 */
#ifndef GORT_SRC_SCHED_CORE_FUZZ_H
#define GORT_SRC_SCHED_CORE_FUZZ_H

#include "sched/core/sched.h"

void gort__fuzz_point(struct gort__m *m); /* perhaps a delay; with fuzzing on only */

/* After the unlock of an object that others wait for: perhaps a delay, when schedules are fuzzed. */
void gort__fuzz_here(void);
static inline void gort__fuzz_released(void)
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.fuzz, RELAXED)))
        gort__fuzz_here();
}

/* Drops the lock of such an object, with that delay. */
void gort__fuzz_release_slow(struct gort__lock *l); /* after gort__lock_release_look has said so */
static inline void gort__fuzz_release(struct gort__lock *l, enum gort__rank rank)
{
    if (gort__lock_release_look(l, rank))
        gort__fuzz_release_slow(l);
}

#endif

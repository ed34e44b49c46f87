/* SPDX-License-Identifier: MIT */
/*
 * ras.h - keeps the processor's return-address stack in step with switches of goroutines (docs/design/0001).
 */
#ifndef GORT_SRC_SCHED_CORE_RAS_H
#define GORT_SRC_SCHED_CORE_RAS_H

#include "sched/core/m.h"

/*
 * For a call that parks and then returns to its caller at once: `to`. The processor foresees that the one who
 * goes on returns to where the one who stopped would have. If that is wrong, the call had better end by
 * gort__arch_ret_indirect.
 */
static inline void gort__ras_call_begins(struct gort__m *m, void *to)
{
    m->ras.call = to;
}

static inline bool gort__ras_call_matches(const struct gort__m *m, const void *to)
{
    return m->ras.match && m->ras.call == to;
}

#endif

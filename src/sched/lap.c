/* SPDX-License-Identifier: MIT */
/*
 * lap.c - how much CPU time goroutines use from one stop in the middle of user code to the next.
 *
 * Why: each of them keeps a thread, so there must not be many. Those that are held go before those that have not run yet;
 * but they may be endless loops, so a new one starts now and then. How often is measured in CPU time that the held ones have
 * used, not in time that has passed: on a busy machine a second may bring nobody any further, and a new one every 100 ms
 * would pile up threads. The price of a start grows with the number of Ps and of held goroutines: if each needs C of CPU time to
 * end, no more than about 16 * C / (50 ms * Ps) are held, or 16, whichever is more.
 * Invariants: (1) held_cpu only grows; (2) one start for each time the price is reached.
 * Threads: laps by each M for itself, inside; gort__fresh_may_start by any M.
 */
#include "sched/verbs.h"

#define HELD_MANY 16                 /* from here on new goroutines wait for held ones */
#define FRESH_CPU INT64_C(50000000)  /* ns of CPU time for each P, at HELD_MANY: the price of a start */
#define LAP_MOST  INT64_C(100000000) /* ns: a time slice is not longer; the M has run others meanwhile */

void gort__lap_end(struct gort__m *m)
{
    int64_t cpu = gort__os_thread_cpu(gort__load(&m->tid, RELAXED)), used = cpu - m->lap_from;
    m->lap_from = cpu;
    if (used > 0)
        gort__add(&gort__sched.held_cpu, used < LAP_MOST ? used : LAP_MOST, RELAXED);
}

bool gort__fresh_may_start(void)
{
    struct gort__sched *s = &gort__sched;
    int64_t held = gort__load(&s->held_n, RELAXED);
    if (held < HELD_MANY)
        return true;
    int64_t used = gort__load(&s->held_cpu, RELAXED), last = gort__load(&s->fresh_at, RELAXED);
    int64_t price = FRESH_CPU * gort__load(&s->procs, RELAXED) * held / HELD_MANY;
    return used - last >= price && gort__cas(&s->fresh_at, &last, used, RELAXED);
}

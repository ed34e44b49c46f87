/* SPDX-License-Identifier: MIT */
/*
 * state.c - the states of a goroutine: which may follow which, and their names.
 *
 * Why: one table that debug builds check at every change; a state set from a wrong place shows at
 * once instead of as a goroutine that runs twice.
 */
#include "base/fatal.h"
#include "sched/core/g.h"

#define TO(s) (1u << GORT_G_##s)

static const uint16_t edges[GORT_G_STATES] = {
    [GORT_G_IDLE] = TO(RUNNABLE) | TO(WAITING), /* started, now or when it is readied */
    [GORT_G_RUNNABLE] = TO(RUNNING),            /* picked */
    [GORT_G_RUNNING] = TO(RUNNABLE) | TO(WAITING) | TO(SYSCALL) | TO(DETACHED) | TO(PREEMPTED) | TO(DEAD),
    /* Back; queued; just announced. */
    [GORT_G_SYSCALL] = TO(RUNNING) | TO(RUNNABLE) | TO(DETACHED) | TO(PREEMPTED),
    [GORT_G_DETACHED] = TO(RUNNING) | TO(RUNNABLE), /* back with a P; queued for one */
    [GORT_G_WAITING] = TO(RUNNABLE) | TO(RUNNING),  /* readied; a thread wakes itself */
    [GORT_G_PREEMPTED] = TO(RUNNING) | TO(RUNNABLE),
    [GORT_G_DEAD] = TO(IDLE),
};

void gort__state_check_edge(const struct gort__g *g, enum gort__gstate to)
{
    uint8_t from = gort__load(&g->state, RELAXED);
    if (from >= GORT_G_STATES || !(edges[from] & (1u << to)))
        gort__throw("goroutine %lu goes from %s to %s", (unsigned long)g->id,
                    gort__state_name((enum gort__gstate)from), gort__state_name(to));
}

const char *gort__state_name(enum gort__gstate s)
{
    static const char *const names[GORT_G_STATES] = {"idle",     "runnable", "running",   "syscall",
                                                     "detached", "waiting",  "preempted", "dead"};
    return (unsigned)s < GORT_G_STATES ? names[s] : "?";
}

const char *gort__state_reason_name(enum gort__reason r)
{
    static const char *const names[GORT_WAIT_REASONS] = {
        "",          "chan receive", "chan send",     "select",    "select (no cases)",
        "mutex",     "rwmutex read", "rwmutex write", "cond wait", "wait group",
        "semaphore", "once",         "barrier",       "sleep",     "timer",
        "io read",   "io write",     "io write lock", "accept",    "connect",
        "fd"};
    return (unsigned)r < GORT_WAIT_REASONS && names[r] ? names[r] : "";
}

/* SPDX-License-Identifier: MIT */
/*
 * lap.c - how much CPU time goroutines use from one stop in the middle of user code to the next.
 *
 * Why: each of them keeps a thread, so there must not be many. Those that are held go before those that have not run yet;
 * but they may be endless loops, so a new one starts now and then. How often is measured in CPU time that the held ones have
 * used, not in time that has passed: on a busy machine a second may bring nobody any further, and a new one every 100 ms
 * would pile up threads. The price of a start grows with the number of Ps and of held goroutines: if each needs C of CPU time to
 * end, no more than about 16 * C / (50 ms * Ps) are held, or 16, whichever is more.
 * It also tells who does nothing but compute: a goroutine that has run on the same P without a switch, and has not slept in
 * the kernel in any of its laps. One lap is too short to tell it from one that computes for some milliseconds and then calls poll.
 * What the lap is in that has not ended yet only its clocks tell, which cost 0.2 us (its file below /proc, which counts its
 * sleeps, 10 to 30): who has had the CPU for nearly all the time has not slept to speak of.
 * Invariants: (1) held_cpu only grows; (2) one start for each time the price is reached.
 * Threads: laps by each M for itself, inside; gort__fresh_may_start by any M; gort__lap_pure by sysmon.
 */
#include "sched/verbs.h"

#define HELD_MANY 16                 /* from here on new goroutines wait for held ones */
#define FRESH_CPU INT64_C(50000000)  /* ns of CPU time for each P, at HELD_MANY: the price of a start */
#define LAP_MOST  INT64_C(100000000) /* ns: a time slice is not longer; the M has run others meanwhile */
#define OTHERS    INT64_C(100000)    /* ns in which something else, sysmon say, had the CPU */

void gort__lap_end(struct gort__m *m)
{
    struct gort__p *p = m->p;
    int64_t cpu;
    uint64_t waits;
    gort__os_thread_usage(&cpu, &waits);
    int64_t used = cpu - m->lap_from;
    bool pure = p && m->lap_p == p && m->lap_switches == p->switches && m->lap_waits == waits;
    gort__store(&m->lap_pure, pure ? m->lap_pure + used : 0, RELAXED);
    gort__store(&m->lap_from, cpu, RELAXED);
    if (used > 0)
        gort__add(&gort__sched.held_cpu, used < LAP_MOST ? used : LAP_MOST, RELAXED);
}

void gort__lap_begin(struct gort__m *m)
{
    struct gort__p *p = m->p; /* NULL: the run is over */
    int64_t cpu;
    uint64_t waits;
    gort__os_thread_usage(&cpu, &waits);
    gort__store(&m->lap_from, cpu, RELAXED);
    gort__store(&m->lap_at, gort__os_now(), RELAXED);
    gort__store(&m->lap_waits, waits, RELAXED);
    gort__store(&m->lap_p, p, RELAXED);
    gort__store(&m->lap_switches, p ? p->switches : 0, RELAXED);
}

bool gort__lap_awake(int64_t ns, int64_t cpu)
{
    return ns - cpu <= ns / 32 + OTHERS;
}

int64_t gort__lap_pure(struct gort__m *m, struct gort__p *p, int64_t now, int64_t cpu)
{
    int64_t ns = now - gort__load(&m->lap_at, RELAXED), used = cpu - gort__load(&m->lap_from, RELAXED);
    bool same = gort__load(&m->lap_p, RELAXED) == p &&
                gort__load(&m->lap_switches, RELAXED) == gort__load(&p->switches, RELAXED);
    return same && gort__lap_awake(ns, used) ? gort__load(&m->lap_pure, RELAXED) + used : 0;
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

/* SPDX-License-Identifier: MIT */
/*
 * cputime.c - how much CPU time goroutines use from one stop in the middle of user code to the next.
 *
 * Why: each of them keeps a thread, so there must not be many. Those that are preempted go before those that
 * have not run yet; but they may be endless loops, so a new one starts now and then. How often is measured in
 * CPU time that the preempted ones have used, not in time that has passed: on a busy machine a second may
 * bring nobody any further, and a new one every 100 ms would pile up threads. The price of a start grows with
 * the number of Ps and of preempted goroutines: if each needs C of CPU time to end, no more than about 16 * C
 * / (50 ms * Ps) are preempted, or 16, whichever is more.
 * It also tells who does nothing but compute: a goroutine that has run on the same P without a switch, and
 * has not slept in the kernel in any of its bursts. One burst is too short to tell it from one that computes
 * for some milliseconds and then calls poll. Of the burst that has not ended yet only its clocks tell, which
 * cost 0.2 us (its file below /proc, which counts its sleeps, 10 to 30): who has had the CPU for nearly all
 * the time has not slept to speak of.
 * Invariants: (1) preempted.cpu only grows; (2) one start for each time the price is reached.
 * Threads: bursts by each M for itself, inside; gort__cputime_admit_new by any M; gort__cputime_burst by
 * sysmon.
 */
#include "sched/core/core.h"

void gort__cputime_end(struct gort__m *m)
{
    struct gort__p *p = m->p;
    int64_t cpu;
    uint64_t waits;
    gort__os_thread_usage(&cpu, &waits);
    int64_t used = cpu - m->burst.from;
    bool pure = p && m->burst.p == p && m->burst.switches == p->switches && m->burst.waits == waits;
    gort__store(&m->burst.ns, pure ? m->burst.ns + used : 0, RELAXED);
    gort__store(&m->burst.from, cpu, RELAXED);
    if (used > 0)
        gort__add(&gort__sched.preempted.cpu, used < GORT_BURST_MOST ? used : GORT_BURST_MOST, RELAXED);
}

void gort__cputime_begin(struct gort__m *m)
{
    struct gort__p *p = m->p; /* NULL: the run is over */
    int64_t cpu;
    uint64_t waits;
    gort__os_thread_usage(&cpu, &waits);
    gort__store(&m->burst.from, cpu, RELAXED);
    gort__store(&m->burst.at, gort__os_now(), RELAXED);
    gort__store(&m->burst.waits, waits, RELAXED);
    gort__store(&m->burst.p, p, RELAXED);
    gort__store(&m->burst.switches, p ? p->switches : 0, RELAXED);
}

bool gort__cputime_awake(int64_t ns, int64_t cpu)
{
    return ns - cpu <= ns / 32 + GORT_BURST_OTHERS;
}

int64_t gort__cputime_burst(struct gort__m *m, struct gort__p *p, int64_t now, int64_t cpu)
{
    int64_t ns = now - gort__load(&m->burst.at, RELAXED), used = cpu - gort__load(&m->burst.from, RELAXED);
    bool same = gort__load(&m->burst.p, RELAXED) == p &&
                gort__load(&m->burst.switches, RELAXED) == gort__load(&p->switches, RELAXED);
    return same && gort__cputime_awake(ns, used) ? gort__load(&m->burst.ns, RELAXED) + used : 0;
}

bool gort__cputime_admit_new(void)
{
    struct gort__sched *s = &gort__sched;
    int64_t n = gort__load(&s->preempted.n, RELAXED);
    if (n < GORT_PREEMPTED_MANY)
        return true;
    int64_t used = gort__load(&s->preempted.cpu, RELAXED),
            last = gort__load(&s->preempted.admitted_at, RELAXED);
    int64_t price = GORT_ADMIT_CPU * gort__load(&s->procs, RELAXED) * n / GORT_PREEMPTED_MANY;
    return used - last >= price && gort__cas(&s->preempted.admitted_at, &last, used, RELAXED);
}

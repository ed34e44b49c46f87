/* SPDX-License-Identifier: MIT */
/*
 * wake_defer.c - a wake-up that can wait: another M only for work that will still be there when it comes.
 *
 * Why: an M that sleeps runs some 30 us after it was woken, and the wake-up costs 20 to 25 us of CPU time on
 * both sides together: the calls, an interrupt for an idle CPU, the search, going to sleep again. When
 * coalesced timers ready some goroutines every 275 us that are over after a microsecond each, all of it is
 * for nothing. So an M that has a few for its own P wakes nobody at first. It looks again at its picks, and
 * wakes another one when there are some left after TIMEOUT.
 *
 * It may have no pick to look at: the first of them computes, or is in a call that blocks, or the thread gets
 * no CPU. So sysmon is asked to look at least every 4 ms (defer_used), and only while it says that it does
 * (defer_watched), or has a guard that wakes it as soon (sysmon_sleep.c), may a wake-up wait. It then wakes
 * an M for whatever has waited for long. Without that all of them waited for the one thread, 10 to 70 ms on a
 * busy machine.
 *
 * What becomes of the rule of idle.c: for each wake-up that is put off, one of two does the publisher's half
 * later, with its fence: the owner of the P at a pick, or sysmon at a look. Between, goroutines may be queued
 * beside an idle P, but only on a P that somebody holds, so the searcher's half needs no change: whoever
 * releases a P has emptied its queue, or takes the second look. A P that is handed on, or taken away, takes
 * its queue along.
 * If sysmon stops to look that often in the very moment, a wake-up waits for 10 ms: so long is the first of
 * its longer sleeps.
 * Threads: each M for its P; sysmon.
 */
#include "sched/core/core.h"

#define FEW     64                          /* so many goroutines are soon over, */
#define TIMEOUT (5 * GORT_ARCH_TICKS_BRIEF) /* ticks, some 100 us: or they are not */
#define LONG    (4 * TIMEOUT)               /* ticks: the M has not looked */

bool gort__wake_defer(struct gort__p *p, uint32_t n)
{
    struct gort__sched *s = &gort__sched;
    if (gort__sched_alone() || gort__load(&s->global.n, RELAXED) || gort__load(&s->events.n, RELAXED) ||
        gort__local_length(p) + n > FEW)
        return false;
    if (!gort__load(&s->defer.used, RELAXED))
        gort__store(&s->defer.used, true, RELAXED);
    if (!gort__load(&s->defer.watched, RELAXED) && !gort__wake_sysmon_armed())
        return false;
    if (!p->deferred)
        p->defer_fair_in = p->fair_in;
    if (!p->deferred || gort__local_seems_empty(p)) {
        p->fair_in = p->fair_in < 2 ? p->fair_in : 2; /* after the first of them, unless a fair one is due */
        gort__store(&p->deferred_since, gort__arch_ticks() | 1, RELAXED);
    }
    p->deferred = true;
    return true;
}

static void wake(struct gort__p *p)
{
    if (gort__local_empty(p))
        return;
    gort__fence(SEQ_CST); /* pairs with idle.c: published long ago, now the look for idle Ps */
    gort__wake_idle();
}

bool gort__wake_defer_look(struct gort__p *p)
{
    p->defer_fair_in = p->defer_fair_in > GORT_WAKE_DEFER_EVERY ? p->defer_fair_in - GORT_WAKE_DEFER_EVERY
                                                                : 0;
    p->deferred = !gort__local_seems_empty(p) &&
                  gort__arch_ticks() - gort__load(&p->deferred_since, RELAXED) < TIMEOUT;
    if (!p->deferred)
        wake(p);
    p->fair_in = p->deferred && p->defer_fair_in > GORT_WAKE_DEFER_EVERY ? GORT_WAKE_DEFER_EVERY
                                                                         : p->defer_fair_in;
    return p->fair_in;
}

void gort__wake_defer_watch(struct gort__p *p)
{
    uint64_t since = gort__load(&p->deferred_since, RELAXED);
    if (since && gort__arch_ticks() - since >= LONG)
        wake(p);
}

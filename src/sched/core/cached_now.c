/* SPDX-License-Identifier: MIT */
/*
 * cached_now.c - what time it is, for those who set a time-out of seconds again and again.
 *
 * Why: a server moves a time-out with each packet, and three quarters of that was asking for the time (28
 * ns). Reading the processor's counter takes 11, and that is enough to know that the last answer is not older
 * than a moment. So each M remembers one, and the time is taken to be as late as it can be since then:
 * GORT_CACHED_NOW_FOR after it. What is set by it is late by GORT_CACHED_NOW_FOR at most, and never early.
 * Rejected: the kernel's coarse clock (6 ns). It falls behind for as long as the CPU that keeps it does not
 * run, which a virtual one may well not do, and then time-outs would be early. Converting the counter to
 * nanoseconds: the rate changes, and must be learnt and watched; here it only has to be faster than a very
 * low bound (arch.h).
 * The counter is trusted where the kernel takes the time from it, and so has found it to be steady and the
 * same on all CPUs. (If it finds out otherwise during a run, time-outs of seconds may be wrong by what it was
 * wrong in 100 us.)
 * Threads: each M for itself.
 */
#include "sched/core/core.h"

static uint64_t brief; /* ticks; 0: the counter is not trusted. Written while no run is on */

void gort__cached_now_init(void)
{
    brief = gort__os_clock_is(GORT_ARCH_TICKS_NAME) ? GORT_ARCH_TICKS_BRIEF : 0;
}

int64_t gort__cached_now(struct gort__m *m)
{
    if (GORT_UNLIKELY(!brief))
        return gort__os_now();
    uint64_t ticks = gort__arch_ticks();
    if (GORT_UNLIKELY(ticks - m->cached.ticks >= brief)) { /* also if it has gone back */
        m->cached.ticks = ticks;                           /* read before the clock was */
        m->cached.now = gort__os_now() + GORT_CACHED_NOW_FOR;
    }
    return m->cached.now;
}

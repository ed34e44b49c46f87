/* SPDX-License-Identifier: MIT */
/*
 * fuzz.c - schedule fuzzing: GORT_DEBUG=schedfuzz=SEED.
 *
 * Why: most orders of events never happen on an idle machine. With a seed, each M and P draws from
 * its own generator and now and then delays itself at a point where order matters (before a
 * commit, before a wake-up, while stealing, after an unlock), or makes an unusual choice (whom to
 * run next, when to look at the global queue). At one P and without preemption the choices, and
 * so the schedule, are the same for the same seed, but for what the clock decides (timers, fairness of
 * a mutex); with more the kernel adds its own.
 * Threads: each M for itself.
 */
#include "sched/core/core.h"

void gort__fuzz_here(void)
{
    struct gort__m *m = gort__m_self();
    if (m && gort__load(&m->inside, RELAXED))
        gort__fuzz_point(m);
}

void gort__fuzz_release_slow(struct gort__lock *l)
{
    gort__lock_release_slow(l);
    gort__fuzz_released();
}

void gort__fuzz_point(struct gort__m *m)
{
    uint32_t dice = gort__rand_below(&m->rand, 64);
    if (dice == 0)
        gort__os_nap(1000 * (int64_t)gort__rand_below(&m->rand, 100));
    else if (dice < 4)
        gort__os_thread_yield();
    else if (dice < 16)
        for (uint32_t n = gort__rand_below(&m->rand, 200); n; n--)
            gort__arch_pause();
}

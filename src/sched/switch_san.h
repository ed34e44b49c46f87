/* SPDX-License-Identifier: MIT */
/*
 * switch_san.h - announcing stack switches to ASan and TSan, for schedule.c and exit.c.
 *
 * Why here and not in mem/sanitize.h: it needs G and M. TSan wants its call in the very function
 * that switches, so these are macros or always-inlined.
 */
#ifndef GORT_SRC_SCHED_SWITCH_SAN_H
#define GORT_SRC_SCHED_SWITCH_SAN_H

#include "mem/sanitize.h"
#include "sched/sched.h"

#define GORT_SAN_INLINE static inline __attribute__((always_inline))

/* A G that will run for the first time. */
GORT_SAN_INLINE void gort__san_fiber_make(struct gort__g *g)
{
#if GORT_TSAN
    g->sanitizer = __tsan_create_fiber(0);
#else
    g->sanitizer = NULL;
#endif
}

/* A G that is off its stack for good. */
GORT_SAN_INLINE void gort__san_fiber_free(struct gort__g *g)
{
#if GORT_TSAN
    __tsan_destroy_fiber(g->sanitizer);
#endif
    g->sanitizer = NULL;
}

/* The end of a run: a G that will never be resumed. */
GORT_SAN_INLINE void gort__san_forget(struct gort__g *g)
{
#if GORT_TSAN
    if (g->sanitizer && g->state != GORT_G_IDLE && g->state != GORT_G_DEAD)
        __tsan_destroy_fiber(g->sanitizer);
#endif
    (void)g;
}

/* The same for one whose thread has left it. */
GORT_SAN_INLINE void gort__san_estate(void *fiber)
{
#if GORT_TSAN
    if (fiber)
        __tsan_destroy_fiber(fiber);
#endif
    (void)fiber;
}

/* Right before the switch. */
GORT_SAN_INLINE void gort__san_leave(struct gort__m *m, struct gort__g *from, struct gort__g *to)
{
#if GORT_ASAN
    bool last = from->state == GORT_G_DEAD;
    const void *bottom = to == &m->g0 ? m->asan_bottom : gort__stack_lo(to->stack);
    size_t size = to == &m->g0 ? m->asan_size
                               : (size_t)(gort__stack_hi(to->stack) - gort__stack_lo(to->stack));
    __sanitizer_start_switch_fiber(last ? NULL : &from->sanitizer, bottom, size);
#elif GORT_TSAN
    __tsan_switch_to_fiber(to->sanitizer, 0);
#endif
    (void)m, (void)from, (void)to;
}

/* First thing on the other side. */
GORT_SAN_INLINE void gort__san_arrived(struct gort__m *m, struct gort__g *g)
{
#if GORT_ASAN
    __sanitizer_finish_switch_fiber(g->sanitizer, NULL, NULL);
#endif
    (void)m, (void)g;
}

/* A thread starts: its own stack is a fiber too. */
GORT_SAN_INLINE void gort__san_thread(struct gort__m *m)
{
#if GORT_ASAN
    void *lo;
    gort__os_thread_stack(&lo, &m->asan_size);
    m->asan_bottom = lo;
#elif GORT_TSAN
    m->g0.sanitizer = __tsan_get_current_fiber();
#endif
    (void)m;
}

#endif

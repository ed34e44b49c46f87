/* SPDX-License-Identifier: MIT */
/*
 * san.h - announcing stack switches to ASan and TSan, for schedule.c and gmain.c.
 *
 * Why here and not in mem/sanitize.h: it needs G and M. TSan wants its call in the very function
 * that switches, so these are macros or always-inlined.
 * What orders goroutines for TSan, when a switch does not (GORT_TSAN_EDGES): our atomics, as for any program;
 * and the states of a G, stored with release: the one who starts or readies it comes before it goes on
 * (gort__san_arrived), and what it did before it waited comes before the one who takes it out of a queue
 * (gort__waitq_take, netpoll.c), and all it did before the end of the run and who counts goroutines, because
 * the commit that unlocks the queue runs in somebody else's name. A new fiber inherits the past of the one
 * who makes it; that is whoever ran before on the same P, which orders nothing: so it is made in the name of
 * a fiber that has no past.
 */
#ifndef GORT_SRC_SCHED_SWITCH_SAN_H
#define GORT_SRC_SCHED_SWITCH_SAN_H

#include "mem/sanitize.h"
#include "sched/core/sched.h"

#define GORT_SAN_INLINE static inline __attribute__((always_inline))

/* A G that will run for the first time; it has its stack. */
GORT_SAN_INLINE void gort__san_fiber_make(struct gort__g *g)
{
#if GORT_TSAN_EDGES
    void *self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(gort__m_self()->tsan_blank, __tsan_switch_to_fiber_no_sync);
    g->sanitizer = __tsan_create_fiber(0);
    /* Whoever used the stack last comes before it. Now, because its first atomic may deliver a signal on that
     * stack. */
    __tsan_switch_to_fiber(g->sanitizer, __tsan_switch_to_fiber_no_sync);
    __tsan_acquire(&g->stack->owner); /* pairs with gort__san_leave */
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
#elif GORT_TSAN
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

/* The end of a run: a G that will never be resumed; it is dead if its thread met the end in a call. */
GORT_SAN_INLINE void gort__san_forget(struct gort__g *g)
{
    gort__g_edge(g); /* what it did comes before what the program does after the run */
#if GORT_TSAN
    if (g->sanitizer && g->state != GORT_G_IDLE)
        __tsan_destroy_fiber(g->sanitizer);
#endif
    (void)g;
}

/* The same for one whose thread has left it. */
GORT_SAN_INLINE void gort__san_zombie(void *fiber)
{
#if GORT_TSAN
    if (fiber)
        __tsan_destroy_fiber(fiber);
#endif
    (void)fiber;
}

#if !GORT_TSAN
/*
 * What ASan thinks of a stack that was left: it lies there. What it has to be told when the goroutine goes on
 * is what it knew before, which need not be the goroutine's own stack: it may have parked on one of the
 * program's, with ASan told about that. The bounds are those that ASan names to whoever comes next.
 */
struct gort__san_stack {
    void *fake;
    const void *bottom;
    size_t size;
};

/* Right before the switch; here lies on the stack that is left. */
static inline void gort__san_start(struct gort__g *from, struct gort__g *to, struct gort__san_stack *here)
{
    bool last = from->state == GORT_G_DEAD;
    struct gort__san_stack fresh, *next = to->sanitizer;
    if (!next) { /* it has not run yet */
        fresh = (struct gort__san_stack){NULL, gort__stack_lo(to->stack),
                                         (size_t)(gort__stack_hi(to->stack) - gort__stack_lo(to->stack))};
        next = &fresh;
    }
    from->sanitizer = last ? NULL : here;
    __sanitizer_start_switch_fiber(last ? NULL : &here->fake, next->bottom, next->size);
}

static inline void gort__san_finish(struct gort__g *g, struct gort__g *prev)
{
    struct gort__san_stack left, *mine = g->sanitizer,
                                 *theirs = prev && prev->sanitizer ? prev->sanitizer : &left;
    __sanitizer_finish_switch_fiber(mine ? mine->fake : NULL, &theirs->bottom, &theirs->size);
    g->sanitizer = NULL;
}
#endif

/* Right before the switch, for TSan. The fiber that goes on later is the one that runs now: the goroutine's,
 * or one that the program has made for a coroutine of its own. Whoever calls puts the former value back
 * afterwards. */
GORT_SAN_INLINE void *gort__san_leave(struct gort__m *m, struct gort__g *from, struct gort__g *to)
{
    void *fiber = from->sanitizer;
#if GORT_TSAN
    uint8_t state = gort__load(&from->state, RELAXED); /* a plain thread may ready it already */
    if (GORT_TSAN_EDGES && state == GORT_G_DEAD) {
        /* After the end of the run the stack's record may be gone, and nobody gets the stack. */
        if (!(gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED))
            gort__store(&from->stack->owner, from, RELEASE); /* pairs with gort__san_fiber_make */
        gort__add(&gort__sched.tsan_end, 1, RELEASE);        /* pairs with gort__san_after_all */
    }
    if (state != GORT_G_DEAD)
        from->sanitizer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->sanitizer, GORT_TSAN_EDGES ? __tsan_switch_to_fiber_no_sync : 0);
#endif
    (void)m, (void)from, (void)to;
    return fiber;
}

/* First thing on the other side. */
GORT_SAN_INLINE void gort__san_arrived(struct gort__m *m, struct gort__g *g)
{
#if !GORT_TSAN
    if (GORT_UNLIKELY(gort__asan))
        gort__san_finish(g, m->prev);
#endif
    gort__g_edge(g);
    (void)m;
}

/* What all who have ended did comes before what the caller does next. */
GORT_SAN_INLINE void gort__san_after_all(void)
{
    if (GORT_TSAN_EDGES)
        (void)gort__load(&gort__sched.tsan_end, ACQUIRE); /* pairs with gort__san_leave */
}

/* A thread starts: its own stack is a fiber too. */
GORT_SAN_INLINE void gort__san_thread(struct gort__m *m)
{
#if GORT_TSAN
    m->g0.sanitizer = __tsan_get_current_fiber();
    /* Goroutines that run on this thread one after the other all use its errno, and nothing orders them: no
     * race. */
    AnnotateBenignRaceSized(__FILE__, __LINE__, m->err, sizeof *m->err, "errno");
    if (GORT_TSAN_EDGES && !m->tsan_blank)
        m->tsan_blank = __tsan_create_fiber(0);
#endif
    (void)m;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * roots.c - where a stopped world keeps its pointers.
 *
 * Why: a collector must see every word that a goroutine may use when it goes on. With the world stopped
 * (world.c) those are
 *     a goroutine that runs on no thread    its stack from ctx.sp upwards; the switch has put all registers there,
 *                                           but for the frame pointer, which is in its record
 *     one whose thread waits in the         its stack from where the signal met it, with the red zone; the signal frame on the
 *     signal handler                        alternate stack, which holds its registers
 *     one whose thread waits in a call      its stack from m->stack.parked_sp upwards (GORT_PUBLISH_SP), also while it wakes and finds
 *                                           that it must not go on yet
 *     the function of gort_block            the thread's own stack, in either of these two ways
 *     the caller, if it is a goroutine      its stack from here upwards
 *     one that has not run yet              its record
 * Where a goroutine stands on a stack that is not ours (a coroutine of the program), nobody knows where it
 * left its own one, so all of that is reported. Of the other stack the registers are all that we know (the
 * signal frame, if a signal stopped it): its bounds are the program's secret, and it is the program that
 * reports it, as it does with those of coroutines on which nobody stands.
 * and what it has left in our hands: copied arguments, keys, exit handlers, the buffers of channels, timers.
 * These are walked as they are, with what is free among them; a stale pointer there keeps something alive a
 * little longer.
 * Threads: who has stopped the world.
 */
#include <errno.h>

#include "base/fatal.h"
#include "observe/observe.h"

#define RED_ZONE 128

struct visit {
    void (*fn)(const void *from, const void *to, void *arg);
    void *arg;
};

/* A goroutine whose stack pointer is sp: its stack from there on, or all of it when it stands elsewhere. */
static void visit_stack(const struct visit *v, const struct gort__stack *s, uintptr_t sp)
{
    sp &= ~(uintptr_t)15;
    v->fn(gort__stack_holds(s, (void *)sp) ? (void *)sp : gort__stack_lo(s), gort__stack_hi(s), v->arg);
}

/* The code that runs on m's thread: a goroutine's, or the function of gort_block on the thread's own
 * stack. */
static void visit_running(const struct visit *v, const struct gort__m *m, uintptr_t sp)
{
    const struct gort__g *g = gort__load(&m->g, RELAXED);
    if (g == &m->g0 && !gort__load(&m->block.on_g0, RELAXED))
        g = gort__load(&m->block_g, RELAXED); /* it has surfaced in a call, and is still where it was */
    if (g && g->stack)
        visit_stack(v, g->stack, sp);
    else if (gort__m_own_stack(m, sp))
        v->fn((void *)(sp & ~(uintptr_t)15), m->stack.hi, v->arg);
}

/* The goroutine, or the function of gort_block, whose thread is m's. */
static void visit_thread(const struct visit *v, struct gort__m *m)
{
    if (gort__load(&m->g, RELAXED) == &m->g0 && !gort__load(&m->block_g, RELAXED))
        return;
    if (gort__load(&m->preempt.in_handler, RELAXED)) {
        v->fn((char *)m - GORT_ALTSTACK, m, v->arg);
        visit_running(v, m, (uintptr_t)m->preempt.met_sp - RED_ZONE);
        return;
    }
    void *parked_sp = gort__load(&m->stack.parked_sp, ACQUIRE); /* pairs with gort__world_publish_sp */
    if (parked_sp)
        visit_running(v, m, (uintptr_t)parked_sp);
}

static void visit_g(const struct visit *v, const struct gort__g *g)
{
    uint8_t state = gort__load(&g->state, RELAXED);
    if (state == GORT_G_IDLE || state == GORT_G_DEAD)
        return;
    v->fn(g, g + 1, v->arg);
    const struct gort__m *m = gort__load(&g->m, ACQUIRE); /* pairs with schedule.c; may be an old one */
    bool on_thread = m && (gort__load(&m->g, RELAXED) == g ||
                           (gort__load(&m->block_g, RELAXED) == g && !gort__load(&m->block.on_g0, RELAXED)));
    if (!on_thread && g->stack && g->ctx.pc)
        visit_stack(v, g->stack, (uintptr_t)g->ctx.sp);
}

static void visit_gs(const void *from, const void *to, void *arg)
{
    for (const struct gort__g *g = from; (const void *)g < to; g++)
        visit_g(arg, g);
}

static GORT_NOINLINE void visit_all(const struct visit *v, struct gort__m *self)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (struct gort__m *m = s->ms.all; m; m = m->all_next)
        if (m != self && gort__load(&m->life.has_thread, RELAXED))
            visit_thread(v, m);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__slab_each(&s->gs, visit_gs, (void *)(uintptr_t)v);
    gort__argmem_each(v->fn, v->arg);
    gort__alloc_each(v->fn, v->arg);
    if (!self->plain)
        visit_running(v, self, (uintptr_t)gort__arch_sp());
}

int gort_world_roots(void (*fn)(const void *from, const void *to, void *arg), void *arg)
{
    struct gort__m *m = gort__m_self();
    GORT_NEED("gort_world_roots", "function", fn);
    if (!m || gort__load(&gort__sched.world.owner, RELAXED) != m)
        return -EPERM;
    m = gort__enter();
    struct visit v = {fn, arg};
    __builtin_unwind_init(); /* the caller's registers are in this frame */
    visit_all(&v, m);
    gort__leave(m);
    return 0;
}

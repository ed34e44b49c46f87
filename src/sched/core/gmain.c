/* SPDX-License-Identifier: MIT */
/*
 * gmain.c - how a goroutine begins its function and how it ends.
 *
 * Why: an ending goroutine runs its exit handlers and key destructors as user code, then gives its
 * stack and record back. When the next goroutine on this P has not run yet, it simply takes over
 * the stack that is hot and in use: no switch, no stack cache, the start of a goroutine costs
 * little more than a call.
 * Invariants: (1) user code is called outside; (2) the record is free only after its stack is.
 * Threads: the running goroutine for itself.
 */
#include <errno.h>

#include "base/fatal.h"
#include "base/ref.h"
#include "sched/core/san.h"
#include "sched/core/core.h"

/* A function to run at the end. Lives in a block of 128 bytes. */
struct gort__exit_handler {
    struct gort__exit_handler *next;
    void (*fn)(void *);
    void *arg;
};

bool gort__gmain_at_end(struct gort__g *g, void (*fn)(void *), void *arg)
{
    struct gort__extra *extra = gort__extra_get(g);
    struct gort__exit_handler *h = extra ? gort__argmem_get(sizeof *h) : NULL;
    if (!h)
        return false;
    *h = (struct gort__exit_handler){extra->handlers, fn, arg};
    extra->handlers = h;
    return true;
}

void gort__gmain_at_end_cancel(struct gort__g *g, void (*fn)(void *), void *arg)
{
    if (!g->extra)
        return;
    for (struct gort__exit_handler **at = &g->extra->handlers; *at; at = &(*at)->next)
        if ((*at)->fn == fn && (*at)->arg == arg) {
            struct gort__exit_handler *h = *at;
            *at = h->next;
            gort__argmem_put(h, sizeof *h);
            return;
        }
}

int gort_on_exit(void (*fn)(void *), void *arg)
{
    GORT_NEED("gort_on_exit", "function", fn);
    struct gort__m *m = gort__enter();
    if (!m)
        return -ESRCH;
    bool done = gort__gmain_at_end(m->g, fn, arg);
    gort__leave(m);
    return done ? 0 : -ENOMEM;
}

bool gort__gmain_callback(void (*fn)(void *), void *arg)
{
    gort__leave(gort__m_self());
    fn(arg);
    return gort__enter() != NULL;
}

/* A plain thread's are gone when its run ended during one of them. */
static struct gort__exit_handler *last_handler(const struct gort__g *g)
{
    return g->extra ? g->extra->handlers : NULL;
}

/* Runs what the goroutine left to be run at its end. False: the run is over. */
static GORT_NOINLINE bool run_handlers(struct gort__g *g)
{
    struct gort__exit_handler *h;
    while ((h = last_handler(g)) != NULL) {
        void (*fn)(void *) = h->fn;
        void *arg = h->arg;
        g->extra->handlers = h->next;
        gort__argmem_put(h, sizeof *h);
        if (!gort__gmain_callback(fn, arg))
            return false;
    }
    return true;
}

void gort__gmain_cleanup(struct gort__g *g)
{
    /* A destructor may register another handler, a handler may set another value. */
    do
        if (!run_handlers(g) || !gort__key_destroy_all(g))
            return;
    while (last_handler(g));
    if (g->flags & GORT_G_FINALLY) {
        gort__g_flag_off(g, GORT_G_FINALLY);
        gort__gmain_callback((void (*)(void *))g->arg[3], (void *)g->arg[4]);
    }
    if (g->extra) {
        if (g->extra->inherited) { /* only now is it not in use any more */
            gort__g_flag_off(g, GORT_G_CONTEXT);
            gort__ref_drop(g->extra->inherited);
        }
        gort__extra_put(g);
    }
    if (g->flags & GORT_G_COPY)
        gort__argmem_put((void *)g->arg[0], g->arg[1]);
}

static bool commit_end(struct gort__g *g, void *arg)
{
    struct gort__p *p = gort__m_self()->p;
    (void)arg;
    gort__san_fiber_free(g);
    if (GORT_UNLIKELY(g->flags & GORT_G_CHECKED))
        gort__hooks.outer.census_take(g);
    gort__stack_put(&p->stacks, g->stack);
    gort__g_free(p, g);
    gort__store(&p->exited, p->exited + 1, RELEASE); /* pairs with gort__g_count */
    return true;
}

/* The next goroutine has not run yet and can have this stack: it starts right here. */
static void restart_on(struct gort__m *m, struct gort__g *g, struct gort__g *next)
{
    struct gort__p *p = m->p;
    m->g0.ctx.control = g->ctx.control; /* what is loaded now; the record is somebody else's in a moment */
    gort__store(&next->stack, g->stack, RELEASE); /* pairs with dump.c */
    gort__store(&next->stack->owner, next, RELAXED);
    gort__arch_make(&next->ctx, gort__stack_top(next->stack), gort__gmain_start);
    gort__g_free(p, g);
    gort__store(&p->exited, p->exited + 1, RELEASE); /* pairs with gort__g_count */
    *m->err = 0;
    if (GORT_UNLIKELY(m->eh_globals != NULL)) { /* C++, or a mask in doubt */
        uint64_t mask;
        (void)gort__mask_put_away(m, &mask);
        if (m->sig.cxx) /* by gort_exit in a catch block */
            gort__m_eh_set(m, NULL, 0);
    }
    gort__store(&m->g, next, RELAXED);
    gort__store(&next->m, m, RELEASE); /* pairs with dump.c */
    gort__g_set(next, GORT_G_RUNNING);
    gort__p_count_switch(p);
    gort__arch_restart(&m->g0.ctx, &next->ctx);
}

void gort__gmain_end(void)
{
    struct gort__m *m = gort__m_self();
    struct gort__g *g = m->g;
    if (GORT_UNLIKELY(g->flags & GORT_G_CLEANUP)) {
        gort__gmain_cleanup(g);
        m = gort__m_self();
    }
    if (GORT_UNLIKELY(g->flags & GORT_G_MAIN)) {
        gort__hooks.life.main_ends();
        m = gort__m_self(); /* it may have had to wait for somebody who had the world stopped */
    }
    gort__arch_save_control(&g->ctx);
    gort__g_set(g, GORT_G_DEAD);
    if (GORT_UNLIKELY(m->bound_g != NULL)) {
        m->bound_g = NULL;
        m->life.die = true;
        gort__store(&g->lock_depth, 0, RELAXED);
    } else if (GORT_LIKELY(!gort__m_wanted(m))) {
        struct gort__g *next = gort__schedule_pick(m->p);
        if (next) {
            bool may_start = !gort__load(&gort__sched.limit.careful, RELAXED);
            bool fresh = !next->ctx.pc && !next->stack && !(next->flags & (GORT_G_BOUND | GORT_G_TRACKED)) &&
                         may_start;
            if (!GORT_TSAN && !gort__asan && fresh && !(g->flags & GORT_G_CHECKED) &&
                g->stack->log2 == gort__stack_class(0))
                restart_on(m, g, next);
            m->commit.fn = commit_end;
            /* Pairs with scavenge_stack.c:let_go. */
            uint32_t special = gort__load(&next->flags, ACQUIRE) & GORT_G_SPECIAL;
            if (GORT_UNLIKELY(special == GORT_G_TRACKED)) {
                gort__latency_end(m->p, next);
                special = 0;
            }
            if (!special && (next->ctx.pc || (may_start && gort__schedule_give_stack(m->p, next))))
                gort__schedule_switch_to(m, g, next);
            m->handed = next;
        }
    }
    m->commit.fn = commit_end;
    gort__schedule_switch_to(m, g, &m->g0);
    gort__throw("a goroutine that ended was resumed");
}

typedef void one_word(uintptr_t);
typedef void six_words(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

void gort__gmain_start(void)
{
    struct gort__m *m = gort__schedule_switch_finish();
    struct gort__g *g = m->g;
    if (GORT_LIKELY(!(g->flags & GORT_G_WORDS))) {
        one_word *fn = (one_word *)g->fn;
        uintptr_t a = g->arg[0];
        gort__leave(m);
        fn(a);
    } else {
        six_words *fn = (six_words *)g->fn;
        uintptr_t *a = g->arg;
        gort__leave(m);
        fn(a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    m = gort__enter();
    if (GORT_UNLIKELY(!m || !m->p))
        gort__hooks.threads.block_left_open();
    gort__gmain_end();
}

void gort_exit(void)
{
    struct gort__m *m = gort__enter();
    if (!m || !m->p)
        gort__fatal("gort_exit: not in a goroutine");
    gort__gmain_end();
}

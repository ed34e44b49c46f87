/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - starting goroutines: a record, its arguments, a place in the queue.
 *
 * Why: a started goroutine is 192 bytes and a queue entry; its stack comes when it first runs
 * (schedule.c), because the first touch of fresh memory costs more than everything else together.
 * Records: g.c.
 * Threads: with a P by the M that holds it; without one (plain threads) under sched.lock.
 */
#include <errno.h>

#include <gort/typed.h>

#include "base/fatal.h"
#include "sched/core/scope.h"
#include "sched/core/core.h"

/* It is runnable from now on, and one of the few whose wait is measured (latency.c). */
static void follow(struct gort__g *g)
{
    gort__g_flag_on(g, GORT_G_TRACKED);
    gort__latency_begin(g);
}

static GORT_NOINLINE void more_ids(struct gort__p *p, struct gort__g *g)
{
    if (gort__load(&g->state, RELAXED) == GORT_G_RUNNABLE)
        follow(g);
    p->next_id = gort__add(&gort__sched.ids, 256, RELAXED);
    p->end_id = p->next_id + 256;
}

/* What only some starts need: a name, a stack of another size. 0 or -errno. */
static GORT_NOINLINE int apply(const gort_attr *attr, struct gort__g *g)
{
    uint8_t log2 = gort__stack_class(attr->stack_size);
    uintptr_t reserved = 0;
    for (size_t i = 0; i < sizeof attr->reserved / sizeof attr->reserved[0]; i++)
        reserved |= attr->reserved[i];
    if (!log2 || reserved)
        return -EINVAL;
    if (attr->name && !gort__extra_set_name(g, attr->name))
        return -ENOMEM;
    if (attr->stack_size && log2 != gort__stack_class(0)) {
        struct gort__stack *s = gort__stack_get(NULL, log2);
        if (!s)
            return -ENOMEM;
        gort__store(&g->stack, s, RELEASE); /* pairs with dump.c */
    }
    return 0;
}

/* A G from a plain thread goes through the global queue. */
static GORT_NOINLINE void publish_plain(struct gort__m *m, struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    g->id = gort__add(&s->ids, 1, RELAXED);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__store(&s->plain.spawned, s->plain.spawned + 1, RELAXED);
    if (s->plain.spawned % 8 == 0)
        follow(g);
    if (!m->nested)
        gort__queue_put_locked(g);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (m->nested) /* the function of a timer */
        gort__queue_put_woken((struct gort__glist){g, g, 1});
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__wake_idle();
}

/* The context in use, with a reference that lasts until g ends. False: no memory. */
static GORT_NOINLINE bool inherit(const struct gort__g *from, struct gort__g *g)
{
    struct gort__scope *scope = from->scope;
    struct gort__extra *extra = gort__extra_get(g);
    if (!extra)
        return false;
    gort__ref_take(&scope->ref);
    extra->inherited = &scope->ref;
    g->scope = scope;
    gort__g_flag_on(g, GORT_G_CONTEXT);
    return true;
}

/* A record with its function and its first words. NULL: no memory. */
static inline struct gort__g *prepare(struct gort__m *m, void (*fn)(void), const uintptr_t *args, int nargs)
{
    struct gort__g *g = gort__g_new(m->p);
    if (GORT_UNLIKELY(!g))
        return NULL;
    gort__check(g->state == GORT_G_IDLE && !g->extra);
    g->ctx.pc = NULL;
    gort__store(&g->flags, (uint16_t)(nargs > 1 ? GORT_G_WORDS : 0), RELAXED);
    gort__store(&g->stack, NULL, RELAXED);
    g->err = 0;
    g->fn = fn;
    for (int i = 0; i < nargs; i++)
        g->arg[i] = args[i];
    if (GORT_UNLIKELY(m->g->flags & GORT_G_CONTEXT) && !inherit(m->g, g)) {
        gort__g_discard(m->p, g);
        return NULL;
    }
    gort__store(&g->parent, m->g->id, RELAXED);
    return g;
}

/* It has a number and is one of the goroutines. */
static inline void count_in(struct gort__p *p, struct gort__g *g)
{
    if (GORT_UNLIKELY(p->next_id == p->end_id))
        more_ids(p, g);
    gort__store(&g->id, p->next_id++, RELAXED);
    gort__store(&p->spawned, p->spawned + 1, RELAXED);
}

/* Into a queue: from now on it may run and end at any moment. */
static inline void publish(struct gort__m *m, struct gort__g *g)
{
    struct gort__p *p = m->p;
    gort__g_set(g, GORT_G_RUNNABLE);
    if (GORT_UNLIKELY(!p)) {
        publish_plain(m, g);
        return;
    }
    count_in(p, g);
    gort__local_put_next(p, g);
}

int gort__spawn(struct gort__m *m, const gort_attr *attr, void (*fn)(void), const uintptr_t *args, int nargs)
{
    struct gort__g *g = prepare(m, fn, args, nargs);
    if (GORT_UNLIKELY(!g))
        return -ENOMEM;
    if (GORT_UNLIKELY(attr != NULL)) {
        int err = apply(attr, g);
        if (err) {
            gort__gmain_cleanup(g);
            gort__g_discard(m->p, g);
            return err;
        }
    }
    publish(m, g);
    return 0;
}

int gort__spawn_finally(struct gort__m *m, void (*fn)(void), const uintptr_t *args, int nargs,
                        void (*done)(void *), void *done_arg)
{
    struct gort__g *g = prepare(m, fn, args, nargs);
    if (!g)
        return -ENOMEM;
    g->arg[3] = (uintptr_t)done;
    g->arg[4] = (uintptr_t)done_arg;
    gort__g_flag_on(g, GORT_G_FINALLY | GORT_G_CLEANUP | GORT_G_WORDS);
    publish(m, g);
    return 0;
}

int gort__spawn_owning(struct gort__m *m, void (*fn)(void), const uintptr_t args[2])
{
    struct gort__g *g = prepare(m, fn, args, 2);
    if (!g)
        return -ENOMEM;
    gort__g_flag_on(g, GORT_G_COPY | GORT_G_CLEANUP);
    publish(m, g);
    return 0;
}

struct gort__g *gort__spawn_parked(struct gort__m *m, void (*fn)(void), uintptr_t arg,
                                   enum gort__reason reason)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *g = prepare(m, fn, &arg, 1);
    if (!g)
        return NULL;
    gort__store(&g->reason, (uint8_t)reason, RELAXED);
    gort__g_set(g, GORT_G_WAITING);
    if (GORT_LIKELY(m->p != NULL)) {
        count_in(m->p, g);
        return g;
    }
    g->id = gort__add(&s->ids, 1, RELAXED);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__store(&s->plain.spawned, s->plain.spawned + 1, RELAXED);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return g;
}

int gort_priv_go(void (*fn)(void), int nargs, uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3,
                 uintptr_t a4, uintptr_t a5)
{
    GORT_NEED("GORT_GO", "function", fn);
    struct gort__m *m = gort__enter();
    if (GORT_UNLIKELY(!m))
        return -ESRCH;
    uintptr_t args[6] = {a0, a1, a2, a3, a4, a5};
    int err = gort__spawn(m, NULL, fn, args, nargs);
    gort__leave(m);
    return err;
}

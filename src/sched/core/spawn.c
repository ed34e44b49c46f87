/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - starting goroutines: a record, its arguments, a place in the queue.
 *
 * Why: a started goroutine is 192 bytes and a queue entry; its stack comes when it first runs
 * (schedule.c), because the first touch of fresh memory costs more than everything else together.
 * Records go through each P's own list, the last used first, in batches of 64 between Ps:
 *
 *     P:       free (0..63)  spare (up to 32 full batches)  fresh (never used, adjacent)
 *     shared:  batches of 64, then new ones carved from the slab
 *
 * so neither a P that only starts nor one that only ends goroutines takes a lock each time, and a P that does
 * both gets its own warm records back. Fresh records are handed out by address, untouched, so that each line
 * is fetched just once. For each new record address space for a default stack is reserved: if gort_go
 * succeeds, the goroutine can run.
 * Threads: with a P by the M that holds it; without one (plain threads) under free_lock.
 */
#include <errno.h>

#include "base/fatal.h"
#include "sched/wait/scope.h"
#include "sched/verbs.h"

_Static_assert(GORT_G_BATCH % GORT_G_PREFETCH == 0, "p->freed goes on from batch to batch");

#define SPARE_MAX 32 /* 2048 records, 384 KiB a P */

#define BATCH      GORT_G_BATCH
#define batch_link gort__g_batch_link

/* Up to n new records; NULL: no memory. */
static struct gort__g *carve(size_t n, size_t *got)
{
    if (gort__stack_reserve(n))
        return NULL;
    struct gort__g *gs = gort__slab_carve(&gort__sched.gs, n, got);
    if (!gs)
        *got = 0;
    if (*got < n)
        gort__stack_unreserve(n - *got);
    return gs;
}

static void pop_locked(void)
{
    struct gort__sched *s = &gort__sched;
    s->free_batches = *batch_link(s->free_batches);
    if (--s->free_batches_n < s->free_batches_least)
        s->free_batches_least = s->free_batches_n;
}

void gort__g_batch_put_locked(struct gort__g *batch)
{
    struct gort__sched *s = &gort__sched;
    *batch_link(batch) = s->free_batches;
    s->free_batches = batch;
    s->free_batches_n++;
}

/* Takes a whole batch, if there is one, else up to as many of the loose ones; *n tells how many. */
static struct gort__g *shared_batch(uint32_t *n)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->free_lock, GORT_RANK_GFREE);
    struct gort__g *g = s->free_batches;
    *n = BATCH;
    if (g) {
        pop_locked();
    } else if (s->loose) { /* Ps that went out of use, or were flushed, left them: new ones would add up */
        struct gort__g *last = g = s->loose;
        for (*n = 1; *n < BATCH && last->link; ++*n)
            last = last->link;
        s->loose = last->link;
        last->link = NULL;
    }
    gort__lock_release(&s->free_lock, GORT_RANK_GFREE);
    return g;
}

/* Memory is short: what idle Ps keep for themselves is for everybody. */
void gort__g_collect(void)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    for (struct gort__p *p = gort__sched.idle_ps; p; p = p->link) {
        gort__g_cache_flush(p);
        gort__stack_cache_flush(&p->stacks);
    }
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

static struct gort__g *new_plain(void);

static GORT_NOINLINE struct gort__g *new_slow(struct gort__p *p)
{
    size_t got;
    uint32_t n;
    struct gort__g *g = shared_batch(&n);
    if (g) {
        p->free = g->link;
        p->free_n = n - 1;
        return g;
    }
    g = carve(BATCH, &got);
    if (g) {
        p->fresh = (char *)(g + 1);
        p->fresh_end = (char *)(g + got);
        return g;
    }
    gort__store(&gort__sched.scarce, true, RELAXED); /* from now on Ps keep little for themselves */
    gort__g_collect();
    return new_plain();
}

/* One record, without a P's lists. */
static GORT_NOINLINE struct gort__g *new_plain(void)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->free_lock, GORT_RANK_GFREE);
    if (!s->loose && s->free_batches) {
        s->loose = s->free_batches;
        pop_locked();
    }
    struct gort__g *g = s->loose;
    if (g)
        s->loose = g->link;
    gort__lock_release(&s->free_lock, GORT_RANK_GFREE);
    size_t got;
    return g ? g : carve(1, &got);
}

struct gort__g *gort__g_new(struct gort__p *p)
{
    if (GORT_UNLIKELY(!p))
        return new_plain();
    struct gort__g *g = p->free;
    if (GORT_LIKELY(g != NULL)) {
        p->free = g->link;
        p->free_n--;
        gort__g_prefetch_ahead(g); /* it may have ended on another P, or long ago */
        return g;
    }
    if (p->spare) {
        g = p->spare;
        p->spare = *batch_link(g);
        p->spare_n--;
        p->free = g->link;
        p->free_n = BATCH - 1;
        return g;
    }
    if (p->fresh < p->fresh_end) {
        g = (struct gort__g *)(void *)p->fresh;
        p->fresh += sizeof *g;
        return g;
    }
    return new_slow(p);
}

/* Gives all spare batches beyond `keep` to everybody. */
static GORT_NOINLINE void share(struct gort__p *p, uint32_t keep)
{
    gort__lock_take(&gort__sched.free_lock, GORT_RANK_GFREE);
    for (; p->spare_n > keep; p->spare_n--) {
        struct gort__g *batch = p->spare;
        p->spare = *batch_link(batch);
        gort__g_batch_put_locked(batch);
    }
    gort__lock_release(&gort__sched.free_lock, GORT_RANK_GFREE);
}

void gort__g_free(struct gort__p *p, struct gort__g *g)
{
    struct gort__g **ahead = &p->freed[p->free_n % GORT_G_PREFETCH];
    gort__g_set(g, GORT_G_IDLE);
    g->link = p->free;
    g->ctx.sp = *ahead; /* for gort__g_prefetch_ahead */
    *ahead = p->free = g;
    if (GORT_LIKELY(++p->free_n < BATCH))
        return;
    *batch_link(p->free) = p->spare;
    p->spare = p->free;
    p->free = NULL;
    p->free_n = 0;
    bool scarce = gort__load(&gort__sched.scarce, RELAXED);
    if (++p->spare_n > SPARE_MAX || scarce)
        share(p, scarce ? 0 : SPARE_MAX / 2);
}

void gort__g_cache_flush(struct gort__p *p)
{
    struct gort__sched *s = &gort__sched;
    share(p, 0);
    gort__lock_take(&s->free_lock, GORT_RANK_GFREE);
    while (p->free) {
        struct gort__g *g = p->free;
        p->free = g->link;
        g->link = s->loose;
        s->loose = g;
    }
    p->free_n = 0;
    gort__lock_release(&s->free_lock, GORT_RANK_GFREE);
}

uint64_t gort__g_count(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__p *p;
    uint64_t ended = 0, started = 0;
    /* Ends first: a goroutine that ends after its P was looked at was started before the second look. */
    for (int i = 0; i < GORT_MAXPROCS_MAX && (p = gort__load(&s->ps[i], ACQUIRE)) != NULL;
         i++)                                         /* pairs with p.c */
        ended += gort__load(&p->exited, ACQUIRE);     /* pairs with gmain.c */
    started = gort__load(&s->plain_spawned, ACQUIRE); /* pairs with publish_plain */
    for (int i = 0; i < GORT_MAXPROCS_MAX && (p = gort__load(&s->ps[i], ACQUIRE)) != NULL;
         i++)                                        /* pairs with p.c */
        started += gort__load(&p->spawned, ACQUIRE); /* pairs with publish */
    return started - ended;
}

static GORT_NOINLINE void more_ids(struct gort__p *p)
{
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
    gort__store(&s->plain_spawned, s->plain_spawned + 1, RELAXED);
    if (!m->nested)
        gort__queue_put_locked(g);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (m->nested) /* the function of a timer */
        gort__queue_put_woken((struct gort__glist){g, g, 1});
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__idle_wake();
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
        more_ids(p);
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
    gort__store(&s->plain_spawned, s->plain_spawned + 1, RELAXED);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return g;
}

/* A record that was taken but never started. */
void gort__g_discard(struct gort__p *p, struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    if (p) {
        gort__store(&g->state, GORT_G_DEAD, RELAXED); /* as if it had ended */
        gort__g_free(p, g);
        return;
    }
    gort__lock_take(&s->free_lock, GORT_RANK_GFREE);
    g->link = s->loose;
    s->loose = g;
    gort__lock_release(&s->free_lock, GORT_RANK_GFREE);
}

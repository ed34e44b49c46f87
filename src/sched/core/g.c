/* SPDX-License-Identifier: MIT */
/*
 * g.c - the records of goroutines: where they come from and where they go.
 *
 * Why: records go through each P's own list, the last used first, in batches of 64 between Ps:
 *
 *     P:       free (0..63)  spare (up to 32 full batches)  fresh (never used, adjacent)
 *     shared:  batches of 64, then new ones carved from the slab
 *
 * so neither a P that only starts nor one that only ends goroutines takes a lock each time, and a P that does
 * both gets its own warm records back. Fresh records are handed out by address, untouched, so that each line
 * is fetched just once. For each new record address space for a default stack is reserved: if gort_go
 * succeeds, the goroutine can run.
 * Threads: with a P by the M that holds it; without one (plain threads) under free_lock; `_locked` functions
 * with sched.free_lock held.
 */
#include "base/fatal.h"
#include "sched/core/core.h"

_Static_assert(GORT_G_BATCH % GORT_G_PREFETCH == 0, "p->freed goes on from batch to batch");

#define SPARE_MAX 32 /* 2048 records, 384 KiB a P */

#define BATCH      GORT_G_BATCH
#define batch_link gort__g_batch_link

static struct gort__g *new_plain(void);

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
    s->free.batches = *batch_link(s->free.batches);
    if (--s->free.batches_n < s->free.batches_least)
        s->free.batches_least = s->free.batches_n;
}

void gort__g_batch_put_locked(struct gort__g *batch)
{
    struct gort__sched *s = &gort__sched;
    *batch_link(batch) = s->free.batches;
    s->free.batches = batch;
    s->free.batches_n++;
}

/* Takes a whole batch, if there is one, else up to as many of the loose ones; *n tells how many. */
static struct gort__g *shared_batch(uint32_t *n)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->free.lock, GORT_RANK_GFREE);
    struct gort__g *g = s->free.batches;
    *n = BATCH;
    if (g) {
        pop_locked();
    } else if (s->free
                   .loose) { /* Ps that went out of use, or were flushed, left them: new ones would add up */
        struct gort__g *last = g = s->free.loose;
        for (*n = 1; *n < BATCH && last->link; ++*n)
            last = last->link;
        s->free.loose = last->link;
        last->link = NULL;
    }
    gort__lock_release(&s->free.lock, GORT_RANK_GFREE);
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
        p->fresh.at = (char *)(g + 1);
        p->fresh.end = (char *)(g + got);
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
    gort__lock_take(&s->free.lock, GORT_RANK_GFREE);
    if (!s->free.loose && s->free.batches) {
        s->free.loose = s->free.batches;
        pop_locked();
    }
    struct gort__g *g = s->free.loose;
    if (g)
        s->free.loose = g->link;
    gort__lock_release(&s->free.lock, GORT_RANK_GFREE);
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
    if (p->fresh.at < p->fresh.end) {
        g = (struct gort__g *)(void *)p->fresh.at;
        p->fresh.at += sizeof *g;
        return g;
    }
    return new_slow(p);
}

/* Gives all spare batches beyond `keep` to everybody. */
static GORT_NOINLINE void share(struct gort__p *p, uint32_t keep)
{
    gort__lock_take(&gort__sched.free.lock, GORT_RANK_GFREE);
    for (; p->spare_n > keep; p->spare_n--) {
        struct gort__g *batch = p->spare;
        p->spare = *batch_link(batch);
        gort__g_batch_put_locked(batch);
    }
    gort__lock_release(&gort__sched.free.lock, GORT_RANK_GFREE);
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
    gort__lock_take(&s->free.lock, GORT_RANK_GFREE);
    while (p->free) {
        struct gort__g *g = p->free;
        p->free = g->link;
        g->link = s->free.loose;
        s->free.loose = g;
    }
    p->free_n = 0;
    gort__lock_release(&s->free.lock, GORT_RANK_GFREE);
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
    started = gort__load(&s->plain.spawned, ACQUIRE); /* pairs with publish_plain */
    for (int i = 0; i < GORT_MAXPROCS_MAX && (p = gort__load(&s->ps[i], ACQUIRE)) != NULL;
         i++)                                        /* pairs with p.c */
        started += gort__load(&p->spawned, ACQUIRE); /* pairs with publish */
    return started - ended;
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
    gort__lock_take(&s->free.lock, GORT_RANK_GFREE);
    g->link = s->free.loose;
    s->free.loose = g;
    gort__lock_release(&s->free.lock, GORT_RANK_GFREE);
}

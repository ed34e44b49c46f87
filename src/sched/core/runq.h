/* SPDX-License-Identifier: MIT */
/* runq.h - the queue of runnable goroutines that each P owns: its layout and the owner's half, which is
 * inline because every switch goes through it. runq.c tells the whole story. */
#ifndef GORT_SRC_SCHED_RUNQ_H
#define GORT_SRC_SCHED_RUNQ_H

#include "base/atomic.h"
#include "sched/core/g.h"

struct gort__g;

#ifndef GORT_RUNQ_SIZE
#define GORT_RUNQ_SIZE 256 /* a power of two; the model checker uses 4 */
#endif

/* Goroutines linked through their `link`, first to last. */
struct gort__glist {
    struct gort__g *first, *last;
    uint32_t n;
};

struct gort__runq {
    uint32_t head GORT_ALIGNED_LINE; /* atomic; the owner and thieves advance it */
    uint32_t tail GORT_ALIGNED_LINE; /* atomic; only the owner advances it */
    struct gort__g *next;            /* atomic; the owner fills it, anybody may empty it */
    struct gort__g *ring[GORT_RUNQ_SIZE];
};

/* The slow half of put: the ring was full with head h. False: thieves made room meanwhile. */
bool gort__runq_put_slow(struct gort__runq *q, struct gort__g *g, uint32_t h, struct gort__glist *overflow);

/* Owner: appends g. When the ring is full, half of it and g come back in *overflow (else n is 0). */
static inline void gort__runq_put(struct gort__runq *q, struct gort__g *g, struct gort__glist *overflow)
{
    for (;;) {
        uint32_t h = gort__load(&q->head, ACQUIRE); /* pairs with the takers' advance of head */
        uint32_t t = gort__load(&q->tail, RELAXED);
        if (GORT_LIKELY(t - h < GORT_RUNQ_SIZE)) {
            gort__store(&q->ring[t % GORT_RUNQ_SIZE], g, RELAXED);
            gort__store(&q->tail, t + 1, RELEASE); /* pairs with gort__runq_steal */
            overflow->n = 0;
            return;
        }
        if (gort__runq_put_slow(q, g, h, overflow))
            return;
    }
}

/* Owner: g runs next; whoever was to run next is returned (NULL: nobody) and is not queued any more.
 * A full fence for what follows (idle.c). */
static inline struct gort__g *gort__runq_put_next(struct gort__runq *q, struct gort__g *g)
{
    return gort__xchg(&q->next, g, SEQ_CST); /* pairs with gort__runq_steal_next */
}

/* Owner: takes what was to run next. NULL: nothing. */
static inline struct gort__g *gort__runq_get_next(struct gort__runq *q)
{
    if (gort__load(&q->next, RELAXED) == NULL)
        return NULL;
    return gort__xchg(&q->next, NULL, ACQ_REL); /* pairs with put_next; a thief may have been first */
}

/* Owner: takes the oldest of the ring. NULL: nothing. */
static inline struct gort__g *gort__runq_get(struct gort__runq *q)
{
    for (;;) {
        uint32_t h = gort__load(&q->head, ACQUIRE); /* pairs with the thieves' advance of head */
        if (h == gort__load(&q->tail, RELAXED))
            return NULL;
        struct gort__g *g = gort__load(&q->ring[h % GORT_RUNQ_SIZE], RELAXED);
        if (gort__cas(&q->head, &h, h + 1, RELEASE)) /* pairs with the loads of head in steal */
            return g;
    }
}

/*
 * The same three for an owner who is alone (gort__sched_alone): there are no thieves, so loads and stores
 * do. Readers (empty, length) may still look.
 */
static inline struct gort__g *gort__runq_put_next_alone(struct gort__runq *q, struct gort__g *g)
{
    struct gort__g *old = gort__load(&q->next, RELAXED);
    gort__store(&q->next, g, RELEASE); /* pairs with gort__runq_empty */
    return old;
}

static inline struct gort__g *gort__runq_get_next_alone(struct gort__runq *q)
{
    struct gort__g *g = gort__load(&q->next, RELAXED);
    if (g)
        gort__store(&q->next, NULL, RELAXED);
    return g;
}

static inline struct gort__g *gort__runq_get_alone(struct gort__runq *q)
{
    uint32_t h = gort__load(&q->head, RELAXED);
    if (h == gort__load(&q->tail, RELAXED))
        return NULL;
    gort__store(&q->head, h + 1, RELEASE); /* pairs with the next owner's loads */
    return gort__load(&q->ring[h % GORT_RUNQ_SIZE], RELAXED);
}

/*
 * Owner, who has just taken one from the ring: asks for the memory of those that come later. In a long queue
 * nobody has looked at them for long, and memory answers after the time of some starts. The one RECORD
 * further by its record; the one STACK further, whose record has come by now, by what it touches first: its
 * stack, or its argument. The latter only alone: a thief may have it by now, and its record may be gone.
 */
enum { GORT_RUNQ_RECORD = 4, GORT_RUNQ_STACK = 1 };
static inline void gort__runq_look_ahead(const struct gort__runq *q, bool alone)
{
    uint32_t h = gort__load(&q->head, RELAXED);
    if (gort__load(&q->tail, RELAXED) - h <= GORT_RUNQ_RECORD)
        return;
    const char *later = (const char *)gort__load(&q->ring[(h + GORT_RUNQ_RECORD) % GORT_RUNQ_SIZE], RELAXED);
    __builtin_prefetch(later, 1);
    __builtin_prefetch(later + GORT_LINE, 1);
    if (alone) {
        const struct gort__g *next = gort__load(&q->ring[(h + GORT_RUNQ_STACK) % GORT_RUNQ_SIZE], RELAXED);
        __builtin_prefetch(next->ctx.pc ? next->ctx.sp : (const void *)next->arg[0], 1);
    }
}

/* Owner of q (its ring must have room for half a ring): takes half of the victim's ring, returns one
 * of them and queues the rest. NULL: the victim's ring was empty. */
struct gort__g *gort__runq_steal(struct gort__runq *q, struct gort__runq *victim);
/* Anybody: takes what the victim was to run next if it is still `seen`. */
bool gort__runq_steal_next(struct gort__runq *victim, struct gort__g *seen);
/* Anybody: true only if there was a moment when the queue held nothing. */
bool gort__runq_empty(const struct gort__runq *q);
/* Anybody: the same, but may miss one on its way from next into the ring. */
static inline bool gort__runq_seems_empty(const struct gort__runq *q)
{
    return gort__load(&q->head, RELAXED) == gort__load(&q->tail, RELAXED) &&
           gort__load(&q->next, RELAXED) == NULL;
}
/* Anybody: how many there are, roughly. */
uint32_t gort__runq_length(const struct gort__runq *q);

/* Appends g, which is in no queue. */
static inline void gort__runq_list_add(struct gort__glist *list, struct gort__g *g)
{
    g->link = NULL;
    if (list->last)
        list->last->link = g;
    else
        list->first = g;
    list->last = g;
    list->n++;
}

#endif

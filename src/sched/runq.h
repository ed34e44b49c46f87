/* SPDX-License-Identifier: MIT */
/* runq.h - the queue of runnable goroutines that each P owns; runq.c tells the whole story. */
#ifndef GORT_SRC_SCHED_RUNQ_H
#define GORT_SRC_SCHED_RUNQ_H

#include "base/atomic.h"

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

/* Owner: appends g. When the ring is full, half of it and g come back in *overflow (else n is 0). */
void gort__runq_put(struct gort__runq *q, struct gort__g *g, struct gort__glist *overflow);
/* Owner: g runs next; whoever was to run next is returned (NULL: nobody) and is not queued any more.
 * A full fence for what follows. */
struct gort__g *gort__runq_put_next(struct gort__runq *q, struct gort__g *g);
/* Owner: takes what was to run next; or the oldest of the ring. NULL: nothing. */
struct gort__g *gort__runq_get_next(struct gort__runq *q);
struct gort__g *gort__runq_get(struct gort__runq *q);
/* Owner of q (its ring must have room for half a ring): takes half of the victim's ring, returns one
 * of them and queues the rest. NULL: the victim's ring was empty. */
struct gort__g *gort__runq_steal(struct gort__runq *q, struct gort__runq *victim);
/* Anybody: takes what the victim was to run next if it is still `seen`. */
bool gort__runq_steal_next(struct gort__runq *victim, struct gort__g *seen);
/* Anybody: true only if there was a moment when the queue held nothing. */
bool gort__runq_empty(const struct gort__runq *q);
/* Anybody: how many there are, roughly. */
uint32_t gort__runq_length(const struct gort__runq *q);

#endif

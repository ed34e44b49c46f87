/* SPDX-License-Identifier: MIT */
/*
 * local.h - a P's own queues; see local.c.
 */
#ifndef GORT_SRC_SCHED_CORE_LOCAL_H
#define GORT_SRC_SCHED_CORE_LOCAL_H

#include "sched/core/sched.h"

/* Anybody: nothing is queued there; as gort__runq_empty and gort__runq_seems_empty. */
static inline bool gort__local_empty(const struct gort__p *p)
{
    return gort__runq_empty(&p->runq) && gort__runq_empty(&p->events);
}

static inline bool gort__local_seems_empty(const struct gort__p *p)
{
    return gort__runq_seems_empty(&p->runq) && gort__runq_seems_empty(&p->events);
}

static inline uint32_t gort__local_length(const struct gort__p *p)
{
    return gort__runq_length(&p->runq) + gort__runq_length(&p->events);
}

void gort__local_drain_locked(struct gort__p *p);           /* its goroutines go to the queue; by its owner */
void gort__local_put(struct gort__p *p, struct gort__g *g); /* tail of p's ring, overflow to the queue */
void gort__local_put_next(struct gort__p *p, struct gort__g *g);  /* runs next */
void gort__local_put_woken(struct gort__p *p, struct gort__g *g); /* by its owner: it was woken by an event */
bool gort__local_put_woken_fits(struct gort__p *p, uint32_t n);

#endif

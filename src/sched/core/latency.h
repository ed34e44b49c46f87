/* SPDX-License-Identifier: MIT */
/* latency.h - how long goroutines wait between runnable and running, of a few of them; see latency.c. */
#ifndef GORT_SRC_SCHED_CORE_LATENCY_H
#define GORT_SRC_SCHED_CORE_LATENCY_H

#include "sched/core/sched.h"

/* g becomes runnable; it has GORT_G_TRACKED, or the caller sets that. By whoever makes it so, before it is
 * queued. */
void gort__latency_begin(struct gort__g *g);
/* g, which the caller has taken from a queue and is about to run on p, has GORT_G_TRACKED: its wait is
 * over. */
void gort__latency_end(struct gort__p *p, struct gort__g *g);
/* A fair pick of p's M: the goroutine that stops for it may be one to follow. next NULL: it does not if it
 * yields. */
void gort__latency_fair(struct gort__p *p, const struct gort__g *next);
/* An M has looked for work and found g, which it runs now on p: ends its wait, and one of 8 is to be
 * followed. */
#define GORT_LATENCY_FOUND 8 /* a power of two */
void gort__latency_follow(struct gort__p *p, struct gort__g *g);
static inline void gort__latency_found(struct gort__p *p, struct gort__g *g)
{
    if (GORT_UNLIKELY(++p->counts.latency_found % GORT_LATENCY_FOUND == 0 || (g->flags & GORT_G_TRACKED)))
        gort__latency_follow(p, g);
}
/* A goroutine, or a plain thread, has waited so long for a mutex. */
void gort__latency_mutex(struct gort__m *m, int64_t ns);

#endif

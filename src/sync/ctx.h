/* SPDX-License-Identifier: MIT */
/* ctx.h - contexts, as waiter.c sees them. */
#ifndef GORT_SRC_SYNC_CTX_H
#define GORT_SRC_SYNC_CTX_H

#include "base/ref.h"
#include "sched/g.h"

struct gort_ctx;

/* One goroutine that waits under a context. On its stack. */
struct gort__ctx_waiter {
    struct gort_ctx *ctx;
    struct gort__ctx_waiter *next, *prev; /* guarded by the context's lock */
    struct gort__g *g;
    bool queued;
};

/* From the commit of a wait: tells the context whom to wake. 0, or the error when it is over already. */
int gort__ctx_wait_begin(struct gort__ctx_waiter *w, struct gort__g *g);
/* After the wait. */
void gort__ctx_wait_end(struct gort__ctx_waiter *w);
struct gort_ctx *gort__ctx_of(struct gort__ref *ref);
/* 0, or the error that a call which would wait returns at once. */
int gort__ctx_refuses(struct gort__ref *ctx);
/* Its deadline, or that of an ancestor if it is earlier. */
int64_t gort__ctx_deadline(struct gort__ref *ctx);

#endif

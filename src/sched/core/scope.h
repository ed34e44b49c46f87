/* SPDX-License-Identifier: MIT */
/*
 * scope.h - the part of a context that waiting needs: who waits under it, its error, its deadline.
 *
 * Contexts themselves (their tree, their channel) are a matter of the sync room; a goroutine only
 * knows the scope that it runs in, and waiting (wait.c) only registers with it.
 */
#ifndef GORT_SRC_SCHED_SCOPE_H
#define GORT_SRC_SCHED_SCOPE_H

#include "base/ref.h"
#include "mem/lock.h"
#include "sched/core/g.h"
#include "sched/core/runq.h"

/* One goroutine that waits in a scope. On its stack. */
struct gort__scope_waiter {
    struct gort__scope *scope;
    struct gort__scope_waiter *next, *prev; /* guarded by the scope's lock */
    struct gort__g *g;
    bool queued;
};

struct gort__scope {
    struct gort__ref ref;
    int err;                /* atomic; set once, under lock */
    struct gort__lock lock; /* rank GORT_RANK_CTX; guards the rest */
    struct gort__scope_waiter *waiters;
    uint64_t run;     /* which run they belong to: those of an ended one are gone */
    int64_t deadline; /* fixed */
};

/* From the commit of a wait: tells the scope whom to wake. 0, or the error when it is over already. */
int gort__scope_wait_begin(struct gort__scope_waiter *w, struct gort__g *g);
/* After the wait. */
void gort__scope_wait_end(struct gort__scope_waiter *w);
/* 0, or the error that a call which would wait returns at once; the deadline aside. */
int gort__scope_refuses(const struct gort__scope *scope);
/* Sets the error and adds those who wait, claimed, to *woken. */
void gort__scope_cancel(struct gort__scope *scope, int err, struct gort__glist *woken);

#endif

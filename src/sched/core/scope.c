/* SPDX-License-Identifier: MIT */
/*
 * scope.c - the part of a context that waiting needs.
 *
 * Why: cancelling must reach goroutines that wait right now, and cost nothing to those that are in
 * no scope. So a wait in one leaves a record with it, and cancelling claims (verbs.h) whoever it
 * finds there.
 * Invariants: (1) err is set once, and before anybody can see the consequences; (2) a record is in
 * the list only between the commit of its wait and the end of it.
 * Threads: any, inside.
 */
#include "sched/core/scope.h"

#include <errno.h>

#include "sched/core/core.h"

/* What a call returns when its scope has ended with err. */
static int seen_as(int err)
{
    return err == 0 || err == -ETIMEDOUT ? err : -ECANCELED;
}

int gort__scope_refuses(const struct gort__scope *scope)
{
    return seen_as(gort__load(&scope->err, ACQUIRE)); /* pairs with gort__scope_cancel */
}

/* Forgets those who waited when a run ended. Called with the lock held. */
static void forget_gone(struct gort__scope *scope)
{
    uint64_t run = gort__load(&gort__sched.run, RELAXED);
    if (scope->run != run) {
        scope->run = run;
        scope->waiters = NULL;
    }
}

void gort__scope_cancel(struct gort__scope *scope, int err, struct gort__glist *woken)
{
    gort__lock_take(&scope->lock, GORT_RANK_CTX);
    gort__store(&scope->err, err, RELEASE); /* pairs with gort__scope_refuses */
    forget_gone(scope);
    for (struct gort__scope_waiter *w = scope->waiters; w; w = w->next)
        if (gort__g_claim(w->g)) {
            w->g->wait_slot = (void *)(intptr_t)seen_as(err);
            gort__runq_list_add(woken, w->g);
        }
    gort__lock_release(&scope->lock, GORT_RANK_CTX);
}

int gort__scope_wait_begin(struct gort__scope_waiter *w, struct gort__g *g)
{
    struct gort__scope *scope = w->scope;
    w->g = g;
    gort__lock_take(&scope->lock, GORT_RANK_CTX);
    int err = gort__scope_refuses(scope);
    forget_gone(scope);
    if (!err) {
        w->next = scope->waiters;
        if (w->next)
            w->next->prev = w;
        w->prev = NULL;
        scope->waiters = w;
        w->queued = true;
    }
    gort__lock_release(&scope->lock, GORT_RANK_CTX);
    return err;
}

void gort__scope_wait_end(struct gort__scope_waiter *w)
{
    struct gort__scope *scope = w->scope;
    gort__lock_take(&scope->lock, GORT_RANK_CTX);
    if (w->queued) {
        if (w->prev)
            w->prev->next = w->next;
        else
            scope->waiters = w->next;
        if (w->next)
            w->next->prev = w->prev;
    }
    gort__lock_release(&scope->lock, GORT_RANK_CTX);
}

/* SPDX-License-Identifier: MIT */
/*
 * object.c - waiting in the queue of a small object: a lock word and a queue of waiters.
 *
 * Why: conditions, semaphores, barriers, once and rwmutexes wait alike.
 * Threads: any.
 */
#include "base/fatal.h"
#include "sync/object.h"

int gort__object_wait(struct gort__m **m, uint32_t *word, struct gort__waitq *q, struct gort__waiter *w,
                      int64_t deadline, enum gort__reason reason, bool no_cancel, const char *call)
{
    int err = gort__wait_refused(*m, deadline, no_cancel, call);
    if (err) {
        gort__object_unlock(word);
        return err;
    }
    struct gort__wait how = {word, gort__wait_lock_sync, gort__wait_unlock_sync, deadline, reason, no_cancel};
    w->g = (*m)->g;
    w->needs_claim = gort__wait_needs_claim(w->g, deadline, no_cancel);
    gort__waitq_push(q, w);
    return gort__wait(m, &how, q, w);
}

struct gort__waiter *gort__waitq_take_first(struct gort__waitq *q)
{
    struct gort__waiter *w = q->first;
    gort__waitq_remove(q, w);
    if (!w->needs_claim)
        return w;
    if (!gort__g_claim(w->g))
        return NULL;
    w->g->wait_slot = w;
    return w;
}

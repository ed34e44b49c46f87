/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting in the queue of an object: the half that all primitives share.
 *
 * Why: a wait without deadline and context is ended by a peer only, under the object's lock, and
 * costs nothing beyond the park. Otherwise several may want to end it: the peer, the timer, the
 * context, the end of the run (plain threads). They race for one word in the goroutine's record;
 * the winner readies it, the others go away. Whoever is woken by somebody else than a peer takes
 * its record out of the queue itself; a peer that meets the record before drops it.
 *
 * Order of events that makes it sound: timer and context are armed by the commit function, after
 * the goroutine is off its stack and before the object is unlocked. So nobody can end the wait
 * before it can be resumed, and nobody but the goroutine itself looks at the alarm afterwards:
 * it disarms both before it returns, which waits for a timer that is just firing.
 * Invariants: (1) g->wait_word is ARMED only between that commit and the end of the wait; (2) one
 * winner, one gort__ready; (3) after gort__wait no queue, timer or context knows the record.
 * Threads: any.
 */
#include "sched/wait/wait.h"

#include <errno.h>

#include "base/fatal.h"
#include "sched/core/core.h"
#include "sched/core/scope.h"
#include "sched/timers/timer.h"

void gort__waitq_push_front(struct gort__waitq *q, struct gort__waiter *w)
{
    if (gort__waitq_empty(q))
        q->run = gort__load(&gort__sched.run, RELAXED);
    w->prev = NULL;
    w->next = q->first;
    if (q->first)
        q->first->prev = w;
    else
        q->last = w;
    gort__waitq_set_first(q, w);
    w->queued = true;
}

/* --- alarms ----------------------------------------------------------------------------------- */

struct gort__alarm {
    const struct gort__wait *how;
    int64_t deadline; /* the earlier of the wait's and the context's */
    struct gort__scope_waiter scope;
    struct gort__timer timer;
};

static bool commit_arm(struct gort__g *g, void *arg)
{
    struct gort__alarm *a = arg;
    void *object = a->how->object;
    void (*unlock)(void *) = a->how->unlock;
    int err = 0;
    gort__store(&g->wait_word, GORT_CLAIM_ARMED, RELEASE); /* pairs with gort__g_claim */
    if (a->deadline != GORT_FOREVER)
        err = gort__timer_set(&a->timer, a->deadline, NULL, g);
    if (!err && a->scope.scope)
        err = gort__scope_wait_begin(&a->scope, g);
    bool waits = !err || !gort__g_claim(g);
    if (!waits)
        g->wait_slot = (void *)(intptr_t)err;
    unlock(object);
    return waits;
}

int gort__wait_shared_park(struct gort__m **m, const struct gort__wait *how)
{
    struct gort__g *g = (*m)->g;
    struct gort__alarm a = {.how = how, .deadline = how->deadline};
    if (!how->no_cancel && (g->flags & GORT_G_CONTEXT)) {
        a.scope.scope = g->scope;
        if (g->scope->deadline < how->deadline)
            a.deadline = g->scope->deadline;
    }
    g->wait_slot = NULL;
    *m = gort__park(commit_arm, &a, how->reason);
    /* A peer had the lock, so the commit was done with the alarm. Anybody else may have been faster than the
     * commit: having the lock now means that it is done. */
    intptr_t slot = (intptr_t)g->wait_slot;
    int err = slot < 0 && slot > -4096 ? (int)slot : 0;
    if (err)
        how->lock(how->object);
    if (a.deadline != GORT_FOREVER)
        gort__timer_del(&a.timer);
    if (a.scope.scope)
        gort__scope_wait_end(&a.scope);
    return err;
}

/* A wait that only its deadline ends. */
struct nap {
    int64_t deadline;
    int err; /* written only if there is no wait */
};

static bool commit_nap(struct gort__g *g, void *arg)
{
    struct nap *nap = arg;
    int err = gort__timer_ready_at(gort__m_self(), nap->deadline, g);
    if (err)
        nap->err = err;
    return !err; /* else g may run already: its stack is not to be touched */
}

/* The lock is private to the wait: it keeps the goroutine on its stack until the commit is done with it. In a
 * function of its own, so that a sleep needs little of its stack. */
static GORT_NOINLINE int wait_alone_shared(struct gort__m **m, int64_t deadline, enum gort__reason reason)
{
    struct gort__lock lock = {0};
    struct gort__wait how = {&lock, gort__wait_lock_sync, gort__wait_unlock_sync, deadline, reason, false};
    gort__wait_lock_sync(&lock);
    int err = gort__wait_shared_park(m, &how);
    gort__wait_unlock_sync(&lock);
    return err;
}

int gort__wait_alone(struct gort__m **m, int64_t deadline, enum gort__reason reason)
{
    struct nap nap = {deadline, -ETIMEDOUT};
    if (((*m)->g->flags & (GORT_G_THREAD | GORT_G_CONTEXT)) || deadline == GORT_FOREVER)
        return wait_alone_shared(m, deadline, reason);
    *m = gort__park(commit_nap, &nap, reason);
    return nap.err;
}

/* --- waiting ---------------------------------------------------------------------------------- */

int gort__wait_refused(const struct gort__m *m, int64_t deadline, bool no_cancel, const char *call)
{
    if (deadline == GORT_TRY)
        return -EAGAIN;
    if (!m && gort__m_self())
        return -ECANCELED; /* a plain thread, and the run that it used has ended */
    if (!m)
        gort__fatal("%s: the call would have to wait, but no run is on", call);
    if (deadline != GORT_FOREVER) {
        gort__wait_deadline_check(deadline, call);
        if (deadline <= gort__os_now())
            return -ETIMEDOUT;
    }
    if (!no_cancel && (m->g->flags & GORT_G_CONTEXT)) {
        if (GORT_UNLIKELY(!m->g->scope->ref.destroy))
            gort__fatal("%s: the context in use was freed: keep a reference while it is in use", call);
        return gort__scope_refuses(m->g->scope);
    }
    return 0;
}

static bool commit_unlock(struct gort__g *g, void *arg)
{
    const struct gort__wait *how = arg;
    (void)g;
    how->unlock(how->object);
    return true;
}

int gort__wait(struct gort__m **m, const struct gort__wait *how, struct gort__waitq *q,
               struct gort__waiter *w)
{
    if (GORT_LIKELY(!w->needs_claim)) {
        *m = gort__park(commit_unlock, (void *)(uintptr_t)how, how->reason);
        return w->result;
    }
    int err = gort__wait_shared_park(m, how);
    if (!err)
        return w->result;
    if (w->queued)
        gort__waitq_remove(q, w);
    how->unlock(how->object);
    return err;
}

void gort__wait_lock_sync(void *lock)
{
    gort__lock_take(lock, GORT_RANK_SYNC);
}

void gort__wait_unlock_sync(void *lock)
{
    gort__lock_release(lock, GORT_RANK_SYNC);
}

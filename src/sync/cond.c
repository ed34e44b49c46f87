/* SPDX-License-Identifier: MIT */
/*
 * cond.c - condition variables.
 *
 * Why: the waiter is in the queue before the mutex is unlocked, so no signal between the two is
 * lost; signals take waiters out in the order of their arrival, and there are no wake-ups without one.
 * Threads: any.
 */
#include <errno.h>

#include "base/fatal.h"
#include "sync/object.h"

#define INHERIT_AFTER GORT_SEC

/* What a wait must unlock once its goroutine is off its stack. */
struct both {
    gort_cond *cond;
    gort_mutex *mu;
};

static void lock_cond(void *arg)
{
    gort__object_lock(&((struct both *)arg)->cond->gort_priv_lock);
}

static void unlock_cond(void *arg)
{
    gort__object_unlock(&((struct both *)arg)->cond->gort_priv_lock);
}

/*
 * The wait ends with the mutex held, whatever ended it. Only between runs can a lock be refused: a plain
 * thread was sent away by the end of the run, and finds the mutex with another thread, which will unlock it;
 * or with a goroutine that went with the run and never will. After a second it must be that: the caller
 * inherits the mutex.
 */
static void lock_again(gort_mutex *mu)
{
    int64_t deadline = 0;
    while (gort_mutex_lock(mu) != 0) {
        int64_t now = gort__os_now();
        if (!deadline)
            deadline = now + INHERIT_AFTER;
        if (now > deadline) {
            gort__mutex_inherit(mu);
            return;
        }
        gort__os_nap(50000);
    }
}

static int wait_for_signal(gort_cond *cond, gort_mutex *mu, int64_t deadline, bool no_cancel)
{
    struct gort__waitq *q = gort__object_queue(&cond->gort_priv_waiters);
    struct gort__m *m = gort__enter();
    int err = gort__wait_refused(m, deadline, no_cancel, "gort_cond_wait");
    if (err) {
        if (m)
            gort__leave(m);
        return err;
    }
    struct both both = {cond, mu};
    struct gort__wait how = {&both, lock_cond, unlock_cond, deadline, GORT_WAIT_COND, no_cancel};
    struct gort__waiter w = {.g = m->g, .needs_claim = gort__wait_needs_claim(m->g, deadline, no_cancel)};
    gort__object_lock(&cond->gort_priv_lock);
    gort__waitq_push(q, &w);
    /* Signals wait for the cond's lock, so the mutex can go first: whoever takes it now finds us queued. */
    gort__mutex_unlock(m, mu);
    err = gort__wait(&m, &how, q, &w);
    gort__leave(m);
    lock_again(mu);
    return err;
}

int gort_cond_wait(gort_cond *cond, gort_mutex *mu)
{
    GORT_NEED("gort_cond_wait", "cond", cond);
    GORT_NEED("gort_cond_wait", "mutex", mu);
    return wait_for_signal(cond, mu, GORT_FOREVER, true);
}

int gort_cond_wait_until(gort_cond *cond, gort_mutex *mu, int64_t deadline)
{
    GORT_NEED("gort_cond_wait", "cond", cond);
    GORT_NEED("gort_cond_wait", "mutex", mu);
    return wait_for_signal(cond, mu, deadline, false);
}

void gort_cond_signal(gort_cond *cond)
{
    GORT_NEED("gort_cond_signal", "cond", cond);
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, gort__object_lock(&cond->gort_priv_lock),
                      gort__object_unlock(&cond->gort_priv_lock));
    struct gort__waiter *w = gort__waitq_take(gort__object_queue(&cond->gort_priv_waiters));
    if (w)
        w->result = 0;
    gort__object_unlock(&cond->gort_priv_lock);
    if (w)
        gort__ready(m, w->g);
    if (m)
        gort__leave(m);
}

void gort_cond_broadcast(gort_cond *cond)
{
    GORT_NEED("gort_cond_broadcast", "cond", cond);
    struct gort__glist woken = {0};
    struct gort__waiter *w;
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, gort__object_lock(&cond->gort_priv_lock),
                      gort__object_unlock(&cond->gort_priv_lock));
    while ((w = gort__waitq_take(gort__object_queue(&cond->gort_priv_waiters))) != NULL) {
        w->result = 0;
        gort__runq_list_add(&woken, w->g);
    }
    gort__object_unlock(&cond->gort_priv_lock);
    if (woken.n)
        gort__ready_list(m, woken);
    if (m)
        gort__leave(m);
}

/* SPDX-License-Identifier: MIT */
/*
 * once.c - doing something once.
 *
 * Why: the common case is a load of the state. The first caller runs the function outside of the
 * runtime; the others wait in the queue until it has returned. If it ends its goroutine by
 * gort_exit, an exit handler finishes in its place: whoever waits goes on, as after a return.
 * Invariants: (1) state goes from 0 to RUNNING to DONE; (2) the queue is empty unless RUNNING.
 * Threads: any.
 */
#include <errno.h>

#include "base/fatal.h"
#include "sync/object.h"

enum { NEW, RUNNING, DONE };

static void finish(void *arg)
{
    gort_once *once = arg;
    struct gort__glist woken = {0};
    struct gort__waiter *w;
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, gort__object_lock(&once->gort_priv_lock),
                      gort__object_unlock(&once->gort_priv_lock));
    gort__store(&once->gort_priv_state, DONE, RELEASE); /* pairs with gort_once_do */
    while ((w = gort__waitq_take(gort__object_queue(&once->gort_priv_waiters))) != NULL) {
        w->result = 0;
        gort__runq_list_add(&woken, w->g);
    }
    gort__object_unlock(&once->gort_priv_lock);
    if (woken.n)
        gort__ready_list(m, woken);
    if (m)
        gort__leave(m);
}

/* The first caller: runs fn outside. */
static void run(struct gort__m *m, gort_once *once, void (*fn)(void *), void *arg)
{
    bool guarded = m && gort__gmain_at_end(m->g, finish, once);
    gort__object_unlock(&once->gort_priv_lock);
    if (m)
        gort__leave(m);
    fn(arg);
    if (guarded) {
        m = gort__enter();
        if (m) { /* else a plain thread, and its handlers went with the run */
            gort__gmain_at_end_cancel(m->g, finish, once);
            gort__leave(m);
        }
    }
    finish(once);
}

static int do_once(gort_once *once, void (*fn)(void *), void *arg, int64_t deadline, bool no_cancel)
{
    if (GORT_LIKELY(gort__load(&once->gort_priv_state, ACQUIRE) == DONE)) /* pairs with finish */
        return 0;
    GORT_NEED("gort_once_do", "function", fn);
    struct gort__m *m = gort__enter();
    int err = 0;
    gort__object_lock(&once->gort_priv_lock);
    if (once->gort_priv_state == NEW) {
        gort__store(&once->gort_priv_state, RUNNING, RELAXED);
        run(m, once, fn, arg);
        return 0;
    }
    if (once->gort_priv_state == RUNNING) {
        struct gort__waiter w = {0};
        err = gort__object_wait(&m, &once->gort_priv_lock, gort__object_queue(&once->gort_priv_waiters), &w,
                                deadline, GORT_WAIT_ONCE, no_cancel, "gort_once_do");
    } else {
        gort__object_unlock(&once->gort_priv_lock);
    }
    if (m)
        gort__leave(m);
    return err;
}

int gort_once_do(gort_once *once, void (*fn)(void *), void *arg)
{
    GORT_NEED("gort_once_do", "once", once);
    return do_once(once, fn, arg, GORT_FOREVER, true);
}

int gort_once_do_until(gort_once *once, void (*fn)(void *), void *arg, int64_t deadline)
{
    GORT_NEED("gort_once_do", "once", once);
    return do_once(once, fn, arg, deadline, false);
}

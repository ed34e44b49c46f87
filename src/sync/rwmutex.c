/* SPDX-License-Identifier: MIT */
/*
 * rwmutex.c - many readers or one writer.
 *
 * Why: one queue for both kinds, in the order of arrival, served by direct grant: so neither kind
 * starves, and a timed wait either owns the lock or is out of the queue. When the head of the queue
 * is a reader, all readers behind it up to the next writer are let in at once.
 * Invariants: (1) holders: 0 free, n > 0 readers, -1 a writer; (2) whoever is at the head of the
 * queue could not be let in.
 * Threads: any.
 */
#include <errno.h>

#include <gort/sync.h>

#include "base/fatal.h"
#include "sync/object.h"

enum { READER, WRITER };

/* Lets in whoever can be now. Called with the lock held. */
static void let_in(gort_rwmutex *rw, struct gort__glist *woken)
{
    struct gort__waitq *q = gort__object_queue(&rw->gort_priv_waiters);
    while (!gort__waitq_empty(q)) {
        bool writer = q->first->tag == WRITER;
        if (writer ? rw->gort_priv_holders != 0 : rw->gort_priv_holders < 0)
            return;
        struct gort__waiter *w = gort__waitq_take_first(q);
        if (!w)
            continue; /* it gave up just now; look at the next */
        rw->gort_priv_holders = writer ? -1 : rw->gort_priv_holders + 1;
        w->result = 0;
        gort__runq_list_add(woken, w->g);
    }
}

static int take(gort_rwmutex *rw, uint16_t kind, int64_t deadline, bool no_cancel)
{
    struct gort__waitq *q = gort__object_queue(&rw->gort_priv_waiters);
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, gort__object_lock(&rw->gort_priv_lock), gort__object_unlock(&rw->gort_priv_lock));
    int err = 0;
    if (gort__waitq_empty(q) && (kind == WRITER ? rw->gort_priv_holders == 0 : rw->gort_priv_holders >= 0)) {
        rw->gort_priv_holders = kind == WRITER ? -1 : rw->gort_priv_holders + 1;
        gort__object_unlock(&rw->gort_priv_lock);
    } else {
        struct gort__waiter w = {.tag = kind};
        int64_t from = m && deadline != GORT_TRY ? gort__os_now() : 0;
        enum gort__reason reason = kind == WRITER ? GORT_WAIT_RWMUTEX_W : GORT_WAIT_RWMUTEX_R;
        err = gort__object_wait(&m, &rw->gort_priv_lock, q, &w, deadline, reason, no_cancel,
                                "gort_rwmutex_lock");
        if (m && from)
            gort__latency_mutex(m, gort__os_now() - from);
        if (err && kind == WRITER) { /* readers may have waited behind it only */
            struct gort__glist woken = {0};
            gort__object_lock(&rw->gort_priv_lock);
            let_in(rw, &woken);
            gort__object_unlock(&rw->gort_priv_lock);
            if (woken.n)
                gort__ready_list(m, woken);
        }
    }
    if (m)
        gort__leave(m);
    return err;
}

static void give_back(gort_rwmutex *rw, uint16_t kind)
{
    struct gort__glist woken = {0};
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, gort__object_lock(&rw->gort_priv_lock), gort__object_unlock(&rw->gort_priv_lock));
    if (kind == WRITER ? rw->gort_priv_holders != -1 : rw->gort_priv_holders <= 0)
        gort__fatal(kind == WRITER ? "gort_rwmutex_unlock: no writer holds the lock"
                                   : "gort_rwmutex_runlock: no reader holds the lock");
    rw->gort_priv_holders = kind == WRITER ? 0 : rw->gort_priv_holders - 1;
    let_in(rw, &woken);
    gort__object_unlock(&rw->gort_priv_lock);
    if (woken.n)
        gort__ready_list(m, woken);
    if (m)
        gort__leave(m);
}

int gort_rwmutex_rlock(gort_rwmutex *rw)
{
    GORT_NEED("gort_rwmutex_rlock", "rwmutex", rw);
    return take(rw, READER, GORT_FOREVER, true);
}

bool gort_rwmutex_tryrlock(gort_rwmutex *rw)
{
    GORT_NEED("gort_rwmutex_tryrlock", "rwmutex", rw);
    return take(rw, READER, GORT_TRY, true) == 0;
}

int gort_rwmutex_rlock_until(gort_rwmutex *rw, int64_t deadline)
{
    GORT_NEED("gort_rwmutex_rlock", "rwmutex", rw);
    return take(rw, READER, deadline, false);
}

void gort_rwmutex_runlock(gort_rwmutex *rw)
{
    GORT_NEED("gort_rwmutex_runlock", "rwmutex", rw);
    give_back(rw, READER);
}

int gort_rwmutex_lock(gort_rwmutex *rw)
{
    GORT_NEED("gort_rwmutex_lock", "rwmutex", rw);
    return take(rw, WRITER, GORT_FOREVER, true);
}

bool gort_rwmutex_trylock(gort_rwmutex *rw)
{
    GORT_NEED("gort_rwmutex_trylock", "rwmutex", rw);
    return take(rw, WRITER, GORT_TRY, true) == 0;
}

int gort_rwmutex_lock_until(gort_rwmutex *rw, int64_t deadline)
{
    GORT_NEED("gort_rwmutex_lock", "rwmutex", rw);
    return take(rw, WRITER, deadline, false);
}

void gort_rwmutex_unlock(gort_rwmutex *rw)
{
    GORT_NEED("gort_rwmutex_unlock", "rwmutex", rw);
    give_back(rw, WRITER);
}

/* SPDX-License-Identifier: MIT */
/*
 * wait.h - waiting in the queue of an object: the half that all primitives share.
 *
 * A goroutine (or plain thread) that has to wait puts a record on its own stack into the object's
 * queue, under the object's lock, and calls gort__wait. A peer takes the record out under the same
 * lock (gort__waitq_take), fills in the result, unlocks, and readies the goroutine: then it owns
 * what it was granted. A deadline or a cancelled context may end the wait too.
 */
#ifndef GORT_SRC_SCHED_WAIT_H
#define GORT_SRC_SCHED_WAIT_H

#include <gort/time.h>

#include "base/fatal.h"
#include "sched/verbs.h"

/* One that waits in one queue. Lives on the stack of the waiting goroutine. */
struct gort__waiter {
    struct gort__waiter *next, *prev; /* guarded by the object's lock, as all but g and value */
    struct gort__g *g;
    union {
        void *value;   /* a channel's element: where it is, or goes to; other objects use it as they like */
        int64_t until; /* mutex: when a peer has ended the wait; 0: none has */
    };
    int64_t since; /* other objects: when the wait began */
    int result;    /* what the peer granted; valid when gort__wait did not return an error of its own */
    uint16_t tag;  /* select: which case; rwmutex: reader or writer */
    bool queued;
    bool needs_claim; /* somebody else than peers of this queue may end the wait: claim before granting */
};

/* Zero-valid; guarded by the lock of the object around it. */
struct gort__waitq {
    struct gort__waiter *first; /* atomic for those who look without the lock */
    struct gort__waiter *last;
    /* Which run the waiters belong to: those of an ended one are gone, and so are their records. */
    uint64_t run;
};

/* How to wait on one object. */
struct gort__wait {
    void *object;
    void (*lock)(void *object);   /* taken again only after a deadline or a cancellation */
    void (*unlock)(void *object); /* its last touch: the object may be gone then */
    int64_t deadline;
    enum gort__reason reason;
    bool no_cancel; /* contexts do not end it: the plain forms of gort/sync.h */
};

static inline void gort__waitq_set_first(struct gort__waitq *q, struct gort__waiter *w)
{
    if (GORT_TSAN_EDGES) /* TSan looks at atomic accesses only then, and would miss the order of those that are not */
        q->first = w;
    else
        gort__store(&q->first, w, RELAXED);
}

/* Forgets waiters of a run that has ended. */
static inline bool gort__waitq_empty(struct gort__waitq *q)
{
    if (GORT_LIKELY(!q->first))
        return true;
    if (GORT_UNLIKELY(q->run != gort__load(&gort__sched.run, RELAXED))) {
        gort__waitq_set_first(q, NULL);
        q->last = NULL;
    }
    return !q->first;
}

static inline void gort__waitq_push(struct gort__waitq *q, struct gort__waiter *w)
{
    if (gort__waitq_empty(q))
        q->run = gort__load(&gort__sched.run, RELAXED);
    w->next = NULL;
    w->prev = q->last;
    if (q->last)
        q->last->next = w;
    else
        gort__waitq_set_first(q, w);
    q->last = w;
    w->queued = true;
}

static inline void gort__waitq_remove(struct gort__waitq *q, struct gort__waiter *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        gort__waitq_set_first(q, w->next);
    if (w->next)
        w->next->prev = w->prev;
    else
        q->last = w->prev;
    w->queued = false;
}

/* The first that still waits, taken out of the queue and claimed: the caller grants and readies it.
 * NULL: nobody. Records that something else has ended meanwhile are dropped on the way. */
static inline struct gort__waiter *gort__waitq_take(struct gort__waitq *q)
{
    for (;;) {
        struct gort__waiter *w = q->first;
        if (gort__waitq_empty(q))
            return NULL;
        gort__waitq_remove(q, w);
        if (GORT_LIKELY(!w->needs_claim)) {
            gort__g_edge(w->g);
            return w;
        }
        if (gort__g_claim(w->g)) {
            gort__g_edge(w->g);
            w->g->wait_slot = w;
            return w;
        }
    }
}

void gort__waitq_push_front(struct gort__waitq *q, struct gort__waiter *w);

/*
 * Waits. The object is locked and w (with its g) is in q. Returns with the object unlocked: w->result
 * when a peer granted; -ETIMEDOUT or -ECANCELED when not, and then w is in no queue and was granted
 * nothing. *m is updated.
 */
int gort__wait(struct gort__m **m, const struct gort__wait *how, struct gort__waitq *q,
               struct gort__waiter *w);

/* --- the pieces, for select ------------------------------------------------------------------- */

/* What may end a wait besides its peers. On the waiting goroutine's stack. */
struct gort__alarm;

/* Whether a wait of g can be ended by others, so that its records must be `shared`. */
static inline bool gort__wait_needs_claim(const struct gort__g *g, int64_t deadline, bool no_cancel)
{
    return deadline != GORT_FOREVER || (gort__load(&g->flags, RELAXED) & GORT_G_THREAD) ||
           (!no_cancel && (g->flags & GORT_G_CONTEXT));
}

/* Parks a shared wait; the object is unlocked once g is off its stack. Returns 0 when a peer ended it
 * (g->wait_slot is its record); else the error, and then the object is locked again. */
int gort__wait_shared_park(struct gort__m **m, const struct gort__wait *how);

/* Waits for nobody: until the deadline or the context ends it. The error. */
int gort__wait_alone(struct gort__m **m, int64_t deadline, enum gort__reason reason);

/* A deadline in the past is legal. One that lies long before the run is a duration by mistake, or -1 for "no
 * deadline", which debug builds refuse. */
static inline void gort__wait_deadline_check(int64_t deadline, const char *call)
{
    if (GORT_CHECKS && deadline != GORT_TRY && deadline < gort__sched.main.started_at - 60 * GORT_SEC)
        gort__fatal("%s: the deadline %ld lies more than a minute before the start of the run: is it a "
                    "duration? Use gort_in(ns) to make a deadline from it; GORT_FOREVER means no deadline",
                    call, (long)deadline);
}

/* -EAGAIN, -ETIMEDOUT, -ECANCELED or -EINVAL when a wait must not even begin; 0 when it may. */
int gort__wait_refused(const struct gort__m *m, int64_t deadline, bool no_cancel, const char *call);

/* The commonest lock. */
void gort__wait_lock_sync(void *lock);
void gort__wait_unlock_sync(void *lock);

#endif

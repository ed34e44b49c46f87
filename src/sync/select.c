/* SPDX-License-Identifier: MIT */
/*
 * select.c - waiting for one of several channel operations.
 *
 * How: one of the cases that look as if they could happen is drawn, and done if it still can: that takes one
 * lock. Otherwise lock all channels, in the order of their addresses so that two selects over the same ones
 * cannot wait for each other; try the cases in a random order; if none can happen, leave a record in each
 * queue and park. All records belong to one goroutine and are shared: the first peer to claim it (wait.c)
 * serves its case, the others drop what they find. Woken, the goroutine takes its other records out.
 * Up to 16 cases need no memory beyond the stack.
 * Invariants: (1) exactly one case happens; (2) no record is left in a queue after the return.
 * Threads: any; outside runs only what can happen at once.
 */
#include <errno.h>

#include <gort/select.h>

#include "base/fatal.h"
#include "mem/alloc.h"
#include "sync/chan.h"

#define ON_STACK 16

/* A select under way. */
struct sel {
    gort_case *cases;
    struct gort__waiter *waiters; /* one a case */
    uint16_t *order;              /* indexes of the cases with a channel, by its address */
    uint16_t *shuffled;           /* the same in a random order */
    uint32_t n;                   /* in order */
};

static gort_chan *chan_at(const struct sel *s, uint32_t i)
{
    return s->cases[s->order[i]].ch;
}

static void lock_all(void *arg)
{
    struct sel *s = arg;
    for (uint32_t i = 0; i < s->n; i++)
        if (i == 0 || chan_at(s, i) != chan_at(s, i - 1))
            gort__lock_take(&chan_at(s, i)->lock, GORT_RANK_CHAN);
}

/* From the last to the first; nothing of *s is looked at after the last unlock, because then its goroutine
 * may go on and leave the stack that it lies on. */
static void unlock_all(void *arg)
{
    struct sel *s = arg;
    for (uint32_t i = s->n; i-- > 0;) {
        gort_chan *ch = chan_at(s, i);
        bool last = i == 0, same = !last && chan_at(s, i - 1) == ch;
        if (!same)
            gort__fuzz_release(&ch->lock, GORT_RANK_CHAN);
        if (last)
            return;
    }
}

static bool try_case(gort_case *c, struct gort__waiter **wake)
{
    int result;
    bool done = c->op == GORT_SEND ? gort__chan_try_send(c->ch, c->send, &result, wake)
                                   : gort__chan_try_recv(c->ch, c->recv, &result, wake);
    if (done)
        c->result = result;
    return done;
}

/* Draws one of the cases that look as if they could happen, so that each is as likely, and does it. -1: none
 * does, or it has changed; then only a look at all of them at once tells. Checks the cases. */
static int try_one(struct sel *s, size_t n, const struct gort__m *m, struct gort__rand *r,
                   struct gort__waiter **wake)
{
    uint32_t maybe_ready = 0;
    for (size_t k = 0; k < n; k++) {
        const gort_case *c = &s->cases[k];
        if (c->op != GORT_RECV && c->op != GORT_SEND)
            gort__fatal("gort_select: case %zu has op %d, which is neither GORT_RECV nor GORT_SEND", k,
                        c->op);
        if (!c->ch)
            continue;
        gort__chan_check(c->ch, "gort_select");
        GORT_NEED("gort_select", "value to send", c->send || c->op == GORT_RECV || !c->ch->elem);
        if (gort__chan_maybe_ready(c->ch, c->op == GORT_SEND))
            s->order[maybe_ready++] = (uint16_t)k;
    }
    if (!maybe_ready)
        return -1;
    uint16_t k = s->order[maybe_ready > 1 ? gort__rand_below(r, maybe_ready) : 0];
    gort_chan *ch = s->cases[k].ch;
    gort__lock_take(&ch->lock, GORT_RANK_CHAN);
    bool done = !gort__enter_run_began(m) && try_case(&s->cases[k], wake);
    gort__lock_release(&ch->lock, GORT_RANK_CHAN);
    return done ? k : -1;
}

static void swap(uint16_t *a, uint16_t *b)
{
    uint16_t k = *a;
    *a = *b;
    *b = k;
}

/* Fills order: insertion sort, n is small; cases of one channel in a random order, because peers serve the
 * first of them that waits. */
static void sort_few(struct sel *s, size_t n, struct gort__rand *r)
{
    for (size_t k = 0; k < n; k++) {
        gort_chan *ch = s->cases[k].ch;
        if (!ch)
            continue;
        uint32_t i = s->n++, same = 0;
        for (; i > 0 && (uintptr_t)chan_at(s, i - 1) > (uintptr_t)ch; i--)
            s->order[i] = s->order[i - 1];
        s->order[i] = (uint16_t)k;
        while (same < i && chan_at(s, i - 1 - same) == ch)
            same++;
        if (same)
            swap(&s->order[i], &s->order[i - gort__rand_below(r, same + 1)]);
    }
}

/* The first n of order are a heap, the highest address on top, but for the one at `at`, which may be too
 * low. */
static void sift_down(struct sel *s, uint32_t at, uint32_t n)
{
    uint16_t k = s->order[at];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && (uintptr_t)chan_at(s, child + 1) > (uintptr_t)chan_at(s, child))
            child++;
        if ((uintptr_t)chan_at(s, child) <= (uintptr_t)s->cases[k].ch)
            break;
        s->order[at] = s->order[child];
    }
    s->order[at] = k;
}

/* The same for any number: what is shuffled first leaves equals in a random order, however they are
 * sorted. */
static void sort_many(struct sel *s, size_t n, struct gort__rand *r)
{
    for (size_t k = 0; k < n; k++)
        if (s->cases[k].ch) {
            uint32_t i = s->n++, other = gort__rand_below(r, s->n);
            s->order[i] = s->order[other];
            s->order[other] = (uint16_t)k;
        }
    for (uint32_t i = s->n / 2; i-- > 0;)
        sift_down(s, i, s->n);
    for (uint32_t i = s->n; i-- > 1;) {
        swap(&s->order[0], &s->order[i]);
        sift_down(s, 0, i);
    }
}

/* Does the first case that can happen in a random order, so each that can is as likely. -1: none. All
 * locked. */
static int try_all(struct sel *s, struct gort__rand *r, struct gort__waiter **wake)
{
    bool any = false;
    for (uint32_t k = 0; k < s->n; k++)
        any |= gort__chan_maybe_ready(chan_at(s, k), s->cases[s->order[k]].op == GORT_SEND);
    if (!any)
        return -1;
    for (uint32_t k = 0; k < s->n; k++)
        s->shuffled[k] = s->order[k];
    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t other = k + 1 < s->n ? k + gort__rand_below(r, s->n - k) : k;
        uint16_t i = s->shuffled[other];
        s->shuffled[other] = s->shuffled[k];
        if (try_case(&s->cases[i], wake))
            return i;
    }
    return -1;
}

static struct gort__waitq *queue_of(gort_case *c)
{
    return c->op == GORT_SEND ? &c->ch->senders : &c->ch->receivers;
}

/* Takes a record out that no peer has served. */
static void leave(gort_case *c, struct gort__waiter *w)
{
    gort_chan *ch = c->ch;
    gort__lock_take(&ch->lock, GORT_RANK_CHAN);
    if (w->queued)
        gort__waitq_remove(queue_of(c), w);
    bool last = gort__chan_let_go(ch);
    gort__lock_release(&ch->lock, GORT_RANK_CHAN);
    if (last) /* nobody else has it any more */
        gort__chan_free(ch);
}

static GORT_ALWAYS_INLINE bool commit_unlock_all(struct gort__g *g, void *s)
{
    gort__store(&g->wait_word, GORT_CLAIM_ARMED, RELEASE); /* pairs with gort__g_claim */
    unlock_all(s);
    return true;
}

/* Parks in all queues; returns the case that a peer served, or the error. Called with all locked. */
static GORT_ALWAYS_INLINE int wait_all(struct sel *s, int64_t deadline, struct gort__m **m)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint16_t k = s->order[i];
        gort_case *c = &s->cases[k];
        void *value = c->op == GORT_SEND ? (void *)(uintptr_t)c->send : c->recv;
        s->waiters[k] = (struct gort__waiter){.g = (*m)->g, .value = value, .tag = k, .needs_claim = true};
        gort__chan_pin(c->ch); /* the records must come out again, whoever frees it meanwhile */
        gort__waitq_push(queue_of(c), &s->waiters[k]);
    }
    int err = 0;
    if (GORT_LIKELY(
            !gort__wait_needs_claim((*m)->g, deadline, false))) { /* the peers have only each other to race */
        *m = gort__park_early(*m, commit_unlock_all, s, GORT_WAIT_SELECT);
    } else {
        struct gort__wait how = {s, lock_all, unlock_all, deadline, GORT_WAIT_SELECT, false};
        err = gort__wait_shared_park(m, &how);
    }
    const struct gort__waiter *won = err ? NULL : (*m)->g->wait_slot;
    if (err)
        unlock_all(s);
    /* The commit unlocks the lowest channel last. Its lock was the peer's, or is taken here first: after that
     * nobody but this goroutine looks at *s. */
    for (uint32_t i = 0; i < s->n; i++)
        if (&s->waiters[s->order[i]] != won) /* that one is out, and its channel may be gone */
            leave(&s->cases[s->order[i]], &s->waiters[s->order[i]]);
    if (err)
        return err;
    s->cases[won->tag].result = won->result;
    return won->tag;
}

/* *far: it has waited, and had better return by a jump. */
static GORT_ALWAYS_INLINE int run(struct sel *s, size_t n, int64_t deadline, bool *far)
{
    static struct gort__rand outside = {1}; /* outside runs fairness matters little, and races do no harm */
    struct gort__waiter *wake = NULL;
    struct gort__m *m = gort__enter();
    struct gort__rand *r = m ? &m->rand : &outside;
    int index = try_one(s, n, m, r, &wake);
    if (index < 0) {
        if (n <= ON_STACK)
            sort_few(s, n, r);
        else
            sort_many(s, n, r);
        lock_all(s);
        for (int tries = GORT_ENTER_TRIES; gort__enter_run_began(m) && tries > 0; tries--) {
            unlock_all(s);
            m = gort__enter();
            lock_all(s);
        }
        index = try_all(s, r, &wake);
        if (index >= 0)
            unlock_all(s);
    }
    if (index < 0) {
        int err = gort__wait_refused(m, deadline, false, "gort_select");
        if (err || !m) {
            unlock_all(s);
            index = err;
        } else if (s->n == 0) {
            index = gort__wait_alone(&m, deadline, GORT_WAIT_SELECT_NONE);
        } else {
            gort__ras_call_begins(m, __builtin_return_address(0));
            index = wait_all(s, deadline, &m);
            *far = !gort__ras_call_matches(m, __builtin_return_address(0));
        }
    } else if (wake) {
        gort__ready(m, wake->g);
    }
    if (m)
        gort__leave(m);
    return index;
}

/* More cases than fit the stack. */
static GORT_NOINLINE int run_large(gort_case *cases, size_t n, int64_t deadline)
{
    size_t size = n * (sizeof(struct gort__waiter) + 2 * sizeof(uint16_t));
    struct gort__m *light = gort__enter_light();
    char *mem = gort__alloc(size);
    gort__leave_light(&light);
    if (!mem)
        return -ENOMEM;
    uint16_t *order = (uint16_t *)(void *)(mem + n * sizeof(struct gort__waiter));
    struct sel s = {cases, (struct gort__waiter *)(void *)mem, order, order + n, 0};
    bool far;
    int index = run(&s, n, deadline, &far);
    light = gort__enter_light();
    gort__alloc_free(mem, size);
    gort__leave_light(&light);
    return index;
}

/* In a scope of its own, so that run_small can end by a jump. */
static GORT_ALWAYS_INLINE int run_on_stack(gort_case *cases, size_t n, int64_t deadline, bool *far)
{
    struct gort__waiter waiters[ON_STACK];
    uint16_t order[ON_STACK], shuffled[ON_STACK];
    struct sel s = {cases, waiters, order, shuffled, 0};
    return run(&s, n, deadline, far);
}

typedef int select_type(gort_case *, size_t, int64_t);
static GORT_NOINLINE int run_small(gort_case *cases, size_t n, int64_t deadline)
{
    bool far = false;
    int index = run_on_stack(cases, n, deadline, &far);
    if (!far)
        return index;
    GORT_ARCH_TAIL return GORT_ARCH_RET_INDIRECT_AS(select_type, index, n, deadline);
}

int gort_select(gort_case *cases, size_t n, int64_t deadline)
{
    GORT_NEED("gort_select", "cases", cases || !n);
    if (n > UINT16_MAX)
        return -EINVAL;
    if (n > ON_STACK)
        return run_large(cases, n, deadline);
    return run_small(cases, n, deadline);
}

/* --- GORT_SELECT ------------------------------------------------------------------------------ */

bool gort_priv_select_step(gort_priv_select *s)
{
    if (s->pass == 1) {
        s->index = gort_select(s->cases, (size_t)s->n, s->deadline);
        s->n = 0;
    }
    return ++s->pass <= 2;
}

bool gort_priv_select_add(gort_priv_select *s, gort_case c)
{
    if (s->n == GORT_PRIV_CASES)
        gort__fatal("GORT_SELECT: more than %d cases; use gort_select", GORT_PRIV_CASES);
    s->cases[s->n++] = c;
    return false;
}

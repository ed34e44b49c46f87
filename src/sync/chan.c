/* SPDX-License-Identifier: MIT */
/*
 * chan.c - channels.
 *
 * Why: one lock a channel, held for a copy and a few stores. A value goes straight from the
 * sender's memory to a receiver that waits (both stacks stay where they are), else through the
 * buffer. The lock is dropped before anybody is woken, and it is the last touch: the woken side may
 * free the channel while this one is still on its way out. (Lock-free queues were rejected: select
 * needs several channels to agree on one winner, and at one P the lock costs 5 ns.)
 *
 *     buffer: | . | . | oldest @head | ... | newest | . |      ring of cap elements, len in use
 *
 * Invariants: (1) receivers wait only while the buffer is empty and the channel is open; (2) senders wait
 * only while the buffer is full and the channel is open; (3) so not both wait, except for goroutines that
 * select on both ends and cannot serve themselves; (4) it is freed by the last reference, or by the last wait
 * that comes back to it (`parked`) if that is later, or by the end of the run if that wait never does.
 * tests/model/chan.c explores them, with select and deadlines.
 * Threads: any; also outside runs as long as nothing has to wait.
 */
#include "sync/chan.h"

#include <errno.h>
#include <string.h>

#include "base/fatal.h"
#include "mem/alloc.h"

#define WORD sizeof(uint64_t)

static size_t bytes(const gort_chan *ch)
{
    return sizeof *ch + ch->cap * ch->elem;
}

gort_chan *gort_chan_new(size_t elem, size_t cap)
{
    if (elem > GORT_CHAN_ELEM_MAX || (elem && cap > ((size_t)1 << 46) / elem))
        return NULL;
    GORT_ENTER_LIGHT();
    gort_chan *ch = gort__alloc(sizeof *ch + elem * cap);
    if (ch)
        *ch = (gort_chan){.refs = 1, .elem = (uint32_t)elem, .magic = GORT_CHAN_MAGIC, .cap = cap};
    return ch;
}

gort_chan *gort_chan_ref(gort_chan *ch)
{
    if (ch) {
        gort__chan_check(ch, "gort_chan_ref");
        gort__add(&ch->refs, 1, RELAXED);
    }
    return ch;
}

/* Channels without references, alive for the sake of waits that come back to them; if the run ends first,
 * none does. */
static struct {
    struct gort__lock lock; /* rank GORT_RANK_SYNC: taken inside that of a channel; guards the links */
    gort_chan *first;
} left;

static void free_left(void)
{
    gort__lock_take(&left.lock, GORT_RANK_SYNC);
    gort_chan *ch = left.first;
    left.first = NULL;
    gort__lock_release(&left.lock, GORT_RANK_SYNC);
    for (gort_chan *next; ch; ch = next) {
        next = ch->left_next;
        gort__lock_take(&ch->lock,
                        GORT_RANK_CHAN); /* whoever dropped the last reference may not have unlocked it yet */
        ch->left = false;
        gort__lock_release(&ch->lock, GORT_RANK_CHAN);
        gort__chan_free(ch);
    }
}

static GORT_COLD void leave_to_waits(gort_chan *ch)
{
    gort__lock_take(&left.lock, GORT_RANK_SYNC);
    gort__store(&gort__run_at_end, free_left, RELEASE); /* pairs with run.c:teardown */
    ch->left_next = left.first;
    ch->left_link = &left.first;
    if (left.first)
        left.first->left_link = &ch->left_next;
    left.first = ch;
    gort__lock_release(&left.lock, GORT_RANK_SYNC);
}

/* A wait did come back, and was the last. */
static GORT_COLD void take_from_left(gort_chan *ch)
{
    gort__lock_take(&left.lock, GORT_RANK_SYNC);
    *ch->left_link = ch->left_next;
    if (ch->left_next)
        ch->left_next->left_link = ch->left_link;
    gort__lock_release(&left.lock, GORT_RANK_SYNC);
}

void gort_chan_unref(gort_chan *ch)
{
    if (!ch)
        return;
    gort__chan_check(ch, "gort_chan_unref");
    uint32_t refs = gort__load(&ch->refs, ACQUIRE); /* pairs with the other unrefs: their uses come before */
    while (refs > 1)
        if (gort__cas(&ch->refs, &refs, refs - 1, RELEASE)) /* pairs with the last one */
            return;
    GORT_ENTER_LIGHT();
    /* The last one goes under the lock, so that it and a wait that ends agree on who frees the channel. */
    gort__lock_take(&ch->lock, GORT_RANK_CHAN);
    gort__sub(&ch->refs, 1, ACQ_REL); /* pairs with the other unrefs */
    bool free_now = !gort__chan_pinned(ch);
    ch->left = !free_now;
    if (!free_now)
        leave_to_waits(ch);
    gort__lock_release(&ch->lock, GORT_RANK_CHAN);
    if (free_now)
        gort__chan_free(ch);
}

void gort__chan_free(gort_chan *ch)
{
    if (GORT_UNLIKELY(ch->left))
        take_from_left(ch);
    size_t size = bytes(ch);
    gort__store(&ch->magic, 0, RELAXED);
    ch->elem = GORT_CHAN_DEAD;
    gort__alloc_free(ch, size);
}

/* --- one operation, under the lock ------------------------------------------------------------ */

static GORT_ALWAYS_INLINE void copy(void *to, const void *from, size_t n)
{
    if (GORT_LIKELY(n == WORD)) {
        /* With -flto compilers see the caller's object, and warn when it is smaller: they do not know that n
         * is not 8 then. */
        memcpy(gort__arch_opaque(to), gort__arch_opaque(from), WORD);
    } else if (n)
        memcpy(to, from, n);
}

static GORT_ALWAYS_INLINE void clear(void *to, size_t n)
{
    memset(gort__arch_opaque(to), 0, n); /* opaque as in copy */
}

static GORT_ALWAYS_INLINE char *slot(gort_chan *ch, size_t i, size_t size)
{
    i += ch->head;
    return ch->buffer + (i >= ch->cap ? i - ch->cap : i) * size;
}

static inline void set_len(gort_chan *ch, size_t len)
{
    gort__store(&ch->len, len, RELAXED);
}

static inline void advance(gort_chan *ch)
{
    ch->head = ch->head + 1 == ch->cap ? 0 : ch->head + 1;
}

/* The first that waits, claimed. It does not come back to the channel: if it was held for its sake, it is not
 * any more. */
static inline struct gort__waiter *take_waiter(gort_chan *ch, struct gort__waitq *q)
{
    struct gort__waiter *w = gort__waitq_take(q);
    if (w && GORT_UNLIKELY(w->needs_claim))
        ch->parked--;
    return w;
}

/* A queue is empty, or its first waiter can be served in a few instructions: no select, no deadline, and it
 * wants the value. */
static GORT_ALWAYS_INLINE bool simple(const struct gort__waitq *q)
{
    return !q->first || (GORT_LIKELY(q->run == gort__sched_run()) && GORT_LIKELY(!q->first->needs_claim) &&
                         GORT_LIKELY(q->first->value != NULL));
}

static GORT_ALWAYS_INLINE struct gort__waiter *next_waiter(gort_chan *ch, struct gort__waitq *q, bool word)
{
    struct gort__waiter *w = q->first;
    if (!w)
        return NULL;
    if (!word)
        return take_waiter(ch, q);
    gort__waitq_remove(q, w);
    gort__g_edge(w->g);
    return w;
}

/*
 * The two operations. `word` is a constant, so each is compiled twice: for anything, and for what is most
 * frequent: elements of a word, a value that is not NULL, and a simple queue of peers. The latter calls
 * nothing.
 */
static GORT_ALWAYS_INLINE bool try_send(gort_chan *ch, const void *value, bool word, int *result,
                                        struct gort__waiter **wake)
{
    size_t size = word ? WORD : ch->elem;
    *wake = NULL;
    if (GORT_UNLIKELY(ch->closed)) {
        *result = -EPIPE;
        return true;
    }
    struct gort__waiter *w = next_waiter(ch, &ch->receivers, word);
    if (w) {
        if (word || w->value)
            copy(w->value, value, size);
        w->result = 1;
        *wake = w;
    } else if (ch->len < ch->cap) {
        copy(slot(ch, ch->len, size), value, size);
        set_len(ch, ch->len + 1);
    } else {
        return false;
    }
    *result = 0;
    return true;
}

static GORT_ALWAYS_INLINE bool try_recv(gort_chan *ch, void *value, bool word, int *result,
                                        struct gort__waiter **wake)
{
    size_t size = word ? WORD : ch->elem;
    struct gort__waiter *w = NULL;
    *wake = NULL;
    *result = 1;
    if (ch->len) {
        if (word || value)
            copy(value, slot(ch, 0, size), size);
        advance(ch);
        w = next_waiter(ch, &ch->senders, word);
        if (GORT_UNLIKELY(w != NULL)) /* the buffer was full: the place that became free is the next newest */
            copy(slot(ch, ch->len - 1, size), w->value, size);
        else
            set_len(ch, ch->len - 1);
    } else if ((w = next_waiter(ch, &ch->senders, word)) != NULL) {
        if (word || value)
            copy(value, w->value, size);
    } else if (ch->closed) {
        if (word || value)
            clear(value, size);
        *result = 0;
    } else {
        return false;
    }
    if (w) {
        w->result = 0;
        *wake = w;
    }
    return true;
}

bool gort__chan_try_send(gort_chan *ch, const void *value, int *result, struct gort__waiter **wake)
{
    return try_send(ch, value, false, result, wake);
}

bool gort__chan_try_recv(gort_chan *ch, void *value, int *result, struct gort__waiter **wake)
{
    return try_recv(ch, value, false, result, wake);
}

/* --- the calls -------------------------------------------------------------------------------- */

static void lock(void *ch)
{
    gort__lock_take(&((gort_chan *)ch)->lock, GORT_RANK_CHAN);
}

static void unlock(void *ch)
{
    gort__fuzz_release(&((gort_chan *)ch)->lock, GORT_RANK_CHAN);
}

/* A wait with a deadline or under a context, or of a plain thread. Called with the lock held. The channel
 * stays alive for the sake of a wait that may end without a peer. */
static int wait_claimed(gort_chan *ch, void *value, int64_t deadline, bool sends, struct gort__m **m)
{
    struct gort__waitq *q = sends ? &ch->senders : &ch->receivers;
    int err = gort__wait_refused(*m, deadline, false, sends ? "gort_chan_send" : "gort_chan_recv");
    if (err || !*m) {
        unlock(ch);
        return err;
    }
    struct gort__waiter w = {.g = (*m)->g, .value = value, .needs_claim = true};
    struct gort__wait how = {ch,   lock, unlock, deadline, sends ? GORT_WAIT_CHAN_SEND : GORT_WAIT_CHAN_RECV,
                             false};
    gort__chan_pin(ch);
    gort__waitq_push(q, &w);
    err = gort__wait(m, &how, q, &w);
    if ((*m)->g->wait_slot == &w) /* a peer ended it */
        return err;
    lock(ch);
    bool last = gort__chan_let_go(ch);
    unlock(ch);
    if (last)
        gort__chan_free(ch);
    return err;
}

/* The same with the leave: a call that waits like this is nothing but a jump in the functions below, and
 * costs the others no register. */
static GORT_NOINLINE int wait_shared_and_leave(gort_chan *ch, void *value, int64_t deadline, bool sends,
                                               struct gort__m *m)
{
    int result = wait_claimed(ch, value, deadline, sends, &m);
    if (m)
        gort__leave(m);
    return result;
}

static GORT_ALWAYS_INLINE bool commit_unlock(struct gort__g *g, void *ch)
{
    (void)g;
    unlock(ch);
    return true;
}

/* Waits as long as it takes; in a scope of its own, so that wait_for_peer can end by a jump. */
static GORT_ALWAYS_INLINE int wait_in_queue(gort_chan *ch, void *value, struct gort__m **m, bool sends)
{
    struct gort__waiter w;
    w.g = (*m)->g;
    w.value = value;
    w.needs_claim = false;
    gort__waitq_push(sends ? &ch->senders : &ch->receivers, &w);
    *m = gort__park_early(*m, commit_unlock, ch, sends ? GORT_WAIT_CHAN_SEND : GORT_WAIT_CHAN_RECV);
    return w.result;
}

/* The operation has to wait. Called with the lock held; leaves. Only a peer ends a plain wait, and it does
 * not look at the channel afterwards. */
typedef int wait_type(gort_chan *, void *, struct gort__m *, bool);
static GORT_NOINLINE int wait_for_peer(gort_chan *ch, void *value, struct gort__m *m, bool sends)
{
    gort__ras_call_begins(m, __builtin_return_address(0));
    int result = wait_in_queue(ch, value, &m, sends);
    bool near = gort__ras_call_matches(m, __builtin_return_address(0));
    gort__leave(m);
    if (near)
        return result;
    GORT_ARCH_TAIL return GORT_ARCH_RET_INDIRECT_AS(wait_type, result, value, m, sends);
}

/* The operation is done: unlocks, wakes its peer if there is one, and leaves. */
static void complete(gort_chan *ch, struct gort__m *m, const struct gort__waiter *wake)
{
    unlock(ch);
    if (wake)
        gort__ready(m, wake->g);
    if (GORT_LIKELY(m != NULL))
        gort__leave(m);
}

/* The general way, for whatever comes. Called with the lock held. */
static GORT_NOINLINE int send_locked(gort_chan *ch, const void *value, int64_t deadline, struct gort__m *m)
{
    int result;
    struct gort__waiter *wake;
    gort__chan_check(ch, "gort_chan_send");
    if (!value) {
        GORT_NEED("gort_chan_send", "value", !ch->elem);
        value = ""; /* nothing of it is read */
    }
    if (!try_send(ch, value, false, &result, &wake)) {
        if (!m || gort__wait_needs_claim(m->g, deadline, false))
            return wait_shared_and_leave(ch, (void *)(uintptr_t)value, deadline, true, m);
        return wait_for_peer(ch, (void *)(uintptr_t)value, m, true);
    }
    complete(ch, m, wake);
    return result;
}

/* The same in the other direction. Called with the lock held. */
static GORT_NOINLINE int recv_locked(gort_chan *ch, void *value, int64_t deadline, struct gort__m *m)
{
    int result;
    struct gort__waiter *wake;
    gort__chan_check(ch, "gort_chan_recv");
    if (!try_recv(ch, value, false, &result, &wake)) {
        if (!m || gort__wait_needs_claim(m->g, deadline, false))
            return wait_shared_and_leave(ch, value, deadline, false, m);
        return wait_for_peer(ch, value, m, false);
    }
    complete(ch, m, wake);
    return result;
}

static GORT_NOINLINE int send_slowly(gort_chan *ch, const void *value, int64_t deadline)
{
    struct gort__m *m;
    gort__chan_check(ch, "gort_chan_send"); /* the lock of what is no channel may be anything */
    GORT_ENTER_LOCKED(m, lock(ch), unlock(ch));
    return send_locked(ch, value, deadline, m);
}

static GORT_NOINLINE int recv_slowly(gort_chan *ch, void *value, int64_t deadline)
{
    struct gort__m *m;
    gort__chan_check(ch, "gort_chan_recv");
    GORT_ENTER_LOCKED(m, lock(ch), unlock(ch));
    return recv_locked(ch, value, deadline, m);
}

/* --- what is most frequent: a word each, goroutines, no deadline ---------------------------------- */

/*
 * Nothing is called from here but by a jump at the end, so that no register has to be saved: of the 690
 * instructions of a round trip over two channels a fifth did nothing else. What is not so simple goes the
 * ways above.
 */
static GORT_COLD int leave_slowly(struct gort__m *m, int result)
{
    gort__hooks.life.leave_slow(m);
    return result;
}

static GORT_ALWAYS_INLINE int leave_with(struct gort__m *m, int result)
{
    if (GORT_UNLIKELY(gort__leave_looks(m)))
        return leave_slowly(m, result);
    return result;
}

static GORT_COLD int unlocked_and_leave(gort_chan *ch, struct gort__m *m, struct gort__g *wake, int result)
{
    gort__fuzz_release_slow(&ch->lock); /* its address is all that is used */
    if (wake)
        gort__ready(m, wake);
    return leave_with(m, result);
}

static GORT_NOINLINE int ready_and_leave(struct gort__m *m, struct gort__g *wake, int result)
{
    gort__ready(m, wake);
    return leave_with(m, result);
}

static GORT_ALWAYS_INLINE int unlock_and_leave(gort_chan *ch, struct gort__m *m, int result)
{
    if (GORT_UNLIKELY(gort__lock_release_look(&ch->lock, GORT_RANK_CHAN)))
        return unlocked_and_leave(ch, m, NULL, result);
    return leave_with(m, result);
}

/* w is out of its queue and has what it waited for. */
static GORT_ALWAYS_INLINE int unlock_wake_and_leave(gort_chan *ch, struct gort__m *m, struct gort__waiter *w,
                                                    int result)
{
    struct gort__g *g = w->g;
    if (GORT_UNLIKELY(gort__lock_release_look(&ch->lock, GORT_RANK_CHAN)))
        return unlocked_and_leave(ch, m, g, result);
    if (GORT_UNLIKELY(!gort__ready_at_once(m, g)))
        return ready_and_leave(m, g, result);
    return leave_with(m, result);
}

/* Inside, with the lock. NULL: that is not done in a few instructions; whoever enters again then may be
 * inside already. */
static GORT_ALWAYS_INLINE struct gort__m *enter_at_once(gort_chan *ch)
{
    struct gort__m *m = gort__enter_at_once();
    return GORT_LIKELY(m != NULL) && GORT_LIKELY(gort__lock_try(&ch->lock, GORT_RANK_CHAN)) ? m : NULL;
}

/* The operation is done; wake: the peer that it served, or NULL. */
static GORT_ALWAYS_INLINE int complete_at_once(gort_chan *ch, struct gort__m *m, struct gort__waiter *wake,
                                               int result)
{
    return wake ? unlock_wake_and_leave(ch, m, wake, result) : unlock_and_leave(ch, m, result);
}

int gort_chan_send_until(gort_chan *ch, const void *value, int64_t deadline)
{
    GORT_NEED("gort_chan_send", "channel", ch);
    struct gort__m *m = enter_at_once(ch);
    if (GORT_UNLIKELY(!m))
        return send_slowly(ch, value, deadline);
    int result;
    struct gort__waiter *wake;
    if (GORT_UNLIKELY(ch->elem != WORD || !value || !simple(&ch->receivers)))
        return send_locked(ch, value, deadline, m);
    if (try_send(ch, value, true, &result, &wake))
        return complete_at_once(ch, m, wake, result);
    if (GORT_UNLIKELY(gort__wait_needs_claim(m->g, deadline, false)))
        return send_locked(ch, value, deadline, m);
    return wait_for_peer(ch, (void *)(uintptr_t)value, m, true);
}

int gort_chan_send(gort_chan *ch, const void *value)
{
    return gort_chan_send_until(ch, value, GORT_FOREVER);
}

int gort_chan_recv_until(gort_chan *ch, void *value, int64_t deadline)
{
    GORT_NEED("gort_chan_recv", "channel", ch);
    struct gort__m *m = enter_at_once(ch);
    if (GORT_UNLIKELY(!m))
        return recv_slowly(ch, value, deadline);
    int result;
    struct gort__waiter *wake;
    if (GORT_UNLIKELY(ch->elem != WORD || !value || !simple(&ch->senders)))
        return recv_locked(ch, value, deadline, m);
    if (try_recv(ch, value, true, &result, &wake))
        return complete_at_once(ch, m, wake, result);
    if (GORT_UNLIKELY(gort__wait_needs_claim(m->g, deadline, false)))
        return recv_locked(ch, value, deadline, m);
    return wait_for_peer(ch, value, m, false);
}

int gort_chan_recv(gort_chan *ch, void *value)
{
    return gort_chan_recv_until(ch, value, GORT_FOREVER);
}

/* Takes everybody out of a queue, with the result of a closed channel, onto a list. */
static void empty(gort_chan *ch, struct gort__waitq *q, int result, struct gort__glist *woken)
{
    struct gort__waiter *w;
    while ((w = take_waiter(ch, q)) != NULL) {
        if (result == 0 && w->value)
            memset(w->value, 0, ch->elem);
        w->result = result;
        gort__runq_list_add(woken, w->g);
    }
}

/* Drops the lock. */
static int close_locked(gort_chan *ch, struct gort__glist *woken)
{
    int err = ch->closed ? -EPIPE : 0;
    gort__store(&ch->closed, true, RELAXED);
    empty(ch, &ch->receivers, 0, woken);
    empty(ch, &ch->senders, -EPIPE, woken);
    unlock(ch);
    return err;
}

int gort__chan_close(gort_chan *ch, struct gort__glist *woken)
{
    lock(ch);
    return close_locked(ch, woken);
}

int gort_chan_close(gort_chan *ch)
{
    struct gort__glist woken = {0};
    gort__chan_check(ch, "gort_chan_close");
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, lock(ch), unlock(ch));
    int err = close_locked(ch, &woken);
    if (woken.n)
        gort__ready_list(m, woken);
    if (m)
        gort__leave(m);
    return err;
}

size_t gort_chan_len(const gort_chan *ch)
{
    if (!ch)
        return 0;
    gort__chan_check(ch, "gort_chan_len");
    return gort__load(&ch->len, RELAXED);
}

size_t gort_chan_cap(const gort_chan *ch)
{
    if (!ch)
        return 0;
    gort__chan_check(ch, "gort_chan_cap");
    return ch->cap;
}

size_t gort_chan_elem(const gort_chan *ch)
{
    if (!ch)
        return 0;
    gort__chan_check(ch, "gort_chan_elem");
    return ch->elem;
}

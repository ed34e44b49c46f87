/* SPDX-License-Identifier: MIT */
/*
 * timer.c - something to do at a time: one 4-ary heap a P.
 *
 * Why: setting and taking back are the common operations, firing is rare: most deadlines are not reached. So
 * a timer goes to the heap of the P that sets it, whose lock nobody else wants; threads without a P use that
 * of P 0. Taking back only marks (lazy deletion): finding the entry in the middle would need back-pointers,
 * and sifting would then write to a cold timer at each step. For the same reason the owner of a movable one
 * just writes a later time where the heap can read it; the entry stays where it is and is put right when it
 * comes up. An earlier time is a new entry. Four children a node make the heap half as deep as two, and a
 * node's children share a line: the first entry lies SKEW places behind the start of a line, the next four
 * fill one.
 *
 *     struct gort__timer (a stack, an object)      node (slab)                      entry of the heap
 *         node, seq, run            ------------>  at, fn, arg, seq, state  <-----  when, what
 *                                                  a goroutine that sleeps  <-----  when, what + 1
 *
 * Lifetime. The heap knows nodes only, never the caller's struct, so that may be gone right after it was
 * taken back. A node belongs to one heap for ever: it goes from its free list to its entries and back, always
 * under its lock, and seq counts these uses. A timer remembers the seq of its own: a different one means that
 * it has fired and is over. Nodes stay mapped until the end of the run, and `run` tells when that was, so a
 * stale look is harmless.
 *
 *     FREE --set--> PENDING --time--> FIRING --fn returned--> FREE        (fn NULL: straight to FREE, under the lock)
 *                      '---del---> DEAD --comes up, or the heap is swept--> FREE
 *
 * An alarm (fn NULL) ends a wait: its goroutine is claimed under the heap's lock. That is sound because a
 * waiter takes its alarm back before its wait is over: PENDING means that the goroutine still waits, or was
 * claimed. A sleep that only the clock ends is never taken back, so it has no node: the entry names the
 * goroutine, and whoever takes the entry out, under the lock, is the one who readies it. When timers are
 * coalesced and fire together all memory is cold, and a line that need not be touched is worth more than any
 * instruction.
 *
 * Without memory for one more place in any heap a wait is refused, but a timer that was promised (it comes
 * again, or is set anew) must not be: its owner has a place for it (struct gort__timer_reserve), in a plain
 * list at the heap of P 0. Reserving room in a heap instead was rejected: which P sets it next is not known,
 * nor whether the run is still the same. Such a place is free before the function is called, so that this can
 * use it again, and not touched afterwards, because the owner may be gone then; who waits for the function
 * asks the heap whose it is.
 *
 * Ps that go out of use keep their heaps: whoever looks at all heaps looks at those of all Ps ever made. So
 * changing maxprocs moves no timer and can lose none.
 * Only the monotonic clock is asked (gort__os_now): setting the wall clock changes nothing, and time in
 * suspend does not count.
 *
 * Invariants: (1) entry[i].when <= entry[4i+1 .. 4i+4].when; (2) entry.when <= *node->at; (3) the first entry
 * is not dead and its time is right, so `first` wakes nobody for nothing; (4) at most a quarter of the
 * entries (and 64) are dead; (5) live is the number of PENDING nodes and of sleepers. In debug builds
 * sweeping checks (1).
 * Threads: set, del and fire by anybody inside, in parallel.
 */
#include "sched/timers/timer.h"

#include <errno.h>

#include "base/fatal.h"
#include "sched/core/core.h"
#include "sched/timers/timer.h"

#define ROOM_MIN   256 /* a page of entries */
#define SKEW       3   /* places before the first entry */
#define DEAD_MOST  64  /* so many dead entries are left alone */
#define BATCH      128 /* goroutines that are readied at a time */
#define NODES_MOST 64  /* taken from the slab at a time */
#define FIRE_MOST  512 /* fired at a time by who has work then */
#define BIG_PAGE   ((size_t)2 << 20)

enum { FREE, PENDING, FIRING, DEAD };

struct gort__timer_node {
    /* Where its time may be moved to later; NULL: it stays. Guarded by heap->lock, as all but seq and
     * heap. */
    const int64_t *at;
    void (*fn)(void *);
    union {
        void *arg;
        struct gort__timer_node *link; /* FREE: the next in heap->free */
    };
    uint64_t seq; /* atomic, written under lock */
    struct gort__heap *heap;
    uint32_t state;
};

static struct gort__slab nodes = {.object = sizeof(struct gort__timer_node)};
static uint32_t fired; /* counts the ends of gort__timer_fire; atomic */

static GORT_ALWAYS_INLINE void lock(struct gort__heap *h)
{
    gort__lock_take(&h->lock, GORT_RANK_TIMER);
}

static GORT_ALWAYS_INLINE void unlock(struct gort__heap *h)
{
    gort__lock_release(&h->lock, GORT_RANK_TIMER);
}

static int made(void)
{
    return gort__load(&gort__sched.p_made, ACQUIRE); /* pairs with p.c:make */
}

static struct gort__heap *heap_of(int i)
{
    return &gort__load(&gort__sched.ps[i], ACQUIRE)->timers; /* pairs with p.c:make */
}

/* What an entry stands for: a goroutine that sleeps, or a node. */
static bool is_sleeper(const struct gort__timer_entry *e)
{
    return (uintptr_t)e->what & 1;
}

static struct gort__g *sleeper_of(const struct gort__timer_entry *e)
{
    return (struct gort__g *)(void *)(e->what - 1);
}

static struct gort__timer_node *node_of(const struct gort__timer_entry *e)
{
    return (struct gort__timer_node *)(void *)e->what;
}

/* --- the heap; all with its lock held ---------------------------------------------------------- */

static void sift_up(struct gort__heap *h, uint32_t i, struct gort__timer_entry e)
{
    for (; i > 0 && h->entry[(i - 1) / 4].when > e.when; i = (i - 1) / 4)
        h->entry[i] = h->entry[(i - 1) / 4];
    h->entry[i] = e;
}

/* Which of the children from `first` on is due first; there is at least one. Which it is nobody can guess, so
 * no branch does. */
static uint32_t first_child(const struct gort__heap *h, uint32_t first)
{
    const struct gort__timer_entry *e = &h->entry[first];
    if (GORT_LIKELY(first + 4 <= h->n)) {
        uint32_t a = e[1].when < e[0].when, b = 2 + (e[3].when < e[2].when);
        int64_t wa = e[a].when, wb = e[b].when;
        return first + (wb < wa ? b : a);
    }
    uint32_t best = first;
    for (uint32_t c = first + 1; c < h->n; c++)
        if (h->entry[c].when < h->entry[best].when)
            best = c;
    return best;
}

static void sift_down(struct gort__heap *h, uint32_t i, struct gort__timer_entry e)
{
    for (;;) {
        uint32_t first = 4 * i + 1;
        if (first >= h->n)
            break;
        if (4 * first + 1 < h->n) /* one of these lines comes next, and the lower ones are in no cache */
            for (uint32_t c = 0; c < 4; c++)
                __builtin_prefetch(&h->entry[4 * (first + c) + 1]);
        uint32_t best = first_child(h, first);
        if (h->entry[best].when >= e.when)
            break;
        h->entry[i] = h->entry[best];
        i = best;
    }
    h->entry[i] = e;
}

/* There is a place for one more. */
static bool has_room(const struct gort__heap *h)
{
    return h->n + SKEW < h->room;
}

static bool resize(struct gort__heap *h, uint32_t room)
{
    size_t bytes = room * sizeof *h->entry;
    struct gort__timer_entry *entry = gort__os_vm_map(bytes, bytes < BIG_PAGE ? gort__os_page() : BIG_PAGE);
    if (!entry)
        return false;
    if (bytes >= BIG_PAGE)
        gort__os_vm_huge(entry, bytes);
    entry += SKEW;
    for (uint32_t i = 0; i < h->n; i++)
        entry[i] = h->entry[i];
    if (h->entry)
        gort__os_vm_unmap(h->entry - SKEW, h->room * sizeof *entry);
    h->entry = entry;
    h->room = room;
    return true;
}

/* Gives memory back when an eighth would do; half of what is left is free then, so it does not come at once
 * again. */
static void shrink(struct gort__heap *h)
{
    uint32_t room = h->room;
    while (room > ROOM_MIN && h->n < room / 8)
        room /= 4;
    room = room < ROOM_MIN ? ROOM_MIN : room;
    if (room < h->room)
        (void)resize(h, room); /* no memory: later */
}

static struct gort__timer_node *node_get(struct gort__heap *h)
{
    if (!h->free) {
        size_t got;
        struct gort__timer_node *fresh = gort__slab_carve(&nodes, NODES_MOST, &got);
        for (size_t i = 0; fresh && i < got; i++) {
            fresh[i].heap = h;
            fresh[i].link = h->free;
            h->free = &fresh[i];
        }
    }
    struct gort__timer_node *node = h->free;
    if (node)
        h->free = node->link;
    return node;
}

static void node_put(struct gort__heap *h, struct gort__timer_node *node)
{
    node->state = FREE;
    node->link = h->free;
    h->free = node;
    gort__store(&node->seq, node->seq + 1, RELEASE); /* pairs with take_back */
}

static bool is_dead(const struct gort__timer_entry *e)
{
    return !is_sleeper(e) && node_of(e)->state == DEAD;
}

/* When the timer of an entry that is not dead is due. The memory at `at` is its owner's, who takes it back
 * first. */
static int64_t due(const struct gort__timer_entry *e)
{
    const struct gort__timer_node *node = is_sleeper(e) ? NULL : node_of(e);
    return node && node->at ? gort__load(node->at, RELAXED) : e->when;
}

static void pop(struct gort__heap *h)
{
    struct gort__timer_entry last = h->entry[--h->n];
    if (h->n)
        sift_down(h, 0, last);
}

/* --- places of their own; all with the lock of P 0's heap held --------------------------------- */

static void oom_put(struct gort__heap *h, struct gort__timer_reserve *reserve)
{
    if (!h->oom_list || reserve->when < h->oom_first)
        h->oom_first = reserve->when;
    reserve->next = h->oom_list;
    reserve->link = &h->oom_list;
    if (reserve->next)
        reserve->next->link = &reserve->next;
    h->oom_list = reserve;
}

static void oom_remove(struct gort__heap *h, struct gort__timer_reserve *reserve)
{
    *reserve->link = reserve->next;
    if (reserve->next)
        reserve->next->link = reserve->link;
    reserve->link = NULL;
    h->oom_first = INT64_MAX;
    for (const struct gort__timer_reserve *o = h->oom_list; o; o = o->next)
        if (o->when < h->oom_first)
            h->oom_first = o->when;
}

/* Makes the first entry one that counts, and tells everybody when it is due. */
static void settle(struct gort__heap *h)
{
    while (h->n) {
        struct gort__timer_entry e = h->entry[0];
        if (is_dead(&e)) {
            pop(h);
            node_put(h, node_of(&e));
            h->dead--;
            continue;
        }
        int64_t when = due(&e);
        if (when <= e.when)
            break;
        sift_down(h, 0, (struct gort__timer_entry){when, e.what});
    }
    int64_t first = h->n ? h->entry[0].when : INT64_MAX;
    if (GORT_UNLIKELY(h->oom_list) && h->oom_first < first)
        first = h->oom_first;
    gort__store(&h->first, first, RELEASE); /* pairs with the second look of poller.c */
}

/* Drops all dead entries, puts the others right, and rebuilds. */
static GORT_NOINLINE void sweep(struct gort__heap *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        struct gort__timer_entry e = h->entry[i];
        if (is_dead(&e))
            node_put(h, node_of(&e));
        else
            h->entry[n++] = (struct gort__timer_entry){due(&e), e.what};
    }
    h->n = n;
    h->dead = 0;
    for (uint32_t i = n / 4 + 1; i-- > 0;)
        if (i < n)
            sift_down(h, i, h->entry[i]);
    for (uint32_t i = 1; GORT_CHECKS && i < n; i++)
        gort__check(h->entry[(i - 1) / 4].when <= h->entry[i].when);
    shrink(h);
}

/* --- setting and taking back ------------------------------------------------------------------- */

/* Room for one more in h, whose lock is held, and a node unless node is NULL. False: no memory. */
static GORT_NOINLINE bool make_place(struct gort__heap *h, struct gort__timer_node **node)
{
    for (;;) {
        bool room = has_room(h) || resize(h, h->room ? h->room * 2 : ROOM_MIN);
        if (GORT_LIKELY(room && (!node || (*node = node_get(h)) != NULL)))
            return true;
        if (!h->dead)
            return false;
        sweep(h); /* those that were taken back have both */
        settle(h);
    }
}

static GORT_ALWAYS_INLINE bool place(struct gort__heap *h, struct gort__timer_node **node)
{
    if (GORT_UNLIKELY(!has_room(h) || (node && !h->free)))
        return make_place(h, node);
    if (node) {
        *node = h->free;
        h->free = (*node)->link;
    }
    return true;
}

/* No memory for one more in a P's own heap: another one may have a place. It is locked then. NULL: none. */
static GORT_COLD struct gort__heap *place_elsewhere(const struct gort__heap *own,
                                                    struct gort__timer_node **node)
{
    for (int i = 0; i < made(); i++) {
        struct gort__heap *h = heap_of(i);
        if (h == own)
            continue;
        lock(h);
        if (place(h, node))
            return h;
        unlock(h);
    }
    return NULL;
}

/* A heap with a place for one more, locked; and a node unless node is NULL. NULL: no memory. */
static inline struct gort__heap *lock_place(struct gort__m *m, struct gort__timer_node **node)
{
    struct gort__p *p = m->p ? m->p
                             : gort__load(&gort__sched.ps[0],
                                          ACQUIRE); /* pairs with p.c; never goes out of use */
    struct gort__heap *h = &p->timers;
    lock(h);
    if (GORT_LIKELY(place(h, node)))
        return h;
    unlock(h);
    return place_elsewhere(h, node);
}

/* One more is pending. Unlocks, and tells whoever must know. */
static GORT_ALWAYS_INLINE void announce(struct gort__m *m, struct gort__heap *h, int64_t when)
{
    gort__store(&h->live, h->live + 1, RELEASE); /* pairs with gort__timer_count */
    bool first = when < gort__load(&h->first, RELAXED);
    if (first)
        gort__store(&h->first, when, RELEASE); /* pairs with the second look of poller.c */
    unlock(h);
    if (first)
        gort__hooks.threads.timer_first(m, when);
}

static GORT_ALWAYS_INLINE int set(struct gort__timer *t, int64_t when, const int64_t *at, void (*fn)(void *),
                                  void *arg)
{
    struct gort__m *m = gort__m_self();
    struct gort__timer_node *node;
    struct gort__heap *h = lock_place(m, &node);
    if (GORT_UNLIKELY(!h))
        return -ENOMEM;
    if (when < 1)
        when = 1; /* 0 stands for nobody in poller.c */
    node->at = at;
    node->fn = fn;
    node->arg = arg;
    node->state = PENDING;
    *t = (struct gort__timer){node, NULL, node->seq, gort__load(&gort__sched.run, RELAXED)};
    sift_up(h, h->n++, (struct gort__timer_entry){when, (char *)node});
    announce(m, h, when);
    return 0;
}

int gort__timer_ready_at(struct gort__m *m, int64_t when, struct gort__g *g)
{
    struct gort__heap *h = lock_place(m, NULL);
    if (GORT_UNLIKELY(!h))
        return -ENOMEM;
    when = when < 1 ? 1 : when;
    sift_up(h, h->n++, (struct gort__timer_entry){when, (char *)g + 1});
    announce(m, h, when); /* from its unlock on g may be anywhere */
    return 0;
}

int gort__timer_set(struct gort__timer *t, int64_t when, void (*fn)(void *), void *arg)
{
    return set(t, when, NULL, fn, arg);
}

void gort__timer_set_sure(struct gort__timer *t, struct gort__timer_reserve *reserve, int64_t when,
                          const int64_t *at, void (*fn)(void *), void *arg)
{
    if (GORT_LIKELY(!set(t, when, at, fn, arg)))
        return;
    struct gort__heap *h = heap_of(0);
    lock(h);
    *reserve = (struct gort__timer_reserve){
        .when = when < 1 ? 1 : when, .fn = fn, .arg = arg, .seq = reserve->seq + 1};
    *t = (struct gort__timer){NULL, reserve, reserve->seq, gort__load(&gort__sched.run, RELAXED)};
    oom_put(h, reserve);
    announce(gort__m_self(), h, reserve->when);
}

/* A pending timer's node is not wanted any more. Called with the lock held. */
static GORT_ALWAYS_INLINE void kill_locked(struct gort__heap *h, struct gort__timer_node *node)
{
    node->state = DEAD;
    h->dead++;
    gort__store(&h->live, h->live - 1, RELEASE); /* pairs with gort__timer_count */
    if (node_of(&h->entry[0]) == node) {
        settle(h);
        if (GORT_UNLIKELY(h->n < h->room / 8 && h->room > ROOM_MIN))
            shrink(h);
    } else if (GORT_UNLIKELY(h->dead > DEAD_MOST && h->dead > h->n / 4)) {
        sweep(h);
    }
}

/* The node of a timer that has not been over already, its heap locked; else NULL. */
static GORT_ALWAYS_INLINE struct gort__timer_node *lock_node(const struct gort__timer *t)
{
    struct gort__timer_node *node = t->node;
    if (!node || t->run != gort__load(&gort__sched.run, RELAXED))
        return NULL;
    if (gort__load(&node->seq, ACQUIRE) != t->seq) /* pairs with node_put */
        return NULL;
    lock(node->heap);
    if (node->seq == t->seq)
        return node;
    unlock(node->heap);
    return NULL;
}

/* True: it was pending. Else *busy is the node if its function runs right now. */
static GORT_ALWAYS_INLINE bool take_back(struct gort__timer *t, struct gort__timer_node **busy)
{
    struct gort__timer_node *node = lock_node(t);
    t->node = NULL;
    *busy = NULL;
    if (!node)
        return false;
    bool pending = node->state == PENDING;
    if (pending)
        kill_locked(node->heap, node);
    else
        *busy = node;
    unlock(node->heap);
    return pending;
}

/* The same for one in its own place. */
static GORT_COLD bool take_back_reserve(const struct gort__timer *t)
{
    struct gort__timer_reserve *reserve = t->reserve;
    struct gort__heap *h = heap_of(0);
    if (t->run != gort__load(&gort__sched.run, RELAXED))
        return false;
    lock(h);
    bool pending = reserve->seq == t->seq && reserve->link;
    if (pending) {
        oom_remove(h, reserve);
        gort__store(&h->live, h->live - 1, RELEASE); /* pairs with gort__timer_count */
        settle(h);
    }
    unlock(h);
    return pending;
}

static GORT_COLD bool reserve_runs(const struct gort__timer *t)
{
    struct gort__heap *h = heap_of(0);
    lock(h);
    bool runs = h->oom_busy == t->reserve && h->oom_seq == t->seq;
    unlock(h);
    return runs;
}

bool gort__timer_cancel(struct gort__timer *t)
{
    struct gort__timer_node *busy;
    if (GORT_LIKELY(!t->reserve))
        return take_back(t, &busy);
    bool pending = take_back_reserve(t);
    t->reserve = NULL;
    return pending;
}

/* The caller is inside, but perhaps only with gort__enter_light, and too late to keep the run and its timers
 * from ending: nobody fires them any more. */
static bool run_is_over(const struct gort__m *m)
{
    gort__os_fence_light(); /* pairs with run.c:send_away_plain and end_threads */
    uint32_t bits = gort__load(&m->attention, RELAXED);
    return (bits & GORT_ATT_NO_RUN) || ((bits & GORT_ATT_ENDED) && (m->g == &m->g0 || gort__m_self() != m));
}

void gort__timer_del(struct gort__timer *t)
{
    struct gort__timer_node *busy;
    struct gort__m *m = gort__m_home(), *entered = NULL; /* also in an announced call */
    if (!t->node && !t->reserve)
        return;
    if (!m ||
        !gort__load(&m->inside, RELAXED)) { /* an object is freed: keeps the run from ending meanwhile */
        entered = gort__enter();
        if (!entered)
            return; /* no run, no timers */
    } else if (run_is_over(m)) {
        return;
    }
    if (GORT_UNLIKELY(t->reserve) && !take_back_reserve(t))
        while (reserve_runs(t))
            gort__os_thread_yield();
    t->reserve = NULL;
    take_back(t, &busy);
    while (busy && gort__load(&busy->seq, ACQUIRE) == t->seq) /* pairs with node_put */
        gort__os_thread_yield();
    if (entered)
        gort__leave(entered);
}

/* --- firing ------------------------------------------------------------------------------------ */

/*
 * The first entry's time has come: out of the heap. Called with the lock held. while timers are coalesced
 * goroutines, their stacks and nodes have all left the caches since they were set, and waiting for that
 * memory is most of what firing costs. So what the next one needs is fetched meanwhile: it is one of the
 * first's children, nearly always.
 */
static struct gort__timer_entry take_first(struct gort__heap *h)
{
    struct gort__timer_entry first = h->entry[0];
    gort__store(&h->live, h->live - 1, RELEASE); /* pairs with gort__timer_count */
    if (is_sleeper(&first))
        __builtin_prefetch(first.what, 1);
    else
        for (uint32_t i = 1; i <= 4 && i < h->n; i++)
            __builtin_prefetch(h->entry[i].what, 1);
    pop(h);
    settle(h);
    if (h->n && !is_sleeper(&h->entry[0]) && !node_of(&h->entry[0])->fn) {
        const struct gort__g *g = node_of(&h->entry[0])->arg;
        __builtin_prefetch(&g->ctx, 1);
        __builtin_prefetch(&g->wait_word, 1);
    }
    return first;
}

/* Goroutines that sleep no more, in an array first: their records, which were asked for, come while others
 * are taken out. */
struct slept {
    struct gort__g *g[BATCH];
    uint32_t n;
};

/* To the list. What else they need when they run, which is soon, is asked for: the stack, and its record. */
static void add_slept(struct gort__glist *woken, struct slept *slept)
{
    for (uint32_t i = 0; i < slept->n; i++) {
        struct gort__g *g = slept->g[i];
        const char *sp = g->ctx.sp;
        __builtin_prefetch(sp, 1);
        __builtin_prefetch(sp + GORT_LINE, 1);
        __builtin_prefetch(sp + 2 * GORT_LINE, 1);
        __builtin_prefetch(sp + 3 * GORT_LINE, 1);
        __builtin_prefetch(g->stack, 1);
        gort__runq_list_add(woken, g);
    }
    slept->n = 0;
}

/* Calls a function. The lock is held before and after, not meanwhile. What it calls may be public, and
 * bracketed by enter and leave: afterwards this thread is inside again. */
static void call_locked(struct gort__heap *h, struct gort__m *m, void (*fn)(void *), void *arg)
{
    unlock(h);
    gort__store(&m->nested, true, RELAXED); /* a signal handler sees that it is inside all the time */
    fn(arg);
    gort__store(&m->inside, 1, RELAXED);
    gort__store(&m->nested, false, RELEASE); /* pairs with world.c:all_stopped */
    lock(h);
}

/* Fires those in their own places that are due. Called with the lock held. One thread does it at a time; what
 * comes due meanwhile, it sees. */
static GORT_COLD uint32_t fire_oom(struct gort__heap *h, struct gort__m *m, int64_t now)
{
    uint32_t n = 0;
    while (!h->oom_busy && h->oom_list && h->oom_first <= now) {
        struct gort__timer_reserve *reserve = h->oom_list;
        while (reserve->when > now)
            reserve = reserve->next;
        gort__hist_add(&h->late, now - reserve->when);
        h->oom_busy = reserve;
        h->oom_seq = reserve->seq;
        oom_remove(h, reserve);
        gort__store(&h->live, h->live - 1, RELEASE); /* pairs with gort__timer_count */
        settle(h);
        call_locked(h, m, reserve->fn, reserve->arg);
        h->oom_busy = NULL;
        n++;
    }
    return n;
}

/* Readies those whose time has come. A single one needs nobody else when this M, which looks for work, has no
 * other; and the few of a coalesced batch are soon over. */
static void ready(struct gort__m *m, struct gort__glist woken, bool coalesce)
{
    struct gort__p *p = m->p;
    if (!woken.n)
        return;
    if (p && ((woken.n == 1 && gort__local_empty(p)) || (coalesce && gort__wake_defer(p, woken.n))))
        gort__ready_events_no_wake(m, woken);
    else
        gort__ready_events(m, woken);
}

/* An alarm's time has come. False: somebody else has ended the wait. */
static bool claim(struct gort__g *g)
{
    if (!gort__g_claim(g))
        return false;
    g->wait_slot = (void *)(intptr_t)-ETIMEDOUT;
    return true;
}

/*
 * Whether m, which has fired n, should run some of those before it fires the rest: when 200,000 come at one
 * instant the first would start 100 ms late. None is lost or overtaken: the rest stays in the heap, in order,
 * with first in the past. m has work, so it picks, and looks at its timers every 61st time and before it
 * would sleep; so do other Ps that have nothing to do. One that has no P cannot run them and fires all.
 */
static bool enough(const struct gort__m *m, uint32_t n)
{
    return GORT_UNLIKELY(n >= FIRE_MOST) && m->p &&
           (!gort__local_empty(m->p) || gort__load(&gort__sched.global.n, RELAXED) ||
            gort__load(&gort__sched.events.n, RELAXED));
}

uint32_t gort__timer_fire(struct gort__heap *h, struct gort__m *m, int64_t now)
{
    uint32_t n = 0;
    struct gort__glist woken = {0};
    struct slept slept;
    bool called = false;
    slept.n = 0;
    gort__add(&h->firing, 1, ACQ_REL); /* pairs with gort__timer_count */
    lock(h);
    for (; h->n && h->entry[0].when <= now && !enough(m, n); n++) {
        struct gort__timer_entry e = take_first(h);
        struct gort__timer_node *node = node_of(&e);
        gort__hist_add(&h->late, now - e.when);
        if (is_sleeper(&e)) {
            slept.g[slept.n++] = sleeper_of(&e);
        } else if (node->fn) {
            node->state = FIRING;
            called = true; /* and may have woken others, who count on it that this M wakes one more */
            call_locked(h, m, node->fn, node->arg);
            node_put(h, node);
        } else {
            struct gort__g *g = node->arg;
            if (claim(g)) {
                gort__runq_list_add(&woken, g);
                __builtin_prefetch(g->ctx.sp, 1); /* it runs soon */
            }
            node_put(h, node);
        }
        if (woken.n + slept.n == BATCH) {
            add_slept(&woken, &slept);
            unlock(h);
            gort__ready_events(m, woken);
            woken = (struct gort__glist){0};
            lock(h);
        }
    }
    if (GORT_UNLIKELY(h->oom_list))
        n += fire_oom(h, m, now);
    if (GORT_UNLIKELY(h->n < h->room / 8 && h->room > ROOM_MIN))
        shrink(h);
    bool coalesce = h->live >= GORT_COALESCE_MANY && !called;
    unlock(h);
    add_slept(&woken, &slept);
    ready(m, woken, coalesce);
    gort__add(&fired, 1, RELEASE);     /* pairs with gort__timer_count; before firing goes down */
    gort__sub(&h->firing, 1, RELEASE); /* pairs with gort__timer_count */
    gort__os_fence_light();            /* pairs with world.c:gort__world_stop */
    if (gort__m_wanted(m))
        gort__hooks.life.attend(
            m); /* only now: nobody waits for a node that is firing, nor for a lock that fn takes */
    return n;
}

uint32_t gort__timer_run(struct gort__m *m, int64_t now)
{
    uint32_t n = 0;
    for (int i = 0; i < made(); i++)
        if (gort__load(&heap_of(i)->first, RELAXED) <= now)
            n += gort__timer_fire(heap_of(i), m, now);
    return n;
}

int64_t gort__timer_next(void)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < made(); i++) {
        int64_t first = gort__load(&heap_of(i)->first, RELAXED);
        if (first < next)
            next = first;
    }
    return next;
}

bool gort__timer_coalesces(void)
{
    for (int i = 0; i < made(); i++)
        if (gort__load(&heap_of(i)->live, RELAXED) >= GORT_COALESCE_MANY)
            return true;
    return false;
}

void gort__timer_watch(void)
{
    if (!gort__timer_run(gort__m_self(), gort__os_now()))
        return;
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__hooks.life.deadlock_locked(); /* they may have been what others did not want to give up for */
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

/*
 * Who fires is counted in `firing` before a timer leaves `live` and until its goroutine is in a queue, or
 * until it is set again: perhaps in a heap that was looked at before. Then `fired` has changed meanwhile.
 */
uint32_t gort__timer_count(void)
{
    for (;;) {
        uint32_t n = 0, before = gort__load(&fired, ACQUIRE); /* pairs with gort__timer_fire */
        for (int i = 0; i < made(); i++)
            n += gort__load(&heap_of(i)->live, ACQUIRE); /* pairs with take_first */
        for (int i = 0; i < made(); i++)
            n += gort__load(&heap_of(i)->firing, ACQUIRE); /* pairs with gort__timer_fire */
        if (n || gort__load(&fired, ACQUIRE) == before)    /* pairs with gort__timer_fire */
            return n;
    }
}

/* --- runs -------------------------------------------------------------------------------------- */

void gort__timer_heap_init(struct gort__heap *h)
{
    h->first = INT64_MAX;
}

void gort__timer_forget(void)
{
    for (int i = 0; i < made(); i++) {
        struct gort__heap *h = heap_of(i);
        if (h->entry)
            gort__os_vm_unmap(h->entry - SKEW, h->room * sizeof *h->entry);
        *h = (struct gort__heap){.first = INT64_MAX};
    }
    gort__slab_destroy(&nodes, NULL);
}

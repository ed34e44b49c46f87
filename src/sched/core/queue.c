/* SPDX-License-Identifier: MIT */
/*
 * queue.c - the global run queue, and putting goroutines into a P's own.
 *
 * Why: what does not fit a P's ring, what plain threads start, and what loses its P waits in one
 * list under the scheduler's lock. The list is made of segments, mostly the halves of rings that
 * overflowed, and a taker takes a whole segment: one link under the lock instead of 128 cache
 * misses. It prefers one that its own P put there, whose records are still in its cache: two Ps
 * that both start many goroutines otherwise run each other's, at a cost of some 100 ns each.
 *
 *     first -> G (n = 129, of P 0) -> next: G (n = 3) -> next: G (n = 129, of P 1) <- last
 *              | link                       | link             | link
 *              G ... G                      G ... G            G ... G <- queue_end
 *
 * Fairness: every 61st pick takes the very first goroutine (schedule.c), and a segment that has been first is
 * passed over some times at most: its P's thread may have no CPU for long, and one in 61 would leave the last
 * of it waiting for 100 ms beside a P that is never out of work.
 * Invariants: (1) sched.global.n is the number of Gs in all segments; (2) everything in it is runnable;
 * (3) no segment is empty or holds more than half a ring and one; (4) queue_end is the last G of the last
 * segment, or NULL: that is not known, and the next one to come starts a segment.
 * Threads: any; `_locked` functions with sched.lock held.
 */
#include "base/fatal.h"
#include "sched/core/core.h"

/* What one overflow of a ring makes, and what a taker has room for. */
#define SEGMENT_MAX (GORT_RUNQ_SIZE / 2 + 1)

static void set_count(uint32_t n)
{
    gort__sched.global.list.n = n;
    gort__store(&gort__sched.global.n, n, RELEASE); /* pairs with the looks at queued in find.c */
}

/* Appends a segment. */
static void append_locked(struct gort__glist list, int origin)
{
    struct gort__sched *s = &gort__sched;
    list.first->segment = (struct gort__segment){NULL, list.n, origin};
    if (s->global.list.last)
        s->global.list.last->segment.next = list.first;
    else
        s->global.list.first = list.first;
    s->global.list.last = list.first;
    s->global.end = list.last;
    set_count(s->global.list.n + list.n);
}

void gort__queue_put_locked(struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    struct gort__segment *tail = s->global.end ? &s->global.list.last->segment : NULL;
    g->link = NULL;
    if (tail && tail->origin == -1 && tail->n < SEGMENT_MAX) {
        s->global.end->link = g;
        s->global.end = g;
        tail->n++;
        set_count(s->global.list.n + 1);
        return;
    }
    append_locked((struct gort__glist){g, g, 1}, -1);
}

void gort__queue_put(struct gort__g *g)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__queue_put_locked(g);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

void gort__queue_put_and_wake(struct gort__g *g)
{
    gort__queue_put(g);
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__wake_idle();
}

/* Where a taker begins: the link to one of its own segments among the first few, else to the first. */
static struct gort__g **choose_locked(int id, struct gort__g **before)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g **at = &s->global.list.first, *prev = NULL;
    *before = NULL;
    for (int i = 0; i < GORT_QUEUE_LOOK_FOR_OWN && *at && s->global.passed < GORT_QUEUE_PASS_MOST; i++) {
        if ((*at)->segment.origin == id) {
            *before = prev;
            s->global.passed = prev ? s->global.passed + 1 : 0;
            return at;
        }
        prev = *at;
        at = &prev->segment.next;
    }
    s->global.passed = 0;
    return &s->global.list.first;
}

/* Cuts the first Gs off the segment at *at, as many as wanted or as there are, and tells how many. */
static uint32_t cut_locked(struct gort__g **at, struct gort__g *before, uint32_t n)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *first = *at, *rest = first;
    struct gort__segment segment = first->segment;
    if (n < segment.n) { /* the rest becomes the segment */
        for (uint32_t i = 0; i < n; i++)
            rest = rest->link;
        rest->segment = segment;
        rest->segment.n -= n;
        *at = rest;
        if (s->global.list.last == first)
            s->global.list.last = rest;
    } else {
        n = segment.n;
        *at = segment.next;
        if (s->global.list.last == first) {
            s->global.list.last = before;
            s->global.end = NULL;
        }
    }
    set_count(s->global.list.n - n);
    return n;
}

struct gort__g *gort__queue_take(struct gort__p *p, uint32_t most)
{
    struct gort__sched *s = &gort__sched;
    struct gort__glist ignored;
    struct gort__g *first = NULL, *before = NULL;
    uint32_t n = 0;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (s->global.list.first) {
        struct gort__g **at = most == 1 ? &s->global.list.first : choose_locked(p->id, &before);
        n = s->global.list.n / (uint32_t)s->procs + 1; /* a fair share */
        first = *at;
        n = cut_locked(at, before, n < most ? n : most);
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    /* The ring has room: the caller's is empty, or it took one. */
    struct gort__g *g = n > 1 ? first->link : NULL;
    for (uint32_t left = n; left > 1; left--) {
        struct gort__g *next = g->link;
        if (!g->ctx.pc)
            gort__g_prefetch_ahead(g);
        gort__runq_put(&p->runq, g, &ignored);
        gort__check(ignored.n == 0);
        g = next;
    }
    if (n > 1) {
        gort__fence(SEQ_CST); /* pairs with idle.c: for a moment they were in no queue */
        gort__wake_idle();
    }
    return first;
}

static void set_woken(uint32_t n)
{
    gort__sched.events.list.n = n;
    gort__store(&gort__sched.events.n, n, RELEASE); /* pairs with the looks at woken_n in find.c and turn.c */
}

static void append_woken_locked(struct gort__glist list)
{
    struct gort__sched *s = &gort__sched;
    list.last->link = NULL;
    if (s->events.list.n)
        s->events.list.last->link = list.first;
    else
        s->events.list.first = list.first;
    s->events.list.last = list.last;
    set_woken(s->events.list.n + list.n);
}

void gort__queue_put_woken_locked(struct gort__g *g)
{
    append_woken_locked((struct gort__glist){g, g, 1});
}

void gort__queue_put_woken(struct gort__glist list)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    append_woken_locked(list);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

struct gort__g *gort__queue_take_woken(struct gort__p *p)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *first = NULL;
    uint32_t n = 0;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (s->events.list.n) {
        n = s->events.list.n / (uint32_t)s->procs + 1; /* a fair share */
        n = n < s->events.list.n ? n : s->events.list.n;
        n = n < SEGMENT_MAX ? n : SEGMENT_MAX;
        first = s->events.list.first;
        struct gort__g *last = first;
        for (uint32_t i = 1; i < n; i++)
            last = last->link;
        s->events.list.first = last->link;
        set_woken(s->events.list.n - n);
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    struct gort__g *g = n > 1 ? first->link : NULL;
    for (uint32_t left = n; left > 1; left--) {
        struct gort__g *next = g->link;
        gort__local_put_woken(p, g);
        g = next;
    }
    if (n > 1) {
        gort__fence(SEQ_CST); /* pairs with idle.c: for a moment they were in no queue */
        gort__wake_idle();
    }
    return first;
}

/* Those that an event has woken, as ordinary ones: of all of them one is looked for. */
static void woken_to_queue_locked(void)
{
    struct gort__g *next;
    for (struct gort__g *g = gort__sched.events.list.first; gort__sched.events.list.n; g = next) {
        next = g->link;
        set_woken(gort__sched.events.list.n - 1);
        gort__queue_put_locked(g);
    }
}

struct gort__g *gort__queue_take_bound_locked(void)
{
    woken_to_queue_locked();
    struct gort__g **at = &gort__sched.global.list.first, *before = NULL;
    for (; *at; before = *at, at = &before->segment.next) {
        struct gort__g *first = *at, *prev = first;
        if (gort__load(&first->flags, RELAXED) & GORT_G_BOUND) {
            cut_locked(at, before, 1);
            return first;
        }
        for (uint32_t i = 1; i < first->segment.n; i++, prev = prev->link) {
            struct gort__g *g = prev->link;
            if (!(gort__load(&g->flags, RELAXED) & GORT_G_BOUND))
                continue;
            prev->link = g->link;
            if (gort__sched.global.end == g)
                gort__sched.global.end = prev;
            first->segment.n--;
            set_count(gort__sched.global.list.n - 1);
            return g;
        }
    }
    return NULL;
}

GORT_NOINLINE void gort__queue_put_overflow(struct gort__p *p, struct gort__glist list)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    append_locked(list, p->id);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

/* Conditions that must agree: the queues looked at here are those that look() in find.c searches. */
bool gort__queue_has_work_but(const struct gort__p *but)
{
    struct gort__sched *s = &gort__sched;
    if (gort__load(&s->global.n, RELAXED) || gort__load(&s->events.n, RELAXED) ||
        gort__load(&s->preempted.n, RELAXED))
        return true;
    int n = gort__load(&s->procs, RELAXED);
    for (int i = 0; i < n; i++) {
        struct gort__p *p = gort__load(&s->ps[i], ACQUIRE); /* pairs with p.c */
        if (p != but && !gort__local_empty(p))
            return true;
    }
    return false;
}

bool gort__queue_has_work(void)
{
    return gort__queue_has_work_but(NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * find.c - an M without a goroutine looks for one: the order of the search.
 *
 * The order: its own timers that are due and its own queues (schedule.c, turn.c), those that events have
 * woken elsewhere, the global queue, fds that are ready, those that wait for a thread, preempted ones, then
 * the other Ps' queues and timers. Queues: four rounds from a random start with a step that is coprime to
 * their number, so every P is visited once a round. What a P was to run next is only stolen in the last round
 * and only if it still stands there a moment later: its P is about to run it, and moving it away from its
 * warm cache would cost more than it gains. Then everything is looked at once more (idle.c), and the M
 * sleeps.
 * Threads: each M for itself, on g0, inside.
 */
#include "base/fatal.h"
#include "poll/poll.h"
#include "sched/threads/threads.h"

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* A start and a step below n that visit each of n Ps once. n >= 1. */
static void steal_order(struct gort__rand *r, uint32_t n, uint32_t *start, uint32_t *step)
{
    *start = gort__rand_below(r, n);
    *step = n == 1 ? 0 : 1 + gort__rand_below(r, n - 1);
    while (n > 1 && gcd(*step, n) != 1)
        *step = *step % (n - 1) + 1;
}

static struct gort__g *steal_next(struct gort__p *victim)
{
    struct gort__g *seen = gort__load(&victim->runq.next, RELAXED);
    if (!seen)
        return NULL;
    for (int i = 0; i < GORT_STEAL_NEXT_PAUSES; i++)
        gort__arch_pause();
    return gort__runq_steal_next(&victim->runq, seen) ? seen : NULL;
}

static struct gort__g *steal(struct gort__m *m)
{
    uint32_t n = (uint32_t)gort__load(&gort__sched.procs, RELAXED);
    for (int round = 0; round < GORT_STEAL_ROUNDS; round++) {
        uint32_t i, step;
        steal_order(&m->rand, n, &i, &step);
        for (uint32_t k = 0; k < n; k++, i = (i + step) % n) {
            struct gort__p *victim = gort__load(&gort__sched.ps[i], ACQUIRE); /* pairs with p.c */
            if (victim == m->p)
                continue;
            if (GORT_UNLIKELY(gort__load(&gort__sched.fuzz, RELAXED)))
                gort__fuzz_point(m);
            if (gort__m_wanted(m))
                return NULL;
            gort__check(victim);
            struct gort__g *g = NULL;
            if (gort__runq_seems_empty(
                    &m->p->events)) /* else they wait for their turn; there may be no room */
                g = gort__runq_steal(&m->p->events, &victim->events);
            if (GORT_UNLIKELY(g)) {
                gort__count(&m->p->counts.steals, 1);
                gort__p_mode_on(m->p, GORT_MODE_EVENTS);
                return gort__turn_begin_woken(m->p, g);
            }
            g = gort__runq_steal(&m->p->runq, &victim->runq);
            if (!g && round == GORT_STEAL_ROUNDS - 1)
                g = steal_next(victim);
            if (g) {
                gort__count(&m->p->counts.steals, 1);
                return g;
            }
        }
    }
    return NULL;
}

/* Becomes a spinning M unless enough others look for work already. */
static bool may_spin(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    if (m->spinning)
        return true;
    uint32_t busy = (uint32_t)gort__load(&s->procs, RELAXED) - gort__load(&s->idle_count, RELAXED);
    if (2 * gort__load(&s->spinning, RELAXED) >= busy)
        return false;
    m->spinning = true;
    gort__add(&s->spinning, 1, SEQ_CST); /* pairs with idle.c */
    return true;
}

/* A fair pick has seen that timers are due, or that nobody has looked for ready fds lately. */
void gort__find_poll(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    int64_t now = gort__os_now();
    if (gort__poll_pending() && now - gort__load(&s->poll.at, RELAXED) >= GORT_POLL_EVERY)
        gort__netpoll(m, INT64_MIN);
    gort__timer_run(m, now);
}

/* Goroutines that wait for fds, unless somebody sleeps until there are some. */
static bool look_at_fds(struct gort__m *m)
{
    return gort__poll_pending() && !gort__load(&gort__sched.poll.until, RELAXED) &&
           gort__netpoll(m, INT64_MIN);
}

/* Timers of any P that are due. Only when there are some does it ask for the time. */
static bool look_at_timers(struct gort__m *m)
{
    return gort__timer_next() != INT64_MAX && gort__timer_run(m, gort__os_now());
}

/*
 * While boost_n is not 0 preempted goroutines go first, because one of them may have a lock that another
 * thread sleeps for; but only every other time: a sleep may have any cause, and where many goroutines compute
 * a little and sleep a little the boost never ends. Then goroutines that were woken, or have not begun, would
 * wait for ever. Every other time still lets each of them run within twice as many turns.
 */
static struct gort__g *pick_boosted(struct gort__p *p)
{
    p->preempted_first = !p->preempted_first;
    struct gort__g *g = p->preempted_first ? gort__preempted_take() : NULL;
    if (g)
        gort__turn_others(p, g);
    return g;
}

/* Its own timers and queue, the global one, fds, the others' queues and timers. NULL: nothing was there.
 * Firing a timer may find the world being stopped, and end without a P. */
static struct gort__g *look(struct gort__m *m)
{
    int64_t first = gort__load(&m->p->timers.first, RELAXED);
    if (GORT_UNLIKELY(first != INT64_MAX)) {
        int64_t now = gort__os_now();
        if (first <= now)
            gort__timer_fire(&m->p->timers, m, now);
        if (GORT_UNLIKELY(!m->p))
            return NULL;
    }
    struct gort__g *g = GORT_UNLIKELY(gort__load(&gort__sched.preempted.boost_n, RELAXED))
                            ? pick_boosted(m->p)
                            : NULL;
    bool queued = gort__load(&gort__sched.global.n, RELAXED);
    if (!g) {
        g = gort__schedule_pick_local(m->p);
        m->p->deferred &= g != NULL; /* what comes from elsewhere is not what can wait */
    }
    if (!g && gort__load(&gort__sched.events.n, RELAXED))
        g = gort__turn_woken(m->p);
    if (!g && queued)
        g = gort__queue_take(m->p, UINT32_MAX);
    if (!g && look_at_fds(m))
        g = gort__schedule_pick_local(m->p);
    if (!g && GORT_UNLIKELY(gort__load(&gort__sched.line.n, RELAXED)))
        g = gort__tight_take(m->p);
    if (!g && gort__load(&gort__sched.preempted.n, RELAXED))
        g = gort__preempted_take();
    if (!g) /* before a theft, for which its own rings must have room */
        g = gort__turn_last(m->p);
    if (!g && gort__load(&gort__sched.procs, RELAXED) > 1 && may_spin(m))
        g = steal(m);
    if (!g && look_at_timers(m) && m->p)
        g = gort__schedule_pick_local(m->p);
    return g;
}

struct gort__g *gort__find(struct gort__m *m)
{
    for (;;) {
        if (gort__m_wanted(m))
            gort__hooks.life.attend(m);
        if (gort__load(&m->life.quit, RELAXED) || (gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED))
            return NULL;
        struct gort__g *g = m->handed;
        m->handed = NULL;
        if (g == &gort__poll_marker) {
            g = NULL;
            gort__find_poll(m);
        }
        if (!m->p) { /* lost while the world was stopped */
            if (g)
                gort__queue_put_and_wake(g);
            gort__idle(m);
            continue;
        }
        if (!g)
            g = look(m);
        if (g)
            return g;
        if (m->p)
            gort__idle(m);
    }
}

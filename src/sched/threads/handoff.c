/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - Ps change hands: every way to lose a P, and the one way to get one back.
 *
 * A goroutine can be off its P together with its thread: in a blocking call (announced or not), because it
 * was preempted, because the number of Ps went down, or because it is bound to its thread and waits. In
 * all of them its M sleeps on its note with `waiting` set, until somebody grants it a P: its
 * goroutine stands in the global queue, or among the preempted ones, as one that is bound to its M, and
 * whoever picks it there hands its own P over. Between two gort calls a goroutine never changes
 * its thread.
 *
 * Who holds a P is p->m, m->p and m->handoff.next_p together, and changes under sched.lock only:
 *
 *     from                    to                    by                          when
 *     idle                    m->handoff.next_p             gort__m_start_locked        there is work; m is idle or new
 *     idle                    m->p                  m: idle.c:look_again        it has just released one, and there is work
 *     idle                    m->p                  m: wait_for_grant, _regain  its goroutine is without one
 *     m->handoff.next_p               m->p                  m                           it wakes, or its thread begins
 *     nobody                  idle, next_p of o     m.c:starve_locked           no M can be had; o has its queued goroutine itself
 *     m->handoff.next_p, no thread    idle, next_p of o     supervisor.c:refused            no thread for m; the same, or o is idle
 *     m->handoff.next_p, no thread    o->p                  o: promised_locked          o waits in the handler, and goes first
 *     m->p, m inside          idle                  m: idle.c:release_p         m has nothing to run
 *     m->p, m inside          idle, next_p of o     m: gort__handoff_give          m will block, waits for a bound one, ends
 *     m->p, m inside          next_p of o           m: gort__handoff_run_bound          it picked a goroutine bound to o
 *     m->p, m inside          next_p of o           m: gort__handoff_preempt          its goroutine's time is up
 *     m->p, m in user code    next_p of o, idle     sysmon: gort__handoff_retake   m's thread sleeps in the kernel, or computes
 *                                                                               and blocks our signal (mask.c); idle: tight.c
 *     m->p or m->handoff.next_p       nobody                p.c: evict               the world is stopped, fewer Ps
 *     m->p, m in user code    (stays with m)        the world is stopped        its next call waits in world.c
 *     m->p, m inside          nobody                m: gort__handoff_give          the same, while the world is stopped
 *     nobody                  idle, next_p of o     world.c: distribute_locked  the world starts
 *     any                     (stays)               the end of the run          m is told; nobody uses Ps any more
 *
 * and the mark of an M whose goroutine must not go on without one, GORT_ATT_NO_P:
 *
 *     set      gort__handoff_retake (before it looks), gort__handoff_preempt, evict; under the lock, by whoever takes the P. give_up
 *              (block.c) after its P is gone: nobody marks an M without a P, so nobody takes it back
 *     cleared  gort__handoff_retake (it looked, and must not), resume and gort__handoff_reacquire (m has a P), gort__block_surface and
 *              entry.c:clear_p_bits (m is on g0, and has no goroutine that could run); all under the lock
 *     seen     every entry and exit (verbs.h, block.c), the signal handler (preempt.c)
 *
 * tests/model/handoff.c explores the first table with one P, world.c there the stops, end.c the end of a run.
 *
 * Taking a P from an M in user code is the one change that its owner does not take part in. It is
 * sound because of `inside` and `attention`: the taker sets GORT_ATT_NO_P and then, through a heavy fence,
 * looks at inside, all under the lock; the owner sets inside and then, through a light fence, looks
 * at attention (verbs.h). By the contract of the fences (os.h) not both miss the other's write. If
 * the taker sees inside it takes its mark back. If the owner sees the mark it comes here and waits
 * for the lock: then the taker has made up its mind. GORT_ATT_NO_P is therefore cleared only under the lock.
 * The end of an announced call does the same with m->block_word in place of inside (block.c).
 *
 * Preempted goroutines: those that were stopped in the middle of user code. Their threads wait with them, so
 * there must not be many: a goroutine that has not run yet is not started while many are preempted, but for
 * one now and then (cputime.c). A P is given up by preemption or taken away only when an M is there to use
 * it, or none can be created (tight.c): creating a thread needs malloc, and the goroutine that is stopped may
 * hold malloc's lock.
 * Threads: `_locked` with sched.lock held; take_away by sysmon; the rest by an M for itself, inside.
 */
#include "base/fatal.h"
#include "sched/threads/threads.h"

/* --- getting a P ------------------------------------------------------------------------------ */

struct gort__m *gort__handoff_grant_locked(struct gort__p *p, struct gort__g *g)
{
    struct gort__m *m = g->m;
    m->handoff.waiting = false;
    m->handoff.next_p = p;
    gort__store(&p->m, m, RELEASE); /* pairs with sysmon.c */
    return m;
}

/* Whether an M waits for a P for its goroutine, which somebody has queued. */
static bool bound_waits_locked(void)
{
    for (struct gort__m *m = gort__sched.ms.all; m; m = m->all_next) {
        if (!m->handoff.waiting)
            continue;
        struct gort__g *g = gort__load(&m->g, RELAXED);
        if (g == &m->g0)
            g = m->bound_g;
        if (g && gort__load(&g->state, RELAXED) == GORT_G_RUNNABLE)
            return true;
    }
    return false;
}

struct gort__m *gort__handoff_grant_bound_locked(struct gort__p *p)
{
    if (!bound_waits_locked()) /* the queue may be long */
        return NULL;
    gort__local_drain_locked(p); /* it may be in there */
    struct gort__g *g = gort__queue_take_bound_locked();
    return g ? gort__handoff_grant_locked(p, g) : NULL;
}

/*
 * A P that is promised to an M whose thread does not exist yet. Creating it may need a lock of malloc which
 * the goroutine that asks here was stopped with: it goes first. The M finds out when it starts.
 */
static struct gort__p *promised_locked(void)
{
    struct gort__sched *s = &gort__sched;
    for (int i = 0; i < s->procs; i++) {
        struct gort__p *p = s->ps[i];
        struct gort__m *m = p->m;
        if (m && m->handoff.next_p == p &&
            !gort__load(&m->life.started, ACQUIRE)) { /* pairs with gort__m_main */
            m->handoff.next_p = NULL;
            gort__store(&p->m, NULL, RELAXED);
            return p;
        }
    }
    return NULL;
}

/*
 * Sleeps until a P is granted; queues g for one unless somebody has, or will. False: the run is over.
 * A grant comes with one wake, which must be slept through even if the P is seen before: a wake that
 * is left over would end some later sleep too early.
 */
static bool wait_for_grant(struct gort__m *m, struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    for (;;) {
        bool queued = false;
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        bool quit = gort__load(&m->life.quit, RELAXED);
        if (!quit && !m->p && !m->handoff.next_p && !m->handoff.waiting) {
            struct gort__p *p = gort__p_idle_get_locked();
            if (!p && m->preempt.in_handler && !(s->world_word & 1))
                p = promised_locked();
            if (p) {
                gort__p_take(m, p);
                gort__m_found_p_locked(m);
            } else {
                queued = m->handoff.waiting = true;
                if (m->preempt
                        .in_handler) { /* in the middle of user code, as if preempted: it can take a P for a spare */
                    /* As in gort__handoff_preempt. */
                    m->handoff.boosted = (m->preempt.in_libc || s->preempted.boost_n) && !m->handoff.boosted;
                    gort__preempted_put_locked(g, m->handoff.boosted ? GORT_PLACE_SECOND : GORT_PLACE_LAST);
                } else {
                    gort__queue_put_woken_locked(g); /* back from a blocking call: that is an event, too */
                }
                gort__m_found_p_locked(m); /* the queue keeps the run alive now */
            }
        }
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        if (quit || m->p)
            return !quit;
        if (queued) {
            gort__wake_sysmon();
            gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
            gort__wake_idle();
        }
        gort__note_sleep_again(m);
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        m->p = m->handoff.next_p; /* NULL: it went away with a stop of the world */
        m->handoff.next_p = NULL;
        if (m->p)
            gort__m_found_p_locked(m);
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
    }
}

static bool bind(struct gort__g *g, struct gort__m *m)
{
    bool was_bound = (g->flags & GORT_G_BOUND) != 0;
    gort__check(g->m == m);
    gort__g_flag_on(g, GORT_G_BOUND);
    return was_bound;
}

/* The thread goes on with its goroutine, with a P or because the run is over. */
static void resume(struct gort__m *m, struct gort__g *g, bool was_bound)
{
    if (!wait_for_grant(m, g))
        return; /* gort__entry_attend sees that the run is over */
    if (!was_bound)
        gort__g_flag_off(g, GORT_G_BOUND);
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__and(&m->attention, ~(uint32_t)(GORT_ATT_NO_P | GORT_ATT_PREEMPT), RELAXED);
    gort__store(&m->burst.at, gort__os_now(),
                RELAXED); /* before turn_p: else the turn seems to be as old as the one before */
    gort__store(&m->turn.slice, m->p->slice, RELAXED);
    gort__store(&m->turn.p, m->p, RELEASE); /* pairs with sysmon.c:begin_watch */
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    gort__g_set(g, GORT_G_RUNNING);
}

void gort__handoff_reacquire(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *g = m->g;
    if (GORT_UNLIKELY(gort__load(&m->preempt.masked, RELAXED))) {
        gort__store(&m->preempt.masked, false, RELAXED);
        gort__mask_doubt(m);
    }
    if (GORT_UNLIKELY(gort__load(&s->limit.tight, RELAXED)))
        gort__g_flag_on(g, GORT_G_BLOCKS);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (!m->p && !m->handoff.next_p && !m->handoff.waiting) {
        struct gort__p *p = gort__p_idle_get_locked();
        if (p)
            gort__p_take(m, p);
    }
    if (m->p) {
        gort__m_found_p_locked(m);
        gort__and(&m->attention, ~(uint32_t)GORT_ATT_NO_P, RELAXED);
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        if (gort__load(&g->state, RELAXED) != GORT_G_RUNNING)
            gort__g_set(g, GORT_G_RUNNING);
        return;
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    /* Once in here it may be left by a signal handler's siglongjmp, and come again: m->handoff.waiting and
     * the mark tell. */
    bool again = m->handoff.reacquiring, was_bound = again ? m->handoff.was_bound : bind(g, m);
    m->handoff.reacquiring = true;
    m->handoff.was_bound = was_bound;
    if (!again)
        gort__g_set(g, GORT_G_RUNNABLE);
    if (m->preempt.in_handler) /* it is preempted now, and what it has computed counts */
        gort__cputime_end(m);
    resume(m, g, was_bound);
    gort__store(&m->turn.p, NULL, RELAXED); /* a turn of its own begins */
    if (m->preempt.in_handler)
        gort__cputime_begin(m);
    m->handoff.reacquiring = false;
}

bool gort__handoff_wait_bound(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    gort__check(!m->handed && !m->spinning); /* it has looked for nothing */
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    m->handoff.waiting = m->handoff.next_p == NULL; /* whoever readies the goroutine queues it */
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (m->p)
        gort__handoff_give(m);
    bool granted = wait_for_grant(m, m->bound_g);
    while (granted && gort__m_wanted(m)) {
        if (gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED)
            return false;
        gort__hooks.life.attend(m);
        if (!m->p)
            granted = wait_for_grant(m, m->bound_g);
    }
    return granted;
}

/* --- giving up a P ---------------------------------------------------------------------------- */

void gort__handoff_give(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    struct gort__p *p = m->p;
    struct gort__m *other = NULL;
    bool idle = false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    m->p = NULL;
    gort__store(&p->m, NULL, RELAXED);
    if (s->ended) {
        /* nobody needs it any more */
    } else if (s->world_word & 1) {
        gort__hooks.life.world_event(); /* world_start sees to the P */
    } else if (!gort__local_empty(p) || s->global.list.n || s->events.list.n || s->preempted.list.n) {
        other = gort__m_start_locked(p, false);
    } else if (s->idle_count == 0 && gort__load(&s->spinning, RELAXED) == 0 && s->procs > 1) {
        gort__add(&s->spinning, 1, SEQ_CST); /* the last one awake: somebody must look around */
        other = gort__m_start_locked(p, true);
    } else {
        gort__p_idle_put_locked(p);
        idle = true;
        gort__hooks.life.deadlock_locked();
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (other)
        gort__note_wake(other);
    if (idle) {
        gort__arch_fence_after_rmw(); /* pairs with idle.c: the second look */
        if (gort__queue_has_work() || gort__poller_wanted())
            gort__wake_idle();
    }
}

void gort__handoff_run_bound(struct gort__m *m, struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    if (m->spinning)
        gort__idle_spin_stop(m);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    struct gort__p *p = m->p;
    m->p = NULL;
    struct gort__m *other = gort__handoff_grant_locked(p, g);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__note_wake(other);
    gort__m_stop(m);
}

/* What it was asked to stop for is still there. */
static bool still_wanted_locked(const struct gort__p *p, enum gort__why why)
{
    struct gort__sched *s = &gort__sched;
    if (why == GORT_WHY_WOKEN)
        return s->events.list.n || !gort__runq_empty(&p->events);
    if (why == GORT_WHY_NEXT)
        return gort__load(&p->runq.next, RELAXED) != NULL;
    return s->global.list.n || s->events.list.n || s->preempted.list.n || s->line.list.n ||
           !gort__local_empty(p);
}

/*
 * How p goes on without the goroutine that is preempted, and its place among the preempted ones. If there is
 * no thread but that of a preempted one, p goes to that one at once (m.c).
 */
static enum gort__place change_turn(struct gort__m *m, struct gort__p *p, enum gort__why why, bool boost,
                                    bool idle)
{
    struct gort__sched *s = &gort__sched;
    int64_t used = why == GORT_WHY_TURN ? 0 : gort__load(&m->turn.asked, RELAXED);
    /* But for woken ones. */
    bool alone = !s->preempted.list.n && !s->global.list.n && !s->line.list.n && gort__runq_empty(&p->runq);
    bool goes_on = used > 0 && (used < GORT_SLICE || alone);
    gort__store(&m->turn.used, goes_on ? used : 0, RELAXED);
    if (why == GORT_WHY_TURN) {
        p->preempted_at = gort__arch_ticks();
        p->preempted_first = true; /* the ring is next */
    }
    if (!idle)
        gort__p_mode_off(p, GORT_MODE_OVER | GORT_MODE_OWES | GORT_MODE_WOKEN);
    else if (why != GORT_WHY_NEXT)
        gort__p_mode_on(p, GORT_MODE_OVER | (goes_on ? GORT_MODE_OWES : 0));
    else
        gort__p_mode_on(p, goes_on ? GORT_MODE_OWES : 0);
    gort__p_new_slice(p);
    m->handoff.boosted = !goes_on && boost && !m->handoff.boosted; /* but nobody starves the others */
    return goes_on ? GORT_PLACE_FIRST : m->handoff.boosted ? GORT_PLACE_SECOND : GORT_PLACE_LAST;
}

void gort__handoff_preempt(struct gort__m *m, bool in_libc)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *g = m->g;
    struct gort__m *other = NULL;
    bool was_bound = false;
    gort__cputime_end(m);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__and(&m->attention, ~(uint32_t)GORT_ATT_PREEMPT, RELAXED);
    struct gort__p *p = m->p;
    enum gort__why why = gort__load(&m->ask.why, RELAXED);
    if (p && still_wanted_locked(p, why) && !g->preempt_off &&
        p->slice == gort__load(&m->ask.slice, RELAXED) && !(s->world_word & 1)) {
        bool idle = s->ms.idle != NULL;
        if (!idle && s->limit.tight && (s->global.list.n || s->events.list.n || !gort__local_empty(p)))
            gort__tight_say_hogs_locked();
        if (idle || (s->preempted.list.n && why == GORT_WHY_TURN)) {
            enum gort__place place = change_turn(m, p, why, in_libc, idle); /* it may hold a lock of libc */
            m->p = NULL;
            gort__count(&s->counts.preempted, 1);
            other = gort__m_start_locked(p, false); /* before g is queued: it must not get its own P back */
            was_bound = bind(g, m);
            gort__g_set(g, GORT_G_PREEMPTED);
            m->handoff.waiting = true;
            m->handoff.reacquiring = true;
            m->handoff.was_bound = was_bound;
            gort__or(&m->attention, GORT_ATT_NO_P, RELAXED);
            gort__preempted_put_locked(g, place);
        }
        gort__m_spare_locked(); /* for the next time, or because there was none */
        if (!s->ms.idle && !s->preempted.list.n && s->limit.refused)
            gort__tight_starve_locked(); /* the kernel refused one: the supervisor tries again while others wait */
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (!other)
        return;
    gort__note_wake(other);
    gort__wake_idle(); /* pairs with idle.c: g was queued, and what its P goes on with may take long */
    resume(m, g, was_bound);
    gort__cputime_begin(m);
    m->handoff.reacquiring = false;
}

bool gort__handoff_retake(struct gort__p *p, struct gort__m *m, bool announced)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *other = NULL;
    bool taken = false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    bool may = p->m == m && m->p == p && !(s->world_word & 1) && !s->main.done;
    if (may && !s->ms.idle && !s->preempted.list.n && !s->limit.tight) {
        gort__m_spare_locked();
        may = false;
    }
    if (may) {
        gort__or(&m->attention, GORT_ATT_NO_P, RELAXED);
        gort__os_fence_heavy();                       /* pairs with gort__enter and gort__leave */
        taken = gort__load(&m->inside, ACQUIRE) == 0; /* pairs with gort__leave */
        if (announced) /* and still in that call: who has left it computes, and has missed the mark */
            taken = taken && (gort__load(&m->block_word, RELAXED) & GORT_BLOCK_SEEN);
        struct gort__g *g = gort__load(&m->g, ACQUIRE); /* pairs with switch_to */
        taken = taken && g != &m->g0;
        if (taken) {
            gort__store(&m->p, NULL, RELAXED); /* gort_block_enter looks at it, as a hint */
            if (!m->handoff.counted_no_p) {    /* it comes back: no deadlock meanwhile */
                m->handoff.counted_no_p = true;
                s->ms.without_p++;
            }
            if (gort__load(&g->state, RELAXED) == GORT_G_RUNNING)
                gort__g_set(g, GORT_G_DETACHED);
            gort__store(&p->m, NULL, RELAXED);
            gort__count(&s->counts.retakes[announced], 1);
            other = gort__m_start_locked(p, false);
            gort__m_spare_locked();
        } else {
            gort__and(&m->attention, ~(uint32_t)GORT_ATT_NO_P, RELAXED);
        }
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (other)
        gort__note_wake(other);
    return taken;
}

/* SPDX-License-Identifier: MIT */
/*
 * idle.c - going to sleep without missing work, and waking somebody when there is some.
 *
 * The problem: an M looks everywhere, finds nothing and goes to sleep, while another publishes work
 * and sees nobody to wake. The rule that excludes it has two sides:
 *
 *     publisher:  put work into a queue     searcher:  release the P; if it spins: spinning -= 1
 *                 full fence                           full fence
 *                 idle P and nobody spins?             look at all queues once more
 *                 -> wake one                          -> found: take a P back and run it
 *
 * Proof: in the single order of the two fences one comes first. If the publisher's does, the searcher's
 * second look sees the work. If the searcher's does, the publisher sees the idle P, and spinning without the
 * searcher: it wakes an M, unless another one spins, to whom the same applies. An M that finds work and spins
 * no more takes the second look as well (gort__idle_spin_stop), because more work, or a timer, may have come
 * while its own spinning kept publishers from waking anybody: then it wakes another. (To wake one without
 * looking is right, too, but when few are readied at a time, each wake-up that finds nothing costs more than
 * what they do.) Whoever releases a P takes the second look, also one that did not spin: a waker counts as
 * spinning before it has an M (gort__idle_wake_p), and may itself have kept the searcher from spinning.
 * When no P is idle any more, because somebody else has taken the last one for a goroutine of its own, there
 * is nobody to wake. Then whoever sees that tells sysmon, which may sleep for long because nobody waited
 * (sysmon_sleep.c): a publisher, or one on whom publishers have counted, because it was spinning or about to
 * wake somebody.
 * Moving goroutines is publishing too: whoever takes many from the global queue into a ring, or
 * pushes the one that was to run next into it, does the publisher's half (queue.c).
 * tests/model/idle.c explores it with up to three Ps, and finds the lost wake-up when any of these
 * fences or looks is taken out.
 *
 * Threads: any M, inside.
 */
#include "base/fatal.h"
#include "sched/threads/threads.h"

void gort__idle_wake_p(void)
{
    struct gort__sched *s = &gort__sched;
    uint32_t nobody = 0;
    if (GORT_UNLIKELY(gort__load(&s->limit.no_m, RELAXED))) { /* m.c:left_p_locked */
        gort__wake_note_work();
        return;
    }
    if (!gort__cas(&s->spinning, &nobody, 1, SEQ_CST)) /* pairs with gort__idle */
        return;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    struct gort__p *p = gort__p_idle_get_locked();
    struct gort__m *m = NULL;
    if (p)
        m = gort__m_start_locked(p, true);
    else
        gort__sub(&s->spinning, 1, SEQ_CST);
    bool looks = !m || m->spinning; /* its thread may begin as soon as the lock is free */
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (m)
        gort__note_wake(m);
    if (!p)
        gort__wake_note_work();
    if (looks)
        return;
    /* It goes on with its own goroutine. For what came while this counted as spinning: the second look. */
    gort__fence(SEQ_CST); /* pairs with gort__wake_idle */
    if (gort__queue_has_work() || gort__poller_vacant())
        gort__wake_idle();
}

void gort__idle_spin_stop(struct gort__m *m)
{
    m->spinning = false;
    gort__sub(&gort__sched.spinning, 1, SEQ_CST); /* pairs with gort__wake_idle */
    gort__arch_fence_after_rmw();
    /* What it has itself can wait: wake_defer.c. */
    const struct gort__p *deferred = m->p->deferred ? m->p : NULL;
    if (!gort__load(&gort__sched.idle_count, RELAXED)) {
        if (gort__load(&gort__sched.sysmon.state, RELAXED) == GORT_MON_LONG &&
            gort__queue_has_work_but(deferred))
            gort__hooks.monitor.sysmon_work();
    } else if (gort__queue_has_work_but(deferred) || gort__poller_vacant()) {
        gort__wake_idle();
    }
}

/* Releases m's P, if it has one. False: there is something to do first. */
static bool release_p(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    struct gort__p *p = m->p;
    if (p && GORT_UNLIKELY(gort__load(&s->scarce, RELAXED)))
        gort__g_cache_flush(p);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    /* It may have woken ones that let others go first, whom somebody else has taken meanwhile (turn.c). */
    bool idle = p && !(s->world_word & 1) && s->global.list.n == 0 && s->events.list.n == 0 &&
                s->preempted.list.n == 0 && gort__local_empty(p);
    if (idle) {
        m->p = NULL;
        gort__p_idle_put_locked(p);
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return idle || !p;
}

/* The second look of an M that has released its P. True: it has one again. */
static bool look_again(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    if (m->spinning) {
        m->spinning = false;
        gort__sub(&s->spinning, 1, SEQ_CST); /* pairs with gort__wake_idle */
    }
    gort__arch_fence_after_rmw(); /* after that of release_p; pairs with gort__wake_idle */
    if (!gort__queue_has_work())
        return false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    struct gort__p *p = gort__p_idle_get_locked();
    if (p)
        gort__p_take(m, p);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (!p) {
        gort__wake_note_work();
        return false;
    }
    m->spinning = true;
    gort__add(&s->spinning, 1, SEQ_CST); /* pairs with gort__wake_idle */
    return true;
}

/* Nothing to run: gives up the P and sleeps until somebody hands one over, or the thread is to end. */
void gort__idle(struct gort__m *m)
{
    if (!release_p(m))
        return;
    if (look_again(m))
        return;
    gort__m_stop(m);
}

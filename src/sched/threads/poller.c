/* SPDX-License-Identifier: MIT */
/*
 * poller.c - one idle M, the poll owner, sleeps in the poller until the first timer of all Ps.
 *
 * Why: fds and timers need somebody who waits for them, but one thread can wait for all; the others sleep on
 * their notes, where waking them is cheapest. Nobody owns the poller while there is nothing to wait for.
 *
 * A timer must not be set while the poll owner sleeps past it. The rule has two sides:
 *
 *     setter:  heap->first = when               owner:   poll.until = the first of all heaps
 *              full fence                                 full fence
 *              poll.until? 0: idle P and nobody           look at all heaps once more
 *                spins -> wake one                        -> an earlier one: again
 *              later than when -> kick                    sleep in the poller
 *
 * Proof: in the single order of the two fences one comes first. If the setter's does, the second look sees
 * the timer. If the sleeper's does, the setter sees poll.until and kicks; a kick that comes before the sleep
 * makes the sleep return at once. With poll.until 0 nobody owns the poller, and the setter is a publisher as
 * in idle.c: an M that goes idle later looks at the heaps after its own fence (gort__poller_wanted in
 * gort__m_stop), and becomes the owner. Two shortcuts: a setter on g0 with a P is about to search and, if it
 * finds nothing, to own the poller itself; and a setter with a P does not kick while no P is idle, since
 * nobody could run what the timer wakes: then whoever releases a P looks whether the sleeper sleeps too long
 * (gort__poller_wanted again, same fences with idle_count).
 *
 * Leaving. The poll owner leaves when it is handed a P like any idle M (gort__note_wake kicks it), or takes an
 * idle P itself when something is due; without an idle P it fires what is due all the same, for the global
 * queue. It stores poll.until = 0, then, after a full fence, looks whether there is still something to wait
 * for: if it does not come back at once, it wakes an M for the poller, if there is an idle P.
 *
 * Coalescing. When hundreds of timers are pending and one is due every few microseconds, waking for each of
 * them costs more than all else. So the poll owner then wakes every GORT_COALESCE_EVERY, unless it is kicked:
 * these timers come up to that much late, never early; where few timers are pending none is delayed. The
 * owner announces COALESCED then instead of a time: each M that goes idle meanwhile sees that timers are due
 * before the owner wakes, and would kick it. No timer can be lost by that, since the owner sleeps no longer
 * than GORT_COALESCE_EVERY whatever is set. Nor does it wake another M for the poller: it will be back soon, and
 * if it is not, sysmon fires what is due.
 *
 * When all Ps are busy their own looks (every 61st pick) fire timers, unless a goroutine computes without a
 * call: then sysmon does.
 *
 * tests/model/poller.c explores both rules and the change of the poll owner.
 * Invariants: (1) sched.poll.owner is that M, from before it sleeps until it has left the poller; (2)
 * one at a time; (3) it is in ms.idle unless it was handed a P.
 * Threads: any, inside; `_locked` functions with sched.lock held.
 */
#include "base/fatal.h"
#include "poll/poll.h"
#include "sched/threads/threads.h"

#define COALESCED 1 /* as poll.until: no timer is earlier, so nobody kicks */

bool gort__poller_wanted(void)
{
    int64_t until = gort__load(&gort__sched.poll.until, RELAXED), next = gort__timer_next();
    if (until == 0)
        return next != INT64_MAX || gort__poll_pending();
    if (next < until)
        gort__poll_kick();
    return false;
}

bool gort__poller_vacant(void)
{
    return (!gort__timer_coalesces() || gort__poll_pending() ||
            gort__timer_next() > gort__load(&gort__sched.poll.woke_at, RELAXED) + GORT_COALESCE_EVERY) &&
           gort__poller_wanted();
}

bool gort__poller_covers(int64_t when)
{
    int64_t until = gort__load(&gort__sched.poll.until, RELAXED);
    return until > COALESCED && until <= when;
}

void gort__poller_notice(struct gort__m *m, int64_t when)
{
    struct gort__sched *s = &gort__sched;
    gort__fence(SEQ_CST); /* pairs with announce and idle.c */
    int64_t until = gort__load(&s->poll.until, RELAXED);
    if (gort__load(&s->idle_count, RELAXED) == 0)
        gort__hooks.monitor.sysmon_timer(when);
    else if (until) {
        if (when < until)
            gort__poll_kick();
    } else if (!m->p || m->g != &m->g0) {
        gort__wake_idle();
    }
    if (!m->p)
        gort__wake_sysmon(); /* perhaps it sees to timers, and sleeps past this one */
}

void gort__poller_notice_fd(struct gort__m *m)
{
    gort__fence(SEQ_CST); /* pairs with idle.c: one more waits for an fd, then the look for a poll owner */
    if (gort__load(&gort__sched.idle_count, RELAXED) == 0)
        gort__wake_note_work();
    else if (!gort__load(&gort__sched.poll.until, RELAXED) && (!m->p || m->g != &m->g0))
        gort__wake_idle();
}

bool gort__poller_take_locked(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    if (s->poll.owner || (gort__timer_next() == INT64_MAX && !gort__poll_pending()))
        return false;
    if (s->idle_count == 0 &&
        s->sysmon.on) { /* nobody could run what they wake: sysmon waits for them, and makes room */
        gort__hooks.monitor.sysmon_events();
        return false;
    }
    s->poll.owner = m;
    return true;
}

/* while timers are coalesced it wakes at these times, for what is due by then. They follow each other evenly:
 * the kernel is told ahead. */
static int64_t next_beat(void)
{
    return (gort__os_now() / GORT_COALESCE_EVERY + 1) * GORT_COALESCE_EVERY;
}

/* Tells until when it is going to sleep: the first timer of all; while timers are coalesced, if that is
 * before `earliest`, the next beat if it is due by then. */
static int64_t announce(int64_t earliest)
{
    for (;;) {
        int64_t next = gort__timer_next(), until = next;
        bool brief = next < earliest && gort__timer_coalesces();
        if (brief) {
            until = next_beat();
            brief = next <= until;
            until = brief ? until : next;
        }
        gort__xchg(&gort__sched.poll.until, brief ? COALESCED : until,
                   SEQ_CST); /* pairs with gort__poller_notice */
        gort__arch_fence_after_rmw();
        if (gort__timer_next() < next)
            continue;
        if (brief)
            gort__os_beat(until, until + GORT_COALESCE_EVERY);
        return until;
    }
}

/* Sleeps until there is something to do. True: what it found, or a timer, needs a P. */
static bool sleep_in_poller(struct gort__m *m, struct gort__glist *got)
{
    struct gort__sched *s = &gort__sched;
    bool work = false;
    for (bool again = true; again;) {
        int64_t until = announce(s->poll.woke_at + GORT_COALESCE_EVERY);
        if ((until == INT64_MAX && !gort__poll_pending()) || !gort__note_doze(m))
            break;
        *got = gort__netpoll_look(until);
        again = gort__note_undoze(m);
        int64_t now = gort__os_now();
        work = got->n || gort__timer_next() <= now;
        again = again && !work;
        gort__store(&s->poll.woke_at, now, RELAXED);
    }
    gort__xchg(&s->poll.until, 0, SEQ_CST); /* pairs with gort__poller_notice */
    gort__arch_fence_after_rmw();
    return work;
}

/* No longer owns the poller; with a P if there is one for it. It does not count as spinning: it has something
 * to do, and whoever has more wakes another M in any case. */
static void leave(struct gort__m *m, bool work)
{
    struct gort__sched *s = &gort__sched;
    struct gort__p *p = NULL;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    s->poll.owner = NULL;
    struct gort__m **at = &s->ms.idle;
    while (*at && *at != m)
        at = &(*at)->link;
    bool handed = !*at;
    if (!handed) {
        *at = m->link;
        p = work ? gort__p_idle_get_locked() : NULL;
        if (p) {
            gort__p_take(m, p);
        } else if (
            !m->handoff.counted_no_p) { /* it has something in hand: no deadlock before it has seen to that */
            m->handoff.counted_no_p = true;
            s->ms.without_p++;
        }
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (handed) {
        gort__note_sleep(m);
        gort__m_take_next_p(m);
    }
}

void gort__poller_wait(struct gort__m *m)
{
    struct gort__glist got = {0};
    bool work = sleep_in_poller(m, &got);
    leave(m, work);
    if (work && !gort__load(&m->life.quit, RELAXED))
        gort__timer_run(m, gort__os_now());
    if (got.n)
        gort__ready_events(m, got);
    if (m->p && gort__poller_vacant()) /* after the fence of sleep_in_poller */
        gort__wake_idle();
}

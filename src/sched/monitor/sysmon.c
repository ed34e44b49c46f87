/* SPDX-License-Identifier: MIT */
/*
 * sysmon.c - the monitor: a thread without a P that sees to it that nobody is kept from running.
 *
 * It sleeps until something can be late: the first timer or a ready fd while all Ps are busy, the end of a
 * time slice while others wait, a goroutine that waits for a P whose thread may be blocked. It looks
 *     every 2 ms while somebody waits (4 while all Ps go through many goroutines, as in a busy server): so long may a call that
 *       blocks without a word go unnoticed;
 *     40 us after it has taken a P from such a call, doubled up to 2 ms: others may be about to make such calls;
 *     10 ms after the last goroutine that waited is gone while Ps are busy, then after 20, 40, ... 1,280: there is nothing to look
 *       for, and whoever queues a goroutine, or sets a timer, brings the next look nearer (sysmon_sleep.c).
 * While all Ps are idle it does not look at all: sysmon_sleep.c. A look costs 1 us, its wake-up 5 to 10 and
 * two context switches.
 *
 * At each look, of a P whose thread runs a goroutine while others wait:
 *     in an announced blocking call since the last look,
 *     and it sleeps or has used some CPU time in it          its P is taken away
 *     in user code, its CPU clock has not kept up with the
 *     time, and asleep in the kernel according to /proc      its P is taken away; once it computes it must wait for one
 *     the same, and /proc cannot be read (no fd left)        the same after 10 ms of standing still: if it only waited for
 *                                                            a CPU, that costs a change of hands
 *     in one time slice for too long                         it is asked to stop, by its CPU timer
 *     there are woken goroutines, and it has computed for as
 *     long as those have had the P before (turn.c)           it is asked to let them go first: by tgkill if it has done
 *                                                            nothing but compute for 10 ms, else by its CPU timer
 * A thread whose CPU clock advances computes; nothing else is asked about it.
 * Timers and fds: the Ps see to them every 61st pick. While all are busy sysmon does, too, at the time
 * itself; if a P always was faster it comes later and later, up to 4 ms.
 * Threads: one.
 */
#include <errno.h>

#include "base/fatal.h"
#include "poll/poll.h"
#include "sched/monitor/monitor.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
static struct {
    struct gort__m *m; /* stands for the thread, so that what it calls finds an M */
    uintptr_t thread;
    bool quit;        /* atomic */
    uint32_t over;    /* it looks at nothing any more; futex, atomic */
    int64_t tick;     /* how long it sleeps, at most; owned by the thread, as all below */
    int64_t taken_at; /* when it last took a P from a sleeper */
    bool soon;        /* this look has seen something that one in GORT_LOOK_FIRST will tell */
    uint32_t calm;    /* so many long sleeps in a row that nothing has cut short */
    int64_t end;      /* when the first time slice ends for which others wait */
    bool churning;    /* every P at work has changed goroutines many times since the last look */
    int64_t slack;    /* of timers: grows while the Ps are always faster */
    int64_t deaf;     /* the same for fds, */
    int64_t deaf_to;  /* until when it does not listen */
    bool listened;    /* it has just slept so that fds wake it */
} mon;

/* --- what waits ------------------------------------------------------------------------------- */

struct waiting {
    uint32_t woken; /* goroutines that an event has woken */
    bool others;
};

/* Looks from outside: an old answer does no harm. */
static struct waiting who_waits(void)
{
    struct gort__sched *s = &gort__sched;
    struct waiting w = {gort__load(&s->events.n, RELAXED), gort__load(&s->preempted.n, RELAXED) ||
                                                               gort__load(&s->line.n, RELAXED) ||
                                                               gort__load(&s->global.n, RELAXED)};
    int n = gort__load(&s->procs, RELAXED);
    for (int i = 0; i < n; i++) {
        struct gort__p *p = gort__load(&s->ps[i], ACQUIRE); /* pairs with p.c */
        w.woken += gort__runq_length(&p->events);
        w.others |= !gort__runq_seems_empty(&p->runq);
    }
    return w;
}

/* --- one P ------------------------------------------------------------------------------------ */

/*
 * The thread has slept since the last look, or waited for a CPU, and sleeps now. What has just gone to sleep
 * may be back in a moment: it is looked at once more, unless others were found asleep just now, or its time
 * is over: one that sleeps briefly and often hardly ever meets its CPU timer. cpu: its clock.
 */
static bool blocked(struct gort__watch *w, int tid, int64_t now, int64_t cpu)
{
    int64_t used = cpu - w->cpu, ns = now - w->looked;
    w->cpu = cpu;
    w->looked = now;
    if (cpu < 0 || (used && gort__cputime_awake(ns, used)))
        return false;
    if (used)
        w->stall.since = now;
    enum gort__os_task state = gort__os_thread_state(tid);
    if (state == GORT__OS_TASK_UNKNOWN)
        return now - w->stall.since >= GORT_BLIND;
    if (state == GORT__OS_TASK_RUNS)
        return false;
    mon.soon = true;
    return !used || w->asked || now - mon.taken_at < GORT_CALM;
}

/* What m->block_word was; marks the call that it is in, if any: a mark that is still there at the next look
 * tells that the call is. */
static uint32_t mark_call(struct gort__m *m)
{
    uint32_t block = gort__load(&m->block_word, RELAXED), expected = block;
    if (block == GORT_BLOCK_CALL || block == (GORT_BLOCK_CALL | GORT_BLOCK_MORE))
        gort__cas(&m->block_word, &expected, block | GORT_BLOCK_SEEN, RELAXED);
    return block;
}

/* The thread is in a call that was marked just now. */
static void note_call(struct gort__watch *w, int tid)
{
    w->call_cpu = gort__os_thread_cpu(tid);
    w->ready_cpu = -1;
}

/*
 * Whether the call that a thread has been in since an earlier look is worth its P. Not if it only waits for a
 * CPU, which whoever gets the P would have to wait for as well: on a busy machine many a brief call is found
 * so, and the change of hands costs more than the call. The file that tells is dear: once it has said so
 * there is no news until the thread's CPU clock has moved. *sleeps: it waits for something, and calls like it
 * may do so, too.
 */
static bool worth_taking(struct gort__watch *w, int tid, bool *sleeps)
{
    int64_t cpu = gort__os_thread_cpu(tid);
    *sleeps = false;
    if (cpu == w->ready_cpu)
        return false;
    *sleeps = gort__os_thread_state(tid) != GORT__OS_TASK_RUNS;
    if (!*sleeps) /* else it may sleep on, and its P could not be taken this time */
        w->ready_cpu = cpu;
    return *sleeps || cpu - w->call_cpu >= GORT_CALL_CPU;
}

static bool retake(struct gort__p *p, struct gort__m *m, int64_t now, int64_t cpu)
{
    struct gort__watch *w = &p->watch;
    int tid = gort__load(&m->tid, RELAXED);
    uint32_t block = mark_call(m);
    if (block & GORT_BLOCK_SEEN) {
        bool sleeps, taken = worth_taking(w, tid, &sleeps) && gort__handoff_retake(p, m, true);
        if (taken && sleeps) /* before the call is over: others may be about to make such calls */
            gort__store(&p->long_blocks, GORT_LONG_BLOCKS, RELAXED);
        return taken;
    }
    if (block) {
        mon.soon = true; /* is it still there? */
        note_call(w, tid);
        return false;
    }
    if (!blocked(w, tid, now, cpu) || !gort__handoff_retake(p, m, false))
        return false;
    mon.taken_at = now;
    gort__preempt_ask(m, false); /* when it comes back and computes */
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__store(&gort__sched.preempted.boost_n, gort__sched.preempted.list.n,
                RELAXED); /* perhaps it waits for a lock of one of those */
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    return true;
}

/*
 * The thread has done nothing but compute since it was first seen in this slice, and in former ones
 * (cputime.c), and it has a CPU in this very moment. It may be about to make a call that a signal would cut
 * short: nobody can know; but the longer it has only computed the less likely is it that it makes such a call
 * in the moment between this look at its clock and the signal.
 */
static bool pure_hog(struct gort__p *p, struct gort__m *m)
{
    struct gort__watch *w = &p->watch;
    int tid = gort__load(&m->tid, RELAXED);
    int64_t from = gort__os_now(), before = gort__os_thread_cpu(tid);
    int64_t computed = gort__cputime_burst(m, p, from, before);
    if (computed < GORT_HOG_PROVEN && gort__cputime_awake(from - w->from, before - w->from_cpu))
        computed = before - w->from_cpu;
    if (before < 0 || computed < GORT_HOG_PROVEN)
        return false;
    return gort__os_thread_cpu(tid) != before && gort__os_now() - from < GORT_HOG_LOOK;
}

/*
 * It was asked and did not stop: does it block the signal? Then nobody can stop it; but its P can be taken,
 * and it goes on without one, as after a blocking call, until its next call. That the others go on is worth a
 * thread more than there are Ps.
 */
static bool take_from_masked(struct gort__p *p, struct gort__m *m, int64_t now)
{
    static bool said;
    struct gort__watch *w = &p->watch;
    int64_t cpu = gort__os_thread_cpu(gort__load(&m->tid, RELAXED));
    if (cpu - w->asked_cpu <
        GORT_TIMER_LATE) /* else the file is read for each that waits for the kernel's tick */
        return false;
    if (gort__load(&m->inside, RELAXED) || !gort__preempt_refused(m)) {
        w->masked_cpu = 0;
        return false;
    }
    if (!w->masked_cpu)
        w->masked_cpu = cpu;
    if (cpu - w->masked_cpu <
        GORT_MASKED_CPU) /* it may be in a handler, also ours: to the end of that is not far */
        return false;
    gort__store(&m->preempt.masked, true,
                RELAXED); /* before its P is gone: it looks when it wants one back */
    mon.soon = true;
    if (!gort__handoff_retake(p, m, false)) {
        gort__store(&m->preempt.masked, false, RELAXED);
        return false;
    }
    if (!said)
        gort__warn(
            "a goroutine on thread %d blocks signal %d and has computed for %d ms: it cannot be preempted, "
            "so gort lets the other goroutines run beside it",
            gort__load(&m->tid, RELAXED), gort__sched.conf.signal, (int)((now - w->since) / MS));
    said = true;
    return true;
}

/* chain: it goes through goroutines; the next one that leaves a call of ours, or parks, sees the request. */
static bool ask_to_stop(struct gort__p *p, struct gort__m *m, int64_t now, enum gort__why why, bool chain)
{
    struct gort__watch *w = &p->watch;
    bool more = why == GORT_WHY_WOKEN && w->why != GORT_WHY_WOKEN;
    if (w->asked && !more && now - w->asked < (w->by_tgkill ? GORT_ASK_AGAIN : GORT_LOOK))
        return false;
    if (w->asked && take_from_masked(p, m, now))
        return true;
    if (w->asked)
        gort__preempt_again(); /* it did not come: the program may have installed a handler of its own */
    w->by_tgkill = why == GORT_WHY_WOKEN && !chain && pure_hog(p, m);
    if (!w->asked)
        w->asked_cpu = gort__os_thread_cpu(gort__load(&m->tid, RELAXED));
    w->asked = now;
    w->why = why;
    gort__store(&m->turn.asked, now > w->since ? now - w->since : 1, RELAXED);
    gort__store(&m->ask.why, why, RELAXED);
    gort__store(&m->ask.slice, w->slice, RELAXED);
    gort__count(&gort__sched.counts.preempt_asked, 1);
    gort__or(&m->attention, GORT_ATT_PREEMPT, RELEASE); /* pairs with gort__entry_attend */
    if (!chain)
        gort__preempt_ask(m, w->by_tgkill);
    return true;
}

static void begin_watch(struct gort__p *p, struct gort__m *m, uint32_t slice, uint64_t switches, int64_t now)
{
    struct gort__watch *w = &p->watch;
    *w = (struct gort__watch){
        .m = m, .slice = slice, .switches = switches, .since = now, .looked = now, .from = now};
    if (!m)
        return;
    if (gort__load(&m->turn.p, ACQUIRE) == p && /* pairs with handoff.c:resume */
        gort__load(&m->turn.slice, RELAXED) == slice)
        w->since = gort__load(&m->burst.at, RELAXED) - gort__load(&m->turn.used, RELAXED);
    w->cpu = w->from_cpu = w->stood_cpu = gort__os_thread_cpu(gort__load(&m->tid, RELAXED));
    w->stood = now;
    w->stall = (struct gort__cpu_stall){0, now};
}

/* One that has run before is to run next there. Records are type-stable: an old answer does no harm. */
static GORT_NO_TSAN bool next_has_run(const struct gort__p *p)
{
    const struct gort__g *next = gort__load(&p->runq.next, RELAXED);
    return next && next->ctx.pc;
}

/* moved becomes true if the P was at work since the last look. */
static void look_at(struct gort__p *p, int64_t now, struct waiting waiting, bool *moved)
{
    struct gort__watch *w = &p->watch;
    struct gort__m *m = gort__load(&p->m, ACQUIRE); /* pairs with m.c, handoff.c, p.c */
    uint32_t slice = gort__load(&p->slice, RELAXED);
    uint64_t switches = gort__load(&p->switches, RELAXED), done = switches - w->switches;
    bool anybody = waiting.woken || waiting.others, first = !m || m != w->m || slice != w->slice;
    *moved |= m || first;
    mon.churning &= !m || done >= GORT_CHURN_MIN;
    if (first) {
        begin_watch(p, m, slice, switches, now);
        if (m && mark_call(m)) {
            mon.soon |= anybody; /* is it still there? */
            note_call(w, gort__load(&m->tid, RELAXED));
        }
        /* A clock that stands still: it has no CPU, and may have gone to sleep at once. */
        if (m && anybody && gort__load(&m->g, RELAXED) != &m->g0)
            mon.soon |= gort__os_thread_cpu(gort__load(&m->tid, RELAXED)) == w->cpu &&
                        gort__os_thread_state(gort__load(&m->tid, RELAXED)) == GORT__OS_TASK_SLEEPS;
        if (!m || now - mon.taken_at >= GORT_CALM)
            return;
    }
    if (first)
        done = 0;
    w->done = done;
    w->switches = switches;
    if (!anybody || gort__load(&m->g, RELAXED) == &m->g0)
        return;
    int64_t cpu = gort__os_thread_cpu(gort__load(&m->tid, RELAXED));
    if (!done && !gort__load(&m->inside, RELAXED) && retake(p, m, now, cpu)) {
        mon.soon = true;
        return;
    }
    bool next = next_has_run(p), woken = gort__load(&p->mode, RELAXED) & GORT_MODE_WOKEN,
         late = w->next && next && !done;
    w->next = next;
    if (gort__sched.conf.preempt_off)
        return;
    if (done) {
        w->stood = now;
        w->stood_cpu = cpu;
    }
    int64_t end = w->since + (woken ? GORT_SLICE / 2 : GORT_SLICE),
            left = w->stood_cpu + GORT_SLICE_WOKEN - cpu;
    if (woken && end > now + left) /* that long has the goroutine that runs now, by its own clock */
        end = left > 0 ? now + left : now;
    bool turns = waiting.others || woken; /* else make_room sees to the woken ones that wait */
    if (turns && now >= end)
        ask_to_stop(p, m, now, GORT_WHY_TURN, done);
    else if (late && now - w->since >= GORT_NEXT_LATE)
        ask_to_stop(p, m, now, GORT_WHY_NEXT, false);
    if (turns && end > now && end < mon.end)
        mon.end = end > now + GORT_LOOK_FIRST ? end : now + GORT_LOOK_FIRST;
}

/* The request is still on its way; if no thread was there for the P it is over, and is made again soon. */
static bool is_asked(const struct gort__watch *w, const struct gort__m *m, int64_t now)
{
    int64_t again = gort__load(&m->attention, RELAXED) & GORT_ATT_PREEMPT ? GORT_ASK_AGAIN : GORT_LOOK;
    return w->asked && w->why == GORT_WHY_WOKEN && now - w->asked < again;
}

/*
 * Woken goroutines wait, and all Ps are busy. Those in the ring of a P wait for that P; for those in
 * sched.woken as many Ps are asked to let them go first. Hogs are the first choice: they can be stopped at
 * once.
 */
static void make_room(int64_t now)
{
    struct gort__sched *s = &gort__sched;
    int n = gort__load(&s->procs, RELAXED);
    uint32_t woken = gort__load(&s->events.n, RELAXED);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            struct gort__p *p = gort__load(&s->ps[i], ACQUIRE); /* pairs with p.c */
            struct gort__watch *w = &p->watch;
            struct gort__m *m = w->m;
            bool own = !gort__runq_empty(&p->events);
            if ((!own && !woken) || !m || gort__load(&p->m, ACQUIRE) != m || /* pairs with handoff.c */
                gort__load(&p->slice, RELAXED) != w->slice || gort__load(&m->g, RELAXED) == &m->g0 ||
                !gort__turn_may_stop(p))
                continue;
            bool asked = is_asked(w, m, now);
            if (!asked && pass == 0 && (w->done || !pure_hog(p, m)))
                continue;
            if (!asked)
                asked = ask_to_stop(p, m, now, GORT_WHY_WOKEN, w->done) || pass == 0;
            else if (pass == 1)
                continue; /* counted in the first pass */
            if (asked && woken && !own)
                woken--;
        }
}

/* --- the loop --------------------------------------------------------------------------------- */

/* How long it waits until it does again what a P has done before it came, or has not: between nothing and
 * GORT_SLACK_MOST. */
static void adapt(int64_t *slack, bool spurious)
{
    if (spurious)
        *slack = *slack < GORT_SLACK_LEAST      ? GORT_SLACK_LEAST
                 : *slack < GORT_SLACK_MOST / 2 ? 2 * *slack
                                                : GORT_SLACK_MOST;
    else
        *slack /= 4;
}

/* Timers and fds while all Ps are busy. */
static void see_to_events(int64_t now)
{
    int64_t next = gort__timer_next();
    if (next <= now - mon.slack) {
        gort__timer_watch();
        adapt(&mon.slack, false);
    }
    bool late = mon.listened || now - gort__load(&gort__sched.poll.at, RELAXED) >= GORT_SLACK_MOST;
    if (!gort__poll_pending() || !late || now < mon.deaf_to)
        return;
    bool got = gort__netpoll(gort__m_self(), INT64_MIN);
    if (got || mon.listened)
        adapt(&mon.deaf, !got);
    mon.deaf_to = now + mon.deaf;
}

void gort__sysmon_stand_in(void)
{
    int64_t now = gort__os_now();
    mon.slack = mon.deaf_to = 0;
    see_to_events(now);
}

/* One look at everything. */
static void look_around(void)
{
    struct gort__sched *s = &gort__sched;
    int64_t now = gort__os_now(), alarm = mon.tick;
    /* A P that is idle for want of a thread is no help to those who wait. */
    bool idle_p = gort__load(&s->idle_count, RELAXED) != 0 && !gort__load(&s->limit.no_m, RELAXED),
         moved = false;
    bool world = gort__load(&s->world_word, RELAXED) & 1;
    gort__turn_rate(now, false);
    if (!idle_p)
        see_to_events(now);
    else if (gort__timer_next() <= now - GORT_OVERDUE)
        gort__timer_watch();
    struct waiting waiting = idle_p || world ? (struct waiting){0} : who_waits();
    int n = gort__load(&s->procs, RELAXED);
    mon.soon = false;
    mon.churning = true;
    mon.end = INT64_MAX;
    for (int i = 0; i < n; i++) {
        struct gort__p *p = gort__load(&s->ps[i], ACQUIRE); /* pairs with p.c */
        look_at(p, now, waiting, &moved);
        gort__wake_defer_watch(p);
    }
    if (waiting.woken && !s->conf.preempt_off)
        make_room(now);
    if (moved)
        gort__hooks.outer.scavenge_stir();
    bool anybody = waiting.woken || waiting.others, watched = gort__load(&s->defer.used, RELAXED);
    if (watched)
        gort__store(&s->defer.used, false, RELAXED);
    gort__store(&s->defer.watched, watched, RELAXED);
    bool is_long = !anybody && !mon.churning && !mon.soon;
    if (!is_long || watched)
        mon.calm = 0;
    int64_t most = mon.churning || watched ? GORT_LOOK_CHURNING
                   : anybody               ? GORT_LOOK
                                           : GORT_LOOK_LONG << mon.calm;
    bool fast = mon.soon || now - mon.taken_at < GORT_CALM;
    mon.tick = !fast ? most : mon.soon ? GORT_LOOK_FIRST : 2 * alarm;
    mon.tick = mon.tick < GORT_LOOK_FIRST ? GORT_LOOK_FIRST : mon.tick < most ? mon.tick : most;
    if (waiting.woken && !mon.churning && mon.tick > GORT_LOOK)
        mon.tick = GORT_LOOK;
    int64_t until = now + mon.tick < mon.end ? now + mon.tick : mon.end, next = gort__timer_next(),
            grace = idle_p ? GORT_OVERDUE : mon.slack;
    if (next < until - grace &&
        !(idle_p && next > now && gort__poller_covers(next))) /* else each sleep of a millisecond wakes it */
        until = next + grace > now ? next + grace : now;
    bool rests = gort__sysmon_sleep_if_idle(now), listen = !idle_p && gort__poll_pending();
    if (listen && now < mon.deaf_to) { /* for no longer than that: it needs nobody who cuts it short */
        listen = is_long = false;
        until = until < mon.deaf_to ? until : mon.deaf_to;
    }
    if (!rests) /* long, else each announced call would wake it at once */
        gort__sysmon_sleep_until(until, is_long, listen, grace);
    bool urgent = gort__sysmon_sleep();
    mon.listened = listen && !rests;
    int64_t woke = gort__os_now();
    if (mon.listened && woke >= until - 50 * US) /* it was the alarm */
        mon.listened = false;
    if (!idle_p && next <= until && next <= woke && gort__timer_next() > woke)
        adapt(&mon.slack, true); /* a P has fired it */
    /* Without membarrier one that is queued in the moment before a long sleep may go unseen (sysmon_sleep.c):
     * no longer ones then. */
    bool undisturbed = !urgent && !rests && is_long && until == now + most && woke >= until &&
                       !gort__load(&gort__os_light_is_full, RELAXED);
    mon.calm = !undisturbed ? 0 : mon.calm < GORT_CALM_MOST ? mon.calm + 1 : GORT_CALM_MOST;
    if (urgent)
        mon.tick = GORT_LOOK_FIRST;
    for (int i = 0; rests && i < n; i++)                /* what was seen before is long ago */
        gort__load(&s->ps[i], ACQUIRE)->watch.m = NULL; /* pairs with p.c */
}

static void loop(void *unused)
{
    (void)unused;
    gort__m_set_self(mon.m);
    mon.m->err = gort__os_errno();
    gort__store(&mon.m->tid, gort__os_thread_id(), RELAXED);
    gort__os_thread_precise();
    gort__turn_rate(gort__os_now(), true);
    while (!gort__load(&mon.quit, ACQUIRE)) /* pairs with gort__sysmon_stop */
        look_around();
    gort__store(&mon.over, 1, RELEASE); /* pairs with gort__sysmon_quiet */
    gort__os_futex_wake(&mon.over, 1);
}

int gort__sysmon_start(void)
{
    mon.quit = false;
    mon.over = 0;
    mon.tick = GORT_LOOK_FIRST;
    mon.slack = mon.deaf = mon.deaf_to = mon.taken_at = 0;
    mon.calm = 0;
    mon.listened = false;
    mon.m = gort__m_make(true);
    if (!mon.m)
        return -ENOMEM;
    gort__store(&mon.m->inside, 1, RELAXED);
    gort__sysmon_sleep_open();
    int err = gort__os_thread_start(&mon.thread, loop, NULL, "gort-sysmon");
    if (err) {
        gort__sysmon_sleep_close();
        gort__m_destroy(mon.m);
        return err;
    }
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__sched.sysmon.on = true;
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    return 0;
}

void gort__sysmon_quiet(void)
{
    if (!gort__sched.sysmon.on || gort__load(&mon.quit, RELAXED))
        return;
    gort__store(&mon.quit, true, RELEASE); /* pairs with the loop */
    gort__sysmon_sleep_quit();
    while (!gort__load(&mon.over, ACQUIRE)) /* pairs with the loop */
        gort__os_futex_wait(&mon.over, 0, INT64_MAX);
}

void gort__sysmon_stop(void)
{
    if (!gort__sched.sysmon.on)
        return;
    gort__sysmon_quiet();
    gort__os_thread_join(mon.thread);
    gort__sysmon_sleep_close();
    gort__store(&gort__sched.defer.watched, false, RELAXED);
    gort__m_destroy(mon.m);
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__sched.sysmon.on = false;
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

/* SPDX-License-Identifier: MIT */
/*
 * sysmon.c - the monitor: a thread without a P that sees to it that nobody is kept from running.
 *
 * At each tick it looks at every P whose thread runs a goroutine while others wait:
 *     in an announced blocking call since the last tick,
 *     and it sleeps or has used some CPU time in it          its P is taken away
 *     in user code, its CPU clock stands still, asleep in
 *     the kernel according to /proc                          its P is taken away; once it computes it must wait for one
 *     the same, and /proc cannot be read (no fd left)        the same after 10 ms of standing still: if it only waited for
 *                                                            a CPU, that costs a change of hands
 *     in one time slice for too long                         it is asked to stop: by its CPU timer, or by tgkill when one
 *                                                            waits that has run before, and it has not slept in this
 *                                                            slice and some before
 * Too long is 10 ms, more while many are held (owner.c), but 1 ms when one waits that has run before:
 * something it waited for has come. A tick is 20 us while it finds something to do and grows to 10 ms; 1 ms at
 * most while one waits that has run before, 4 ms while others wait for those who compute (they only want their turn), or
 * while every P is brisk, as in a busy server: each look costs some 25 to 40 us of a CPU on a virtual machine.
 * While no P goes on it also sees to timers and fds, and to timers that are long overdue because whoever was on duty has
 * found something else to do.
 * While all Ps are idle it need not look: rest.c.
 * Threads: one.
 */
#include <errno.h>

#include "base/fatal.h"
#include "poll/poll.h"
#include "sched/verbs.h"

#define US           INT64_C(1000)
#define MS           INT64_C(1000000)
#define TICK_MIN     (20 * US)
#define TICK_WAITING (1 * MS)
#define TICK_TURN    (4 * MS)
#define TICK_MAX     (10 * MS)
#define QUIET_ROUNDS 50 /* without anything to do before ticks grow */
#define SLICE        (10 * MS)
#define SLICE_MAX    (100 * MS)
#define SLICE_WOKEN  (1 * MS)
#define OVERDUE      (4 * MS) /* a timer, while a P is idle */
#define POLL_LATE    (1 * MS) /* fds and timers while all Ps are busy: those look themselves */
#define TIMER_LATE   (200 * US)
#define ASK_AGAIN    (10 * MS)
#define BLIND        (10 * MS) /* a CPU clock that stands still for so long: asleep, if /proc does not tell */
#define CALL_CPU     (200 * US)         /* in one announced call: it computes there */
#define BRISK        8                  /* time slices of a P between two looks */
#define BRISK_AFTER  (100 * MS)         /* a hog: it may be back soon */
#define HOG_CPU      (TICK_WAITING / 2) /* so much CPU time without a sleep in this slice, */
#define HOG_PROVEN   (10 * MS)          /* and so much together with former slices, make a hog */
#define HOG_LOOK     (100 * US)         /* what was seen longer ago proves nothing */

static struct {
    struct gort__m *m; /* stands for the thread, so that what it calls finds an M */
    uintptr_t thread;
    bool quit;    /* atomic */
    int64_t tick; /* how long it sleeps; owned by the thread, as quiet */
    int quiet;    /* rounds without anything to do */
    bool soon;    /* this look has seen something that the next one will tell */
    bool brisk;   /* every P at work has gone through many time slices since the last look */
    int64_t hogs; /* when one was last seen to compute, or to sleep, while one waited that had run before */
} mon;

/* --- what waits ------------------------------------------------------------------------------- */

enum { NOBODY, SOMEBODY, WOKEN }; /* WOKEN: one that has run before */

static GORT_NO_TSAN int kind_of(const struct gort__g *g)
{
    return !g ? NOBODY : g->ctx.pc ? WOKEN : SOMEBODY;
}

static GORT_NO_TSAN int kind_of_queued(void)
{
    return kind_of(gort__sched.queue.first);
}

/* Records are type-stable: looking at one that has just been taken gives an old answer, not a wrong access. */
static int who_waits(void)
{
    struct gort__sched *s = &gort__sched;
    int best = gort__load(&s->held_n, RELAXED) ? SOMEBODY : NOBODY;
    if (gort__load(&s->queued, RELAXED)) {
        int kind = kind_of_queued();
        best = kind > best ? kind : best;
    }
    int n = gort__load(&s->procs, RELAXED);
    for (int i = 0; i < n && best != WOKEN; i++) {
        struct gort__runq *q = &gort__load(&s->ps[i], ACQUIRE)->runq; /* pairs with proc.c */
        if (gort__runq_empty(q))
            continue;
        struct gort__g *g = gort__load(&q->next, RELAXED);
        if (!g)
            g = gort__load(&q->ring[gort__load(&q->head, RELAXED) % GORT_RUNQ_SIZE], RELAXED);
        int kind = kind_of(g);
        best = kind > best ? kind : best;
    }
    return best;
}

/* --- one P ------------------------------------------------------------------------------------ */

bool gort__sysmon_asleep(struct gort__still *s, int tid, int64_t now, bool since_last)
{
    int64_t cpu = gort__os_thread_cpu(tid);
    if (cpu < 0 || cpu != s->cpu) {
        *s = (struct gort__still){cpu, now};
        if (since_last)
            return false;
    }
    enum gort__os_task state = gort__os_thread_state(tid);
    return state == GORT__OS_TASK_SLEEPS || (state == GORT__OS_TASK_UNKNOWN && now - s->since >= BLIND);
}

/* What m->block was; marks the call that it is in, if any: a mark that is still there at the next look tells that the call is. */
static uint32_t mark_call(struct gort__m *m)
{
    uint32_t block = gort__load(&m->block, RELAXED), expected = block;
    if (block == GORT_BLOCK_CALL || block == (GORT_BLOCK_CALL | GORT_BLOCK_MORE))
        gort__cas(&m->block, &expected, block | GORT_BLOCK_SEEN, RELAXED);
    return block;
}

/* The thread is in a call that was marked just now. */
static void note_call(struct gort__watch *w, int tid)
{
    w->call_cpu = gort__os_thread_cpu(tid);
    w->ready_cpu = -1;
}

/*
 * Whether the call that a thread has been in since an earlier look is worth its P. Not if it only waits for a CPU, which
 * whoever gets the P would have to wait for as well: on a busy machine many a brief call is found so, and the change of
 * hands costs more than the call. The file that tells is dear: once it has said so there is no news until the thread's CPU
 * clock has moved. *sleeps: it waits for something, and calls like it may do so, too.
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
    return *sleeps || cpu - w->call_cpu >= CALL_CPU;
}

static bool retake(struct gort__p *p, struct gort__m *m, int64_t now)
{
    struct gort__watch *w = &p->watch;
    int tid = gort__load(&m->tid, RELAXED);
    uint32_t block = mark_call(m);
    if (block & GORT_BLOCK_SEEN) {
        bool sleeps, taken = worth_taking(w, tid, &sleeps) && gort__p_take_away(p, m, true);
        if (taken && sleeps) /* before the call is over: others may be about to make such calls */
            gort__store(&p->long_blocks, GORT_LONG_BLOCKS, RELAXED);
        return taken;
    }
    if (block) {
        mon.soon = true; /* is it still there? */
        note_call(w, tid);
        return false;
    }
    bool first = !w->still.cpu, asleep = gort__sysmon_asleep(&w->still, tid, now, true);
    mon.soon |= first || asleep; /* does its clock move? Is there a thread now that can have its P? */
    if (!asleep || !gort__p_take_away(p, m, false))
        return false;
    mon.hogs = now;              /* others like it may come */
    gort__preempt_ask(m, false); /* when it comes back and computes */
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__store(&gort__sched.hurry, gort__sched.held.n,
                RELAXED); /* perhaps it waits for a lock of one of those */
    gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
    return true;
}

/*
 * The thread has a CPU in this very moment, or it waits for one and has not slept since `waits`: a poll that has woken up and
 * waits for a CPU is still cut short. Its clock tells more quickly than any file whether it has run since.
 */
static bool computes_now(int tid, uint64_t waits)
{
    int64_t before = gort__os_thread_cpu(tid), cpu = gort__os_thread_cpu(tid);
    if (cpu != before)
        return true;
    return gort__os_thread_state(tid) == GORT__OS_TASK_RUNS && gort__os_thread_waits(tid) == waits &&
           gort__os_thread_cpu(tid) == cpu;
}

/*
 * The thread has done nothing but compute since it was first seen to run for long, and so it did before (lap.c). It must have
 * got the CPU for that: one that waited for it all the time has not slept either, and may be about to make a call that a
 * signal would cut short. So may a hog, too: nobody can know; but the longer it has only computed the less likely is it that it
 * makes such a call in the very moment between the last look at its clock and the signal.
 */
static bool pure_hog(struct gort__p *p, struct gort__m *m)
{
    struct gort__watch *w = &p->watch;
    int tid = gort__load(&m->tid, RELAXED);
    int64_t cpu = gort__os_thread_cpu(tid);
    uint64_t waits = gort__os_thread_waits(tid);
    if (!w->measured || waits != w->waits) {
        w->waits = waits;
        w->computed_at = cpu;
        w->measured = true;
        return false;
    }
    int64_t computed = cpu - w->computed_at, from = gort__os_now();
    if (computed >= HOG_CPU)
        mon.hogs = from;
    if (waits == UINT64_MAX || computed < HOG_CPU || computed + gort__lap_pure(m, p, waits) < HOG_PROVEN)
        return false;
    return computes_now(tid, waits) && gort__os_now() - from < HOG_LOOK;
}

/* urgent: not just for somebody's turn. Whether one does nothing but compute is dear to find out, and the CPU timer does for the rest. */
static bool ask_to_stop(struct gort__p *p, struct gort__m *m, int64_t now, bool urgent)
{
    struct gort__watch *w = &p->watch;
    if (w->asked && now - w->asked < (w->hurried ? ASK_AGAIN : TICK_WAITING))
        return false;
    if (w->asked)
        gort__preempt_again(); /* it did not come: the program may have installed a handler of its own */
    w->hurried = urgent && pure_hog(p, m);
    w->asked = now;
    gort__store(&m->preempt_slice, w->slice, RELAXED);
    gort__or(&m->attention, GORT_ATT_PREEMPT, RELEASE); /* pairs with gort__attend */
    gort__preempt_ask(m, w->hurried);
    return true;
}

/* True: something was done. stuck becomes false when the P has gone on to another time slice, or is idle, and moved true
 * if it was at work since the last look. */
static bool look_at(struct gort__p *p, int64_t now, int waiting, bool *stuck, bool *moved)
{
    struct gort__watch *w = &p->watch;
    struct gort__m *m = gort__load(&p->m, ACQUIRE); /* pairs with m.c, owner.c, proc.c */
    uint32_t slice = gort__load(&p->slice, RELAXED);
    uint64_t switches = gort__load(&p->switches, RELAXED);
    *moved |= m || m != w->m || slice != w->slice;
    mon.brisk &= !m || slice - w->slice >= BRISK;
    if (!m || m != w->m || slice != w->slice) {
        *w = (struct gort__watch){.m = m, .slice = slice, .switches = switches, .since = now};
        if (m && mark_call(m)) {
            mon.soon |= waiting != NOBODY; /* is it still there? */
            note_call(w, gort__load(&m->tid, RELAXED));
        }
        *stuck = false;
        return false;
    }
    bool same = switches == w->switches;
    w->switches = switches;
    if (waiting == NOBODY || gort__load(&m->g, RELAXED) == &m->g0)
        return false;
    if (same && !gort__load(&m->inside, RELAXED) && retake(p, m, now))
        return true;
    int64_t limit = SLICE + SLICE * gort__load(&gort__sched.held_n, RELAXED) / 8;
    limit = waiting == WOKEN ? SLICE_WOKEN : limit < SLICE_MAX ? limit : SLICE_MAX;
    bool urgent = waiting == WOKEN, late = now - w->since >= limit && !gort__sched.conf.preempt_off;
    return late && ask_to_stop(p, m, now, urgent) && urgent; /* a turn can wait for a longer tick, too */
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Timers and fds are left to us. A P that is in one long system call of its own is not stuck yet: fds have some time.
 * True: something was ready, and somebody may have to stop for it. (Else a timer does not shorten the tick: that ends in
 * time for the next one in any case.) */
static bool see_to_events(int64_t now, bool stuck)
{
    bool late = now - gort__load(&gort__sched.polled_at, RELAXED) >= POLL_LATE;
    bool did = late && gort__poll_pending() && gort__netpoll(gort__m_self(), INT64_MIN);
    if (gort__timer_next() <= now - TIMER_LATE) {
        gort__timer_watch();
        did |= stuck;
    }
    return did;
}

void gort__sysmon_stand_in(void)
{
    see_to_events(gort__os_now(), true);
}

/* The length of the tick after one in which something was done, or not. */
static void adapt(bool busy, int64_t most)
{
    if (busy) {
        mon.tick = TICK_MIN;
        mon.quiet = 0;
    } else if (mon.tick > TICK_MIN || ++mon.quiet > QUIET_ROUNDS) {
        mon.tick *= 2;
    }
    mon.tick = mon.tick < most ? mon.tick : most;
}

/* One look at everything. */
static void look_around(void)
{
    struct gort__sched *s = &gort__sched;
    bool idle_p = gort__load(&s->idle_count, RELAXED) != 0, busy = false, stuck = !idle_p, moved = false;
    int waiting = idle_p || (gort__load(&s->world_word, RELAXED) & 1) ? NOBODY : who_waits();
    int64_t now = gort__os_now();
    int n = gort__load(&s->procs, RELAXED);
    mon.soon = false;
    mon.brisk = now - mon.hogs >= BRISK_AFTER;
    for (int i = 0; i < n; i++) {
        struct gort__p *p = gort__load(&s->ps[i], ACQUIRE); /* pairs with proc.c */
        busy |= look_at(p, now, waiting, &stuck, &moved);
        gort__later_watch(p);
    }
    if (moved)
        gort__shrink_stir();
    int64_t grace = stuck ? TIMER_LATE : OVERDUE;
    if (stuck || gort__timer_next() <= now - grace)
        busy |= see_to_events(now, stuck);
    bool soon = mon.soon || (waiting == WOKEN && !mon.brisk) || (stuck && gort__poll_pending());
    bool watched = gort__load(&s->later_used, RELAXED);
    if (watched)
        gort__store(&s->later_used, false, RELAXED);
    adapt(busy, soon ? TICK_WAITING : waiting != NOBODY || watched ? TICK_TURN : TICK_MAX);
    gort__store(&s->later_watched, watched, RELAXED);
    int64_t until = now + mon.tick, next = gort__timer_next();
    if (next < until - grace &&
        !(idle_p && next > now && gort__duty_guards(next))) /* else each sleep of a millisecond wakes it */
        until = next + grace > now ? next + grace : now;
    bool rests = gort__rest_if_idle(now);
    if (!rests) /* long, else each announced call would make it hurry */
        gort__rest_until(until, mon.tick > TICK_WAITING && waiting != WOKEN);
    if (gort__rest_sleep())
        adapt(true, TICK_MAX);
    else if (rests)
        mon.tick = TICK_WAITING / 2;
    for (int i = 0; rests && i < n; i++)                /* what was seen before is long ago */
        gort__load(&s->ps[i], ACQUIRE)->watch.m = NULL; /* pairs with proc.c */
}

static void loop(void *unused)
{
    (void)unused;
    gort__m_set_self(mon.m);
    mon.m->err = gort__os_errno();
    gort__store(&mon.m->tid, gort__os_thread_id(), RELAXED);
    gort__os_thread_precise();
    while (!gort__load(&mon.quit, ACQUIRE)) /* pairs with gort__sysmon_stop */
        look_around();
}

int gort__sysmon_start(void)
{
    mon.quit = false;
    mon.tick = TICK_MIN;
    mon.quiet = 0;
    mon.m = gort__m_make(true);
    if (!mon.m)
        return -ENOMEM;
    gort__store(&mon.m->inside, 1, RELAXED);
    gort__rest_open();
    int err = gort__os_thread_start(&mon.thread, loop, NULL, "gort-sysmon");
    if (err) {
        gort__rest_close();
        gort__m_destroy(mon.m);
        return err;
    }
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__sched.sysmon_on = true;
    gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
    return 0;
}

void gort__sysmon_stop(void)
{
    if (!gort__sched.sysmon_on)
        return;
    gort__store(&mon.quit, true, RELEASE); /* pairs with the loop */
    gort__rest_quit();
    gort__os_thread_join(mon.thread);
    gort__rest_close();
    gort__store(&gort__sched.later_watched, false, RELAXED);
    gort__m_destroy(mon.m);
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__sched.sysmon_on = false;
    gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
}

/* SPDX-License-Identifier: MIT */
/*
 * rest.c - how sysmon sleeps: until its next look, or for as long as there is nothing to look at.
 *
 * Why: a look takes 1 us, but waking a thread for it and going to sleep again 20 to 25. A program that does a little every few
 * milliseconds would pay as much for being watched as for what it does. So when all Ps are idle sysmon has no alarm: it RESTs. Whoever
 * takes the first P sets one for it, which wakes nobody and takes 0.3 us (GUARD); who gives back the last P takes it away again.
 * Sysmon wakes only if somebody was at work all that time, and then looks at its own pace.
 * The guard is 4 ms ahead, less if a timer is due: an alarm that is earlier than the kernel's own tick costs two settings of the
 * CPU's timer, some 10 us on a virtual machine (os/linux/beat.c).
 *
 *                 <-- the first P is taken --
 *     GUARD, NEAR                               REST <-- all Ps are idle -- AWAKE <--> AWAKE or LONG, in a tick
 *          |        -- all are idle again ---->                               ^
 *          '--------------------- time; REST and LONG: a poke ----------------'
 *
 * For a program that is idle for a moment a thousand times a second the guard is not taken away each time, but every PAUSE at
 * most. If one comes in vain all the same, as those for timers may, it is better off with looks at sysmon's own pace: then sysmon does not REST
 * as long as all become idle more often than every PAUSE.
 * A poke in GUARD only brings it nearer (NEAR): a program with brief announced calls would have it hurry each time.
 * And it is forgotten if all Ps are idle before that: so who pokes for something that outlasts this must wake an M as well.
 * The price: who was idle, and then computes or blocks without a call of ours, is noticed up to 4 ms later.
 *
 * Invariants: (1) the state and the alarm change together, under the lock (but that a sleep that has ended is AWAKE), and to
 * REST and GUARD under sched.lock, too, so who holds that and reads neither is sure; (2) REST: all Ps are idle, and memory is not short
 * (then nobody else comes for timers), or somebody who changes that holds sched.lock and has yet to see the state; a world that is stopped
 * meanwhile needs no looks, and takes Ps when it goes on; (3) every other state has
 * an alarm.
 * tests/model/rest.c explores them, and that no guard and no poke is lost.
 * Threads: any; sleep by sysmon alone.
 */
#include "poll/poll.h"
#include "sched/verbs.h"

#define GUARD_MAX INT64_C(4000000) /* ns */
#define GUARD_MIN INT64_C(500000)
#define PAUSE     INT64_C(2000000)

static struct {
    struct gort__lock lock; /* rank GORT_RANK_REST; guards the rest and gort__sched.sysmon_state */
    struct gort__os_alarm alarm;
    int64_t guard;  /* GUARD: when it comes */
    int64_t rested; /* when one was last taken away */
    bool hurry;     /* it was poked for something that may be over in microseconds */
    bool quit;
    int64_t until; /* when the alarm comes; atomic */
    int64_t slack; /* so much later than a timer it may come; atomic */
    bool listen;   /* fds that are ready wake it; atomic, written by sysmon */
    /* Owned by sysmon. */
    int64_t looked; /* when it last did, */
    uint32_t times; /* and how often all Ps had been idle until then */
    bool guarded;   /* a guard has woken it, */
    bool vain;      /* and all were idle then, as they often are */
} rest;

static void lock(void)
{
    gort__lock_take(&rest.lock, GORT_RANK_REST);
}

static void unlock(void)
{
    gort__lock_drop(&rest.lock, GORT_RANK_REST);
}

static enum gort__mon state(void)
{
    return gort__load(&gort__sched.sysmon_state, RELAXED);
}

/* Called with the lock held. */
static void change(enum gort__mon to, int64_t when)
{
    gort__store(&gort__sched.sysmon_state, to, RELAXED);
    gort__store(&rest.until, when, RELAXED);
    gort__os_alarm_set(&rest.alarm, when);
}

void gort__rest_open(void)
{
    gort__os_alarm_open(&rest.alarm);
    rest.rested = rest.looked = 0;
    rest.times = gort__load(&gort__sched.idle_times, RELAXED);
    rest.hurry = rest.quit = rest.guarded = rest.vain = false;
    gort__store(&rest.listen, false, RELAXED);
    gort__store(&rest.until, 0, RELAXED);
    gort__store(&rest.slack, 0, RELAXED);
}

void gort__rest_quit(void)
{
    lock();
    rest.quit = true;
    change(GORT_MON_AWAKE, 0);
    unlock();
}

void gort__rest_close(void)
{
    gort__os_alarm_close(&rest.alarm);
}

void gort__sysmon_poke_slow(void)
{
    lock();
    if (state() == GORT_MON_GUARD) { /* it may be over before it was worth it */
        int64_t soon = gort__os_now() + GUARD_MIN;
        change(GORT_MON_NEAR, soon < rest.guard ? soon : rest.guard);
    } else if (state() == GORT_MON_LONG || state() == GORT_MON_REST) {
        rest.hurry = true;
        change(GORT_MON_AWAKE, 0);
    }
    unlock();
}

void gort__rest_work(void)
{
    int64_t soon = gort__os_now() + GORT_LOOK;
    lock();
    if (state() == GORT_MON_LONG)
        change(GORT_MON_AWAKE, soon < rest.until ? soon : rest.until);
    unlock();
}

static bool somebody_waits(void)
{
    return gort__p_has_work() || gort__load(&gort__sched.line_n, RELAXED);
}

/*
 * After the alarm was put off: what came meanwhile, from a setter or publisher who still saw the earlier alarm. A timer or an fd that
 * somebody waits for: while a P is idle an M is on duty for them, and the last one to leave it, with no P idle any more, has looked at
 * what sysmon does (gort__rest_events). A goroutine in a queue, if the sleep is a long one.
 */
static void look_back(bool is_long)
{
    gort__fence(SEQ_CST); /* pairs with gort__duty_notice, and with the publisher's fence in idle.c */
    if (is_long && gort__alone() && !gort__load(&gort__os_light_is_full, RELAXED))
        gort__os_fence_heavy(); /* the holder of the only P has no fence of its own (queue.c, verbs.h) */
    int64_t next = gort__timer_next();
    if (next != INT64_MAX && gort__load(&gort__sched.idle_count, RELAXED) == 0)
        gort__rest_timer(next);
    bool deaf = gort__poll_pending() && gort__load(&gort__sched.idle_count, RELAXED) == 0 &&
                !gort__load(&rest.listen, RELAXED);
    if (is_long && (deaf || somebody_waits()))
        gort__rest_work();
}

/* A setting of the alarm instead of a wake-up in vain. */
void gort__rest_calm(void)
{
    if (somebody_waits())
        return;
    int64_t now = gort__os_now(), next = gort__timer_next();
    lock();
    bool calm = state() == GORT_MON_AWAKE && !rest.hurry && !rest.quit && rest.until > now;
    if (calm) {
        int64_t until = now + GORT_LOOK_LONG;
        int64_t slack = gort__load(&rest.slack, RELAXED);
        change(GORT_MON_LONG, next < until - slack ? next + slack : until);
    }
    unlock();
    if (calm)
        look_back(true);
}

void gort__rest_timer(int64_t when)
{
    int64_t slack = gort__load(&rest.slack, RELAXED),
            at = when < INT64_MAX - slack ? when + slack : INT64_MAX;
    if (at >=
        gort__load(&rest.until, RELAXED)) /* after the fence of gort__duty_notice; pairs with look_back */
        return;
    lock();
    if (at < rest.until && (state() == GORT_MON_LONG || state() == GORT_MON_AWAKE) && !rest.quit)
        change(state(), at);
    unlock();
}

/* If it does not listen its next sleep will be one that does. */
void gort__rest_events(void)
{
    gort__rest_timer(gort__timer_next());
    gort__fence(
        SEQ_CST); /* pairs with look_back: the last idle P was taken, then the look at what sysmon does */
    if (gort__poll_pending() && !gort__load(&rest.listen, RELAXED))
        gort__sysmon_note_work();
}

/* A timer must not wait for long if whoever has the P just computes. (If one is due, it is what the P was taken for.) */
static int64_t guard_until(int64_t now)
{
    int64_t next = gort__timer_next(), least = now + GUARD_MIN, most = now + GUARD_MAX;
    if (next <= now || next >= most)
        return most;
    return next < least ? least : next;
}

void gort__rest_guard_locked(void)
{
    int64_t now = gort__os_now();
    lock();
    if (state() == GORT_MON_REST) {
        rest.guard = guard_until(now);
        change(GORT_MON_GUARD, rest.guard);
    }
    unlock();
}

/* Nobody is at work, and if there is something to do somebody comes for it. */
static bool all_idle_locked(void)
{
    const struct gort__sched *s = &gort__sched;
    return s->idle_count == (uint32_t)s->procs && !s->held.n && !s->line.n && !s->starved &&
           !(s->world_word & 1);
}

void gort__rest_again_locked(void)
{
    if (!all_idle_locked())
        return;
    int64_t now = gort__os_now();
    lock();
    bool again = gort__mon_guards() && now - rest.rested >= PAUSE;
    if (again) {
        rest.rested = now;
        change(GORT_MON_REST, INT64_MAX);
    }
    unlock();
    if (again)
        gort__shrink_stir_locked(); /* as sysmon does when it has seen somebody at work */
}

bool gort__rest_if_idle(int64_t now)
{
    struct gort__sched *s = &gort__sched;
    uint32_t times = gort__load(&s->idle_times, RELAXED) - rest.times;
    bool often = times * PAUSE > now - rest.looked;
    bool busy = gort__load(&s->idle_count, RELAXED) != (uint32_t)gort__load(&s->procs, RELAXED);
    rest.vain = often && (rest.vain || (rest.guarded && !busy));
    rest.times += times;
    rest.looked = now;
    if (rest.vain || busy)
        return false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    lock();
    bool idle = all_idle_locked() && !rest.quit;
    if (idle) {
        gort__store(&rest.listen, false, RELAXED);
        change(GORT_MON_REST, INT64_MAX);
    }
    unlock();
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    return idle;
}

void gort__rest_until(int64_t until, bool is_long, bool listen, int64_t slack)
{
    gort__store(&rest.listen, listen, RELAXED);
    gort__store(&rest.slack, slack, RELAXED);
    lock();
    if (!rest.quit)
        change(is_long ? GORT_MON_LONG : GORT_MON_AWAKE, until);
    unlock();
    look_back(is_long);
}

bool gort__rest_sleep(void)
{
    gort__os_alarm_sleep(&rest.alarm, rest.listen ? gort__poll_handle() : -1);
    lock();
    bool hurry = rest.hurry;
    rest.hurry = false;
    rest.guarded = gort__mon_guards();
    gort__store(&gort__sched.sysmon_state, GORT_MON_AWAKE, RELAXED);
    unlock();
    return hurry;
}

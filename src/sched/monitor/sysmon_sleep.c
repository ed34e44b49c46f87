/* SPDX-License-Identifier: MIT */
/*
 * sysmon_sleep.c - how sysmon sleeps: until its next look, or for as long as there is nothing to look at.
 *
 * Why: a look takes 1 us, but waking a thread for it and going to sleep again 20 to 25. A program that does a
 * little every few milliseconds would pay as much for being watched as for what it does. So when all Ps are
 * idle sysmon has no alarm: it is IDLE. Whoever takes the first P sets one for it, which wakes nobody and
 * takes 0.3 us (ARMED); who gives back the last P takes it away again. Sysmon wakes only if somebody was at
 * work all that time, and then looks at its own pace.
 * The watchdog is 4 ms ahead, less if a timer is due: an alarm that is earlier than the kernel's own tick
 * costs two settings of the CPU's timer, some 10 us on a virtual machine (os/linux/beat.c).
 *
 *                 <-- the first P is taken --
 *     ARMED, ARMED_SOON                         IDLE <-- all Ps are idle -- AWAKE <--> AWAKE or LONG, in a tick
 *          |        -- all are idle again ---->                               ^
 *                   '----------------- time; IDLE and LONG: a notification ------------'
 *
 * For a program that is idle for a moment a thousand times a second the watchdog is not taken away each time,
 * but every GORT_WATCHDOG_PAUSE at most. If one comes for nothing all the same, as those for timers may, it is better off
 * with looks at sysmon's own pace: then sysmon does not become IDLE as long as all become idle more often
 * than every GORT_WATCHDOG_PAUSE.
 * A notification in ARMED only brings the look nearer (ARMED_SOON): a program with brief announced calls
 * would wake it at once each time. And it is forgotten if all Ps are idle before that: so who notifies for
 * something that outlasts this must wake an M as well. The price: who was idle, and then computes or blocks
 * without a call of ours, is noticed up to 4 ms later.
 *
 * Invariants: (1) the state and the alarm change together, under the lock (but that a sleep that has ended is
 * AWAKE), and to IDLE and ARMED under sched.lock, too, so who holds that and reads neither is sure; (2) IDLE:
 * all Ps are idle, and memory is not short (then nobody else comes for timers), or somebody who changes that
 * holds sched.lock and has yet to see the state; a world that is stopped meanwhile needs no looks, and takes
 * Ps when it goes on; (3) every other state has an alarm.
 * tests/model/sysmon_sleep.c explores them, and that no watchdog and no notification is lost.
 * Threads: any; `_locked` functions with sched.lock held; sleep by sysmon alone.
 */
#include "poll/poll.h"
#include "sched/monitor/monitor.h"

static struct {
    struct gort__lock lock; /* rank GORT_RANK_SYSMON; guards the rest and gort__sched.sysmon.state */
    struct gort__os_alarm alarm;
    int64_t watchdog_at; /* ARMED: when it comes */
    int64_t disarmed_at; /* when one was last taken away */
    bool urgent;         /* it was notified for something that may be over in microseconds */
    bool quit;
    int64_t until; /* when the alarm comes; atomic */
    int64_t slack; /* so much later than a timer it may come; atomic */
    bool listen;   /* fds that are ready wake it; atomic, written by sysmon */
    /* Owned by sysmon. */
    int64_t looked;      /* when it last did, */
    uint32_t times;      /* and how often all Ps had been idle until then */
    bool watchdog_fired; /* a watchdog has woken it, */
    bool spurious;       /* and all were idle then, as they often are */
} sleeper;

static void lock(void)
{
    gort__lock_take(&sleeper.lock, GORT_RANK_SYSMON);
}

static void unlock(void)
{
    gort__lock_release(&sleeper.lock, GORT_RANK_SYSMON);
}

static enum gort__mon state(void)
{
    return gort__load(&gort__sched.sysmon.state, RELAXED);
}

/* Called with the lock held. */
static void change(enum gort__mon to, int64_t when)
{
    gort__store(&gort__sched.sysmon.state, to, RELAXED);
    gort__store(&sleeper.until, when, RELAXED);
    gort__os_alarm_set(&sleeper.alarm, when);
}

void gort__sysmon_sleep_open(void)
{
    gort__os_alarm_open(&sleeper.alarm);
    sleeper.disarmed_at = sleeper.looked = 0;
    sleeper.times = gort__load(&gort__sched.idle_times, RELAXED);
    sleeper.urgent = sleeper.quit = sleeper.watchdog_fired = sleeper.spurious = false;
    gort__store(&sleeper.listen, false, RELAXED);
    gort__store(&sleeper.until, 0, RELAXED);
    gort__store(&sleeper.slack, 0, RELAXED);
}

void gort__sysmon_sleep_quit(void)
{
    lock();
    sleeper.quit = true;
    change(GORT_MON_AWAKE, 0);
    unlock();
}

void gort__sysmon_sleep_close(void)
{
    gort__os_alarm_close(&sleeper.alarm);
}

void gort__sysmon_sleep_notify(void)
{
    lock();
    if (state() == GORT_MON_ARMED) { /* it may be over before it was worth it */
        int64_t soon = gort__os_now() + GORT_WATCHDOG_MIN;
        change(GORT_MON_ARMED_SOON, soon < sleeper.watchdog_at ? soon : sleeper.watchdog_at);
    } else if (state() == GORT_MON_LONG || state() == GORT_MON_IDLE) {
        sleeper.urgent = true;
        change(GORT_MON_AWAKE, 0);
    }
    unlock();
}

void gort__sysmon_sleep_work(void)
{
    int64_t soon = gort__os_now() + GORT_LOOK;
    lock();
    if (state() == GORT_MON_LONG)
        change(GORT_MON_AWAKE, soon < sleeper.until ? soon : sleeper.until);
    unlock();
}

static bool somebody_waits(void)
{
    return gort__queue_has_work() || gort__load(&gort__sched.line.n, RELAXED);
}

/*
 * After the alarm was put off: what came meanwhile, from a setter or publisher who still saw the earlier
 * alarm. A timer or an fd that somebody waits for: while a P is idle an M owns the poller for them, and the
 * last one to leave it, with no P idle any more, has looked at what sysmon does (gort__sysmon_sleep_events).
 * A goroutine in a queue, if the sleep is a long one.
 */
static void look_back(bool is_long)
{
    gort__fence(SEQ_CST); /* pairs with gort__poller_notice, and with the publisher's fence in idle.c */
    if (is_long && gort__sched_alone() && !gort__load(&gort__os_light_is_full, RELAXED))
        gort__os_fence_heavy(); /* the holder of the only P has no fence of its own (queue.c, verbs.h) */
    int64_t next = gort__timer_next();
    if (next != INT64_MAX && gort__load(&gort__sched.idle_count, RELAXED) == 0)
        gort__sysmon_sleep_timer(next);
    bool deaf = gort__poll_pending() && gort__load(&gort__sched.idle_count, RELAXED) == 0 &&
                !gort__load(&sleeper.listen, RELAXED);
    if (is_long && (deaf || somebody_waits()))
        gort__sysmon_sleep_work();
}

/* A setting of the alarm instead of a wake-up for nothing. */
void gort__sysmon_sleep_calm(void)
{
    if (somebody_waits())
        return;
    int64_t now = gort__os_now(), next = gort__timer_next();
    lock();
    bool calm = state() == GORT_MON_AWAKE && !sleeper.urgent && !sleeper.quit && sleeper.until > now;
    if (calm) {
        int64_t until = now + GORT_LOOK_LONG;
        int64_t slack = gort__load(&sleeper.slack, RELAXED);
        change(GORT_MON_LONG, next < until - slack ? next + slack : until);
    }
    unlock();
    if (calm)
        look_back(true);
}

void gort__sysmon_sleep_timer(int64_t when)
{
    int64_t slack = gort__load(&sleeper.slack, RELAXED),
            at = when < INT64_MAX - slack ? when + slack : INT64_MAX;
    if (at >= gort__load(&sleeper.until,
                         RELAXED)) /* after the fence of gort__poller_notice; pairs with look_back */
        return;
    lock();
    if (at < sleeper.until && (state() == GORT_MON_LONG || state() == GORT_MON_AWAKE) && !sleeper.quit)
        change(state(), at);
    unlock();
}

/* If it does not listen its next sleep will be one that does. */
void gort__sysmon_sleep_events(void)
{
    gort__sysmon_sleep_timer(gort__timer_next());
    /* Pairs with look_back: the last idle P was taken, then the look at what sysmon does. */
    gort__fence(SEQ_CST);
    if (gort__poll_pending() && !gort__load(&sleeper.listen, RELAXED))
        gort__wake_note_work();
}

/* A timer must not wait for long if whoever has the P just computes. (If one is due, it is what the P was
 * taken for.) */
static int64_t watchdog_until(int64_t now)
{
    int64_t next = gort__timer_next(), least = now + GORT_WATCHDOG_MIN, most = now + GORT_WATCHDOG_MAX;
    if (next <= now || next >= most)
        return most;
    return next < least ? least : next;
}

void gort__sysmon_sleep_arm_locked(void)
{
    int64_t now = gort__os_now();
    lock();
    if (state() == GORT_MON_IDLE) {
        sleeper.watchdog_at = watchdog_until(now);
        change(GORT_MON_ARMED, sleeper.watchdog_at);
    }
    unlock();
}

/* Nobody is at work, and if there is something to do somebody comes for it. */
static bool all_idle_locked(void)
{
    const struct gort__sched *s = &gort__sched;
    return s->idle_count == (uint32_t)s->procs && !s->preempted.list.n && !s->line.list.n &&
           !s->limit.starved && !(s->world_word & 1);
}

void gort__sysmon_sleep_disarm_locked(void)
{
    if (!all_idle_locked())
        return;
    int64_t now = gort__os_now();
    lock();
    bool again = gort__wake_sysmon_armed() && now - sleeper.disarmed_at >= GORT_WATCHDOG_PAUSE;
    if (again) {
        sleeper.disarmed_at = now;
        change(GORT_MON_IDLE, INT64_MAX);
    }
    unlock();
    if (again)
        gort__hooks.outer.scavenge_stir_locked(); /* as sysmon does when it has seen somebody at work */
}

bool gort__sysmon_sleep_if_idle(int64_t now)
{
    struct gort__sched *s = &gort__sched;
    uint32_t times = gort__load(&s->idle_times, RELAXED) - sleeper.times;
    bool often = times * GORT_WATCHDOG_PAUSE > now - sleeper.looked;
    bool busy = gort__load(&s->idle_count, RELAXED) != (uint32_t)gort__load(&s->procs, RELAXED);
    sleeper.spurious = often && (sleeper.spurious || (sleeper.watchdog_fired && !busy));
    sleeper.times += times;
    sleeper.looked = now;
    if (sleeper.spurious || busy)
        return false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    lock();
    bool idle = all_idle_locked() && !sleeper.quit;
    if (idle) {
        gort__store(&sleeper.listen, false, RELAXED);
        change(GORT_MON_IDLE, INT64_MAX);
    }
    unlock();
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return idle;
}

void gort__sysmon_sleep_until(int64_t until, bool is_long, bool listen, int64_t slack)
{
    gort__store(&sleeper.listen, listen, RELAXED);
    gort__store(&sleeper.slack, slack, RELAXED);
    lock();
    if (!sleeper.quit)
        change(is_long ? GORT_MON_LONG : GORT_MON_AWAKE, until);
    unlock();
    look_back(is_long);
}

bool gort__sysmon_sleep(void)
{
    gort__os_alarm_sleep(&sleeper.alarm, sleeper.listen ? gort__poll_handle() : -1);
    lock();
    bool urgent = sleeper.urgent;
    sleeper.urgent = false;
    sleeper.watchdog_fired = gort__wake_sysmon_armed();
    gort__store(&gort__sched.sysmon.state, GORT_MON_AWAKE, RELAXED);
    unlock();
    return urgent;
}

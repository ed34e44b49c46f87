/* SPDX-License-Identifier: MIT */
/*
 * supervisor.c - the thread that called gort_run: creates threads, joins those that are gone, watches the
 * machine.
 *
 * Why: it runs no goroutine, so nobody changes its signal mask, affinity or locks; threads that it
 * creates inherit a clean state, and it is always free to create one. It sleeps until there is
 * something to do, and now and then looks whether the CPU limits of the process have changed.
 * When a thread cannot be created it keeps trying as long as there is work for it; the other
 * threads go on meanwhile.
 * Threads: `_locked` with sched.lock held, by anybody; the loop by the supervisor alone.
 */
#include <string.h>

#include "base/fatal.h"
#include "base/fmt.h"
#include "poll/poll.h"
#include "sched/life/life.h"

#define SUSPECT_EVERY INT64_C(100000000) /* ns between looks whether a deadlock is real */
#define RETRY_EVERY   INT64_C(10000000)  /* ns between tries to create a refused thread */
/* Ns until the first look whether an ending thread is gone; doubled up to. */
#define REAP_FIRST INT64_C(100000)
#define REAP_MOST  INT64_C(100000000) /* this */

void gort__supervisor_wake_locked(void)
{
    gort__add(&gort__sched.supervisor.word, 1, RELEASE); /* pairs with gort__supervisor_loop */
    gort__os_futex_wake(&gort__sched.supervisor.word, 1);
}

void gort__supervisor_deadlock_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (gort__load(&s->phase, RELAXED) != GORT_PHASE_ON || s->main.done || (s->world_word & 1))
        return;
    if (s->idle_count < (uint32_t)s->procs || s->global.list.n || s->events.list.n || s->preempted.list.n ||
        s->line.list.n || s->ms.without_p)
        return;
    gort__hooks.outer.scavenge_stir_locked();
    uint64_t live = gort__g_count();
    if (live == 0) {
        gort__run_done_locked(0);
        return;
    }
    if (s->plain.users || gort__timer_count() || gort__poll_pending())
        return;
    if (s->poll.owner) { /* it may hold goroutines that it is about to ready; else it comes here itself */
        gort__poll_kick();
        return;
    }
    /* A thread that has not called us yet may be about to. The sanitizer has one of its own. */
    int total = gort__os_thread_total(), ours = 1 + s->sysmon.on + s->ms.n + (GORT_TSAN ? 1 : 0);
    ours += gort__load(&gort__zombie_count, RELAXED);
    if (total == 0 || total > ours || s->limit.spare_coming) {
        s->supervisor.suspect = true;
        gort__supervisor_wake_locked();
        return;
    }
    if (s->main.exited)
        gort__fatal("all goroutines are asleep (main has ended) - deadlock!");
    gort__fatal("all goroutines are asleep - deadlock!");
}

/* A refused thread: its P goes to somebody else, or is idle until somebody comes for it (m.c). */
static void refused(struct gort__m *m, int err)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (struct gort__m **at = &s->ms.all; *at; at = &(*at)->all_next)
        if (*at == m) {
            *at = m->all_next;
            break;
        }
    gort__store(&s->ms.n, s->ms.n - 1, RELAXED);
    s->limit.refused = true;
    gort__tight_update_locked();
    if (!s->said.refused)
        gort__warn(
            "cannot create a thread (%s): going on with %d threads, and trying again; raise the limit (ulimit "
            "-u, pids.max), or make fewer blocking calls at a time",
            strerrordesc_np(-err), s->ms.n);
    s->said.refused = true;
    if (m->life.spare)
        s->limit.spare_coming = false;
    struct gort__p *p = m->handoff.next_p;
    bool spinning = m->spinning;
    gort__m_found_p_locked(m); /* its P may have been taken while it waited for its thread */
    gort__m_retire_locked(m);
    struct gort__m *other = NULL;
    if (p && !(s->world_word & 1)) {
        other = gort__m_start_locked(p, spinning);
    } else {
        if (spinning)
            gort__sub(&s->spinning, 1, SEQ_CST); /* pairs with gort__idle_wake_p */
        if (p)
            gort__store(&p->m, NULL, RELAXED); /* world_start sees to it */
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (other)
        gort__note_wake(other);
}

/* Creates the thread of each wanted M. False: some were refused. */
static bool create_wanted(struct gort__m *m)
{
    bool all = true;
    while (m) {
        struct gort__m *next = m->link;
        char name[16];
        gort__fmt(name, sizeof name, "gort-%d", m->id);
        gort__store(&m->life.has_thread, true, RELAXED); /* before it runs */
        int err = gort__os_thread_start(&m->thread, gort__m_main, m, name);
        if (err) {
            gort__store(&m->life.has_thread, false, RELAXED);
            refused(m, err);
            all = false;
        }
        m = next;
    }
    return all;
}

/* There is no M: the next one needs a thread more than sysmon, which may have got that of a bound goroutine
 * that ended. */
static bool no_threads(void)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    bool none = s->ms.n == 0;
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return none;
}

/*
 * Retires the records of the threads that are gone. Destructors of thread-local data may still run in the
 * others, for as long as they like: nobody waits for them, since they may wait for a goroutine that needs a
 * new thread. Those go back to dead_ms. True: there are some. Not under the lock: libc's lock, which a join
 * takes, may be held by a goroutine that was stopped.
 */
static bool reap_dead(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    bool some = false;
    for (struct gort__m *next; m; m = next) {
        next = m->link;
        bool gone = gort__os_thread_try_join(m->thread);
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        if (gone) {
            gort__m_retire_locked(m);
        } else {
            m->link = s->ms.dead;
            s->ms.dead = m;
        }
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        some |= !gone;
    }
    return some;
}

/* The machine's limits may have changed: follow them unless somebody chose a number. */
static void follow_limits(void)
{
    struct gort__sched *s = &gort__sched;
    int n = gort__os_cpus();
    if (n > GORT_MAXPROCS_MAX)
        n = GORT_MAXPROCS_MAX;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    bool change = !gort__load(&s->conf.maxprocs_set, RELAXED) && n != gort__load(&s->procs, RELAXED) &&
                  !s->main.done;
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (!change)
        return;
    if (!gort__world_stop(NULL))
        return;
    if (!gort__load(&s->conf.maxprocs_set,
                    RELAXED)) /* while it waited for its turn somebody may have chosen one */
        gort__p_resize(n);
    gort__world_start();
}

/* When to look at them next. */
static int64_t next_limits(void)
{
    int64_t ms = gort__sched.conf.limits_ms;
    return ms ? gort__os_now() + ms * 1000000 : INT64_MAX;
}

void gort__supervisor_loop(void)
{
    struct gort__sched *s = &gort__sched;
    int64_t limits_at = next_limits(), suspect_at = 0, starved_at = 0, reap = REAP_FIRST;
    for (;;) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        uint32_t seen = gort__load(&s->supervisor.word,
                                   ACQUIRE); /* pairs with gort__supervisor_wake_locked */
        bool create = !s->main.done && !s->main.ending;
        struct gort__m *dead = create ? s->ms.dead : NULL;
        s->supervisor.creating = create;
        bool done = s->main.done, suspect = s->supervisor.suspect;
        bool starved = s->limit.starved, retry = starved && gort__os_now() >= starved_at;
        if (retry) {
            /* The one that is woken below finds out; but if somebody spins just now nobody is, and it is
             * tried again. */
            s->limit.starved = s->line.list.n || ((s->global.list.n || s->events.list.n) && s->idle_ps);
            gort__store(&s->limit.no_m, false, RELAXED);
            starved_at = gort__os_now() + RETRY_EVERY;
            if (create && s->limit.refused)
                gort__m_probe_locked(); /* until its thread runs all others are let through as before */
        }
        struct gort__m *wanted = create ? s->ms.wanted : NULL;
        if (suspect && gort__os_now() >= suspect_at) {
            s->supervisor.suspect = false;
            suspect_at = gort__os_now() + SUSPECT_EVERY;
            gort__supervisor_deadlock_locked();
            suspect = s->supervisor.suspect;
        }
        if (create)
            s->ms.wanted = s->ms.dead = NULL;
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        bool created = create_wanted(wanted);
        bool dying = reap_dead(dead);
        reap = !dying ? REAP_FIRST : reap < REAP_MOST ? 2 * reap : REAP_MOST;
        if (done)
            return;
        if (retry) /* work may wait for an M */
            gort__wake_idle();
        created &= !starved;
        bool unwatched = create && !s->sysmon.on && gort__sysmon_start() != 0;
        if (create && !created && no_threads()) {
            gort__sysmon_stop();
            unwatched = true;
        }
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        s->supervisor.creating = false;
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        if (unwatched) {
            created = false; /* no thread for it: tried again like the others */
            gort__sysmon_stand_in();
        }
        int64_t until = gort__hooks.outer.scavenge(gort__os_now()),
                trace_at = gort__hooks.outer.schedtrace(gort__os_now());
        if (until > trace_at)
            until = trace_at;
        int64_t look_at = created ? limits_at : gort__os_now() + RETRY_EVERY;
        if (suspect && look_at > gort__os_now() + SUSPECT_EVERY)
            look_at = gort__os_now() + SUSPECT_EVERY;
        if (dying && look_at > gort__os_now() + reap)
            look_at = gort__os_now() + reap;
        if (until > look_at)
            until = look_at;
        gort__os_futex_wait(&s->supervisor.word, seen, until);
        if (created && gort__os_now() >= limits_at) {
            follow_limits();
            limits_at = next_limits();
        }
    }
}

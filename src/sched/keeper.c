/* SPDX-License-Identifier: MIT */
/*
 * keeper.c - the thread that called gort_run: creates and joins threads, watches the machine.
 *
 * Why: it runs no goroutine, so nobody changes its signal mask, affinity or locks; threads that it
 * creates inherit a clean state, and it is always free to create one. It sleeps until there is
 * something to do, and now and then looks whether the CPU limits of the process have changed.
 * When a thread cannot be created it keeps trying as long as there is work for it; the other
 * threads go on meanwhile.
 * Threads: `_locked` with sched.lock held, by anybody; the loop by the keeper alone.
 */
#include <string.h>

#include "base/fatal.h"
#include "base/fmt.h"
#include "poll/poll.h"
#include "sched/verbs.h"

#define SUSPECT_EVERY INT64_C(100000000) /* ns between looks whether a deadlock is real */
#define RETRY_EVERY   INT64_C(10000000)  /* ns between tries to create a refused thread */

void gort__keeper_wake_locked(void)
{
    gort__add(&gort__sched.keeper_word, 1, RELEASE); /* pairs with gort__keeper_loop */
    gort__os_futex_wake(&gort__sched.keeper_word, 1);
}

void gort__deadlock_check_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (gort__load(&s->phase, RELAXED) != GORT_PHASE_ON || s->main_done || (s->world_word & 1))
        return;
    if (s->idle_count < (uint32_t)s->procs || s->queue.n || s->held.n || s->without_p)
        return;
    gort__shrink_stir_locked();
    uint64_t live = gort__g_count();
    if (live == 0) {
        gort__run_done_locked(0);
        return;
    }
    if (s->plain_users || gort__timer_count() || gort__poll_pending())
        return;
    if (s->poll_m) { /* it may hold goroutines that it is about to ready; else it comes here itself */
        gort__poll_kick();
        return;
    }
    /* A thread that has not called us yet may be about to. The sanitizer has one of its own. */
    int total = gort__os_thread_total(), ours = 1 + s->sysmon_on + s->m_count + (GORT_TSAN ? 1 : 0);
    ours += gort__load(&gort__orphans, RELAXED);
    if (total == 0 || total > ours || s->spare_coming) {
        s->suspect = true;
        gort__keeper_wake_locked();
        return;
    }
    if (s->main_exited)
        gort__fatal("all goroutines are asleep (main has ended) - deadlock!");
    gort__fatal("all goroutines are asleep - deadlock!");
}

/* A refused thread: its P goes to somebody else if possible. True: try again later, because there is work, or a timer or fd
 * that nobody waits for. */
static bool refused(struct gort__m *m, int err)
{
    static bool said;
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (!said)
        gort__warn("no new thread (%s): going on with the %d there are, trying again", strerrordesc_np(-err),
                   s->m_count - 1);
    said = true;
    struct gort__p *p = m->next_p;
    struct gort__m *other = NULL;
    if (p && !s->idle_ms && !(s->world_word & 1))
        other = gort__grant_bound_locked(p);
    bool again = p && !other && !s->idle_ms && (gort__p_has_work() || gort__duty_wanted());
    if (again) {
        m->link = s->wanted_ms;
        s->wanted_ms = m;
    } else {
        if (m->spinning)
            gort__sub(&s->spinning, 1, SEQ_CST); /* pairs with gort__wake_p */
        for (struct gort__m **at = &s->all_ms; *at; at = &(*at)->all_next)
            if (*at == m) {
                *at = m->all_next;
                break;
            }
        s->m_count--;
        if (m->spare)
            s->spare_coming = false;
        gort__m_retire_locked(m);
        if (other) {
            /* it has p */
        } else if (p && s->idle_ms && !gort__runq_empty(&p->runq)) {
            other = gort__m_start_locked(p, false);
        } else if (p) {
            gort__p_idle_put_locked(p);
            gort__deadlock_check_locked();
        }
    }
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    if (other)
        gort__m_wake(other);
    gort__fence(
        SEQ_CST); /* pairs with idle.c: whoever published something may have counted on this one to look */
    if (!again && (gort__p_has_work() || gort__duty_wanted()))
        gort__wake_if_idle();
    return again;
}

/* Creates the thread of each wanted M. False: some were refused and are still wanted. */
static bool create_wanted(struct gort__m *m)
{
    bool all = true;
    while (m) {
        struct gort__m *next = m->link;
        char name[16];
        gort__fmt(name, sizeof name, "gort-%d", m->id);
        gort__store(&m->has_thread, true, RELAXED); /* before it runs */
        int err = gort__os_thread_start(&m->thread, gort__m_main, m, name);
        if (err) {
            gort__store(&m->has_thread, false, RELAXED);
            if (refused(m, err))
                all = false;
        }
        m = next;
    }
    return all;
}

/* Every M waits for its thread: one of them needs it more than sysmon, which may have got that of a tied goroutine that ended. */
static bool no_threads(void)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    int wanted = 0;
    for (struct gort__m *m = s->wanted_ms; m; m = m->link)
        wanted++;
    bool none = wanted && wanted == s->m_count;
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    return none;
}

static void join_dead(struct gort__m *m)
{
    while (m) {
        struct gort__m *next = m->link;
        gort__os_thread_join(m->thread);
        gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
        gort__m_retire_locked(m);
        gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
        m = next;
    }
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
                  !s->main_done;
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    if (!change)
        return;
    if (!gort__world_stop(NULL))
        return;
    if (!gort__load(&s->conf.maxprocs_set,
                    RELAXED)) /* while it waited for its turn somebody may have chosen one */
        gort__procs_resize(n);
    gort__world_start();
}

/* When to look at them next. */
static int64_t next_limits(void)
{
    int64_t ms = gort__sched.conf.limits_ms;
    return ms ? gort__os_now() + ms * 1000000 : INT64_MAX;
}

void gort__keeper_loop(void)
{
    struct gort__sched *s = &gort__sched;
    int64_t limits_at = next_limits(), suspect_at = 0, starved_at = 0;
    for (;;) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        uint32_t seen = gort__load(&s->keeper_word, ACQUIRE); /* pairs with gort__keeper_wake_locked */
        bool create = !s->main_done && !s->main_ending;
        struct gort__m *wanted = create ? s->wanted_ms : NULL;
        struct gort__m *dead = create ? s->dead_ms : NULL;
        s->creating = create;
        bool done = s->main_done, suspect = s->suspect;
        bool starved = s->starved, retry = starved && gort__os_now() >= starved_at;
        if (retry) {
            s->starved = false;
            starved_at = gort__os_now() + RETRY_EVERY;
        }
        if (suspect && gort__os_now() >= suspect_at) {
            s->suspect = false;
            suspect_at = gort__os_now() + SUSPECT_EVERY;
            gort__deadlock_check_locked();
            suspect = s->suspect;
        }
        if (create)
            s->wanted_ms = s->dead_ms = NULL;
        gort__lock_drop(&s->lock, GORT_RANK_SCHED);
        bool created = create_wanted(wanted);
        join_dead(dead);
        if (done)
            return;
        if (retry) /* work may wait for an M that there was no memory for */
            gort__wake_if_idle();
        created &= !starved;
        bool unwatched = create && !s->sysmon_on && gort__sysmon_start() != 0;
        if (create && !created && no_threads()) {
            gort__sysmon_stop();
            unwatched = true;
        }
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        s->creating = false;
        gort__lock_drop(&s->lock, GORT_RANK_SCHED);
        if (unwatched) {
            created = false; /* no thread for it: tried again like the others */
            gort__sysmon_stand_in();
        }
        int64_t until = gort__shrink(gort__os_now());
        int64_t look_at = created ? limits_at : gort__os_now() + RETRY_EVERY;
        if (suspect && look_at > gort__os_now() + SUSPECT_EVERY)
            look_at = gort__os_now() + SUSPECT_EVERY;
        if (until > look_at)
            until = look_at;
        gort__os_futex_wait(&s->keeper_word, seen, until);
        if (created && gort__os_now() >= limits_at) {
            follow_limits();
            limits_at = next_limits();
        }
    }
}

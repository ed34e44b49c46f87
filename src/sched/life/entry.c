/* SPDX-License-Identifier: MIT */
/*
 * entry.c - the slow half of every call: what attention asks for, and plain threads.
 *
 * Why: verbs.h brackets each call with two stores and two looks. Everything unusual (the world is
 * stopped, the P was taken away, the run is over, this is a forked child, this is a thread that
 * never called us) ends up here, so the fast half needs to know none of it.
 * Where the kernel has no membarrier the light fences of verbs.h would have to be full ones. Instead
 * of asking each time, every M has GORT_ATT_FENCE set all the time there: each entry and exit comes
 * here, does the fence, and looks again.
 * A plain thread is attached at its first call: it gets an M without a P whose g0 stands for it in
 * queues of waiters, and is detached when it ends.
 * A call from outside that comes while a run ends waits until it has ended: only then do objects know that
 * those who wait in their queues are gone (sched.run), and only the threads that are inside keep their
 * records from being unmapped.
 * Threads: the calling thread for itself.
 */
#include "base/fatal.h"
#include "sched/life/life.h"

/* The run is over: leaves the goroutine's stack for good and ends the thread. */
void gort__entry_end_thread(struct gort__m *m)
{
    m->commit.fn = NULL;
    m->bound_g = m->handed = NULL;
    gort__store(&m->g->state, GORT_G_DEAD, RELAXED); /* from whatever it was: nobody asks any more */
    gort__arch_save_control(&m->g->ctx);
    gort__schedule_switch_to(m, m->g, &m->g0);
    gort__throw("a goroutine of an ended run was resumed");
}

/* On g0 there is no goroutine to stop or to wait with. Under the lock: see handoff.c. */
static void clear_p_bits(struct gort__m *m)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    struct gort__p *p = m->p;
    if (p && (gort__load(&m->attention, RELAXED) & GORT_ATT_PREEMPT) &&
        p->slice == gort__load(&m->ask.slice, RELAXED) && gort__load(&m->ask.why, RELAXED) != GORT_WHY_NEXT)
        gort__p_mode_on(p, GORT_MODE_OVER); /* it has parked, or ended, instead of being stopped */
    gort__and(&m->attention, ~(uint32_t)(GORT_ATT_NO_P | GORT_ATT_PREEMPT), RELAXED);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

/* The P is gone, or the world is stopped, or the run is over. On a goroutine's stack or on g0. */
void gort__entry_attend(struct gort__m *m)
{
    uint32_t bits;
    while ((bits = gort__load(&m->attention, ACQUIRE) & ~(uint32_t)GORT_ATT_FENCE) !=
           0) { /* pairs with whoever set the bit */
        /* Else whoever wants that lock could wait for ever. */
        gort__check(!GORT_CHECKS || !gort__arch_ranks());
        if (bits & GORT_ATT_FORKED)
            gort__fatal("gort was called in the child of a fork: the child may only exec");
        if (bits & GORT_ATT_ENDED) {
            if (m->g == &m->g0 || m->preempt.in_handler)
                return; /* the search for work ends the thread; the handler freezes it */
            gort__entry_end_thread(m);
        }
        if (bits & GORT_ATT_NO_RUN)
            return;
        if (bits & GORT_ATT_WORLD)
            gort__world_wait(m);
        else if (m->g == &m->g0)
            clear_p_bits(m);
        else if (bits & GORT_ATT_NO_P)
            gort__handoff_reacquire(m);
        else
            gort__handoff_preempt(m, m->preempt.in_handler && m->preempt.in_libc);
    }
}

void gort__entry_leave_slow(struct gort__m *m)
{
    if (gort__load(&m->nested, RELAXED))
        return; /* whoever began it looks, when it holds nothing any more: timer.c, gort__enter_nest_end */
    gort__os_fence_light(); /* pairs with world.c:gort__world_stop */
    while (gort__load(&m->attention, RELAXED) & ~(uint32_t)(GORT_ATT_NO_RUN | GORT_ATT_FENCE)) {
        gort__store(&m->inside, 1, RELAXED);
        gort__os_fence_light(); /* pairs with world.c:gort__world_stop */
        gort__entry_attend(m);
        gort__store(&m->inside, 0, RELEASE); /* pairs with world.c:gort__world_stop */
        gort__os_fence_light();              /* pairs with world.c:gort__world_stop */
        if ((gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED) && m->g == &m->g0)
            return; /* in a blocking call, which goes on without the run */
    }
}

void gort__entry_light_slow(struct gort__m *m)
{
    gort__os_fence_light(); /* pairs with run.c:end_threads */
    if ((gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED) && m->g != &m->g0 && gort__m_self() == m &&
        !gort__load(&m->nested, RELAXED))
        gort__entry_end_thread(m);
}

void gort__entry_leave_blocking(struct gort__m *m)
{
    for (;;) {
        gort__store(&m->inside, 0, RELEASE); /* pairs with world.c:gort__world_stop */
        gort__os_fence_light();              /* pairs with world.c:gort__world_stop */
        if (!(gort__load(&m->attention, RELAXED) & GORT_ATT_WORLD))
            return;
        gort__store(&m->inside, 1, RELAXED);
        gort__os_fence_light(); /* pairs with world.c:gort__world_stop */
        gort__world_wait(m);
    }
}

/* A goroutine takes a lock of the runtime outside of it (debug builds ask). */
bool gort__entry_exposed(void)
{
    const struct gort__m *m = gort__m_home();
    return m && !m->plain && !gort__load(&m->inside, RELAXED) && !gort__load(&m->nested, RELAXED) &&
           !gort__load(&m->end.called, RELAXED);
}

/* A plain thread ends; or one of ours, which must not. */
void gort__entry_thread_ends(void *arg)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = arg;
    if (s->forked)
        return;
    if (!m->plain)
        gort__fatal("a goroutine ended its thread (pthread_exit or pthread_cancel): use gort_exit");
    gort__store(&m->inside, 1, RELAXED);
    gort__os_fence_light();                                      /* pairs with run.c:send_away_plain */
    if (!(gort__load(&m->attention, RELAXED) & GORT_ATT_NO_RUN)) /* else what it left went with the run */
        gort__gmain_cleanup(&m->g0);
    gort__m_set_self(NULL);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (struct gort__m **at = &s->plain_ms; *at; at = &(*at)->all_next)
        if (*at == m) {
            *at = m->all_next;
            break;
        }
    if (gort__load(&s->phase, RELAXED) == GORT_PHASE_ON && m->run == gort__load(&s->run, RELAXED)) {
        s->plain.users--;
        gort__supervisor_deadlock_locked(); /* perhaps everybody was waiting for this thread */
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__m_destroy(m); /* nobody knows it any more */
}

/* Counts the thread among the users of the current run. False: there is none. */
static bool join_run(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    bool on = gort__load(&s->phase, RELAXED) == GORT_PHASE_ON;
    if (on) {
        m->run = gort__load(&s->run, RELAXED);
        s->plain.users++;
        if (gort__load(&gort__os_light_is_full,
                       RELAXED)) /* which may have been otherwise in the run before */
            gort__or(&m->attention, GORT_ATT_FENCE, RELAXED);
        gort__and(&m->attention, ~(uint32_t)GORT_ATT_NO_RUN, RELAXED);
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return on;
}

static struct gort__m *attach(void)
{
    struct gort__sched *s = &gort__sched;
    if (gort__load(&s->phase, ACQUIRE) != GORT_PHASE_ON) /* pairs with run.c */
        return NULL;
    struct gort__m *m = gort__m_make(true);
    if (!m)
        return NULL;
    m->tid = gort__os_thread_id();
    m->err = gort__os_errno();
    gort__rand_seed(&m->rand, (uint64_t)m->tid);
    if (gort__os_at_thread_end(gort__entry_thread_ends, m)) {
        gort__m_destroy(m);
        return NULL;
    }
    m->attention |= GORT_ATT_NO_RUN;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    m->all_next = s->plain_ms;
    s->plain_ms = m;
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__m_set_self(m);
    return m;
}

#define END_TIMEOUT INT64_C(2000000000) /* ns */

/* Of that run. The caller is not inside. It gives up when the end perhaps waits for the caller, a thread of
 * ours that comes to its own end and calls us from a destructor of its thread-local data. */
static void wait_for_end(uint64_t run)
{
    struct gort__sched *s = &gort__sched;
    int64_t deadline = gort__os_now() + END_TIMEOUT;
    while (gort__load(&s->phase, ACQUIRE) == GORT_PHASE_ENDING && /* pairs with run.c:teardown */
           gort__load(&s->run, RELAXED) == run && gort__os_now() < deadline)
        gort__os_nap(50000);
}

struct gort__m *gort__entry_plain(void)
{
    struct gort__m *m = gort__m_self();
    if (gort__sched.forked)
        gort__fatal("gort was called in the child of a fork: the child may only exec");
    if (!m) {
        m = attach();
        if (!m)
            wait_for_end(gort__load(&gort__sched.run, RELAXED));
    }
    if (!m)
        return NULL;
    if (gort__load(&m->attention, RELAXED) & GORT_ATT_SHADOW)
        m = gort__block_surface(gort__m_home());
    for (;;) {
        gort__store(&m->inside, 1, RELAXED);
        gort__os_fence_light(); /* pairs with world.c and run.c */
        uint32_t bits = gort__load(&m->attention, RELAXED) & ~(uint32_t)GORT_ATT_FENCE;
        if (!bits || gort__load(&m->nested, RELAXED))
            return m;
        if (bits & GORT_ATT_NO_RUN) {
            gort__store(&m->inside, 0, RELEASE); /* pairs with run.c */
            if (!join_run(m)) {
                wait_for_end(gort__load(&gort__sched.run, RELAXED));
                return NULL;
            }
            continue;
        }
        if ((bits & GORT_ATT_ENDED) && m->g == &m->g0) {
            if (m->block_g) { /* in a blocking call, and the run is over: from now on it may hold locks outside */
                gort__store(&m->end.called, true, RELAXED);
                gort__store(&m->inside, 0, RELEASE); /* pairs with run.c */
                wait_for_end(m->run);
            }
            return NULL; /* else the function of a timer, on the thread's own stack: it is about to end */
        }
        gort__entry_attend(m);
    }
}

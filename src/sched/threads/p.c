/* SPDX-License-Identifier: MIT */
/*
 * p.c - Ps: the list of idle ones, and changing how many there are.
 *
 * Why: the number changes only while the world is stopped, so nobody inside the runtime holds a P
 * then. A thread that is in user code keeps running: if its P goes away it is told through its
 * attention word and waits for another P at its next call.
 * Records are never freed during a run: thieves may look at a P that has just been retired, and its timers
 * stay where they are (timer.c).
 * Invariants: (1) sched.ps[0 .. procs) are in use; (2) a P is in idle_ps exactly if p->m is NULL
 * (but for a moment while the world is stopped); (3) an idle P's queue is empty.
 * Threads: `_locked` with sched.lock held; resize by whoever has the world stopped.
 */
#include <errno.h>

#include "base/fatal.h"
#include "sched/threads/threads.h"

struct gort__p *gort__p_idle_get_locked(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__p *p = s->world_word & 1 ? NULL : s->idle_ps;
    if (p) {
        s->idle_ps = p->link;
        gort__store(&s->idle_count, s->idle_count - 1, RELAXED);
        if (GORT_UNLIKELY(gort__load(&s->sysmon.state, RELAXED) == GORT_MON_IDLE))
            gort__hooks.monitor.sysmon_arm_locked();
    }
    return p;
}

void gort__p_idle_put_locked(struct gort__p *p)
{
    struct gort__sched *s = &gort__sched;
    gort__check(gort__local_empty(p));
    gort__p_mode_off(p, GORT_MODE_OVER | GORT_MODE_WOKEN | GORT_MODE_OWES);
    gort__store(&p->m, NULL, RELAXED);
    p->link = s->idle_ps;
    s->idle_ps = p;
    gort__add(&s->idle_count, 1, SEQ_CST); /* pairs with gort__wake_idle */
    if (s->idle_count != (uint32_t)s->procs)
        return;
    gort__store(&s->idle_times, s->idle_times + 1, RELAXED);
    if (gort__wake_sysmon_armed())
        gort__hooks.monitor.sysmon_disarm_locked();
}

void gort__p_take(struct gort__m *m, struct gort__p *p)
{
    m->p = p;
    gort__store(&p->m, m, RELEASE); /* pairs with sysmon.c */
}

/* Makes sched.ps[i]. 0 or -ENOMEM. */
static int make(int i)
{
    struct gort__sched *s = &gort__sched;
    size_t page = gort__os_page();
    struct gort__p *p = gort__os_vm_map((sizeof *p + page - 1) / page * page, page);
    if (!p)
        return -ENOMEM;
    p->id = i;
    p->fair_in = 1;
    gort__timer_heap_init(&p->timers);
    gort__rand_seed(&p->rand, s->conf.fuzz_seed * 17 + (uint64_t)i + 1);
    gort__store(&s->ps[i], p, RELEASE);      /* pairs with find.c:steal */
    gort__store(&s->p_made, i + 1, RELEASE); /* pairs with timer.c:made */
    return 0;
}

/* Takes the P away from the M that holds or is about to hold it. Called with the lock held. */
static void evict(struct gort__p *p)
{
    struct gort__m *m = p->m;
    gort__store(&p->m, NULL, RELAXED);
    if (!m->handoff
             .counted_no_p) { /* it may have a goroutine in hand: no deadlock before it has seen to that */
        m->handoff.counted_no_p = true;
        gort__sched.ms.without_p++;
    }
    if (m->handoff.next_p == p) {
        m->handoff.next_p = NULL; /* it finds out when it wakes */
        return;
    }
    gort__store(&m->p, NULL, RELAXED); /* gort_block_enter looks at it, as a hint */
    if (m->g != &m->g0) {
        gort__or(&m->attention, GORT_ATT_NO_P, RELEASE); /* pairs with the look at attention in entry.c */
        gort__hooks.monitor.preempt_ask(m, false);
    }
}

/* Empties a P that is going out of use. Called with the lock held. */
static void retire(struct gort__p *p)
{
    gort__local_drain_locked(p);
    if (p->m)
        evict(p);
    gort__g_cache_flush(p);
    gort__stack_cache_flush(&p->stacks);
}

int gort__p_resize(int n)
{
    struct gort__sched *s = &gort__sched;
    while (s->p_made < n)
        if (make(s->p_made))
            return -ENOMEM;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    /* All idle ones are listed anew by gort__world_start. */
    s->idle_ps = NULL;
    gort__store(&s->idle_count, 0, RELAXED);
    int old = s->procs;
    gort__store(&s->procs, n, RELAXED);
    for (int i = n; i < old; i++)
        retire(s->ps[i]);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__os_fence_heavy(); /* pairs with gort__enter: whoever comes in later is not alone any more */
    return 0;
}

void gort__p_free(struct gort__p *p)
{
    size_t page = gort__os_page();
    gort__os_vm_unmap(p, (sizeof *p + page - 1) / page * page);
}

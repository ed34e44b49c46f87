/* SPDX-License-Identifier: MIT */
/*
 * m.c - threads: their records, sleeping and waking, and handing Ps between them.
 *
 * Why: an M without a P sleeps on its own word (its note), so waking one wakes just that one. A P
 * is handed over under the scheduler's lock, before its new M wakes: whoever looks sees the P held.
 * Threads are created by the keeper (keeper.c), never here: what the creator of a thread has done
 * to its signal mask or affinity must not be inherited, and creating needs memory from libc.
 *
 * Ways to wait, all on the note:
 *     gort__m_stop           has nothing to run; in sched.idle_ms; ends after a while
 *     gort__wait_for_locked  its tied goroutine does not run; the P is with somebody else
 *     gort__p_regain         its goroutine runs, but the P was taken; queued as a bound one
 * Invariants: (1) note is 2 only while its thread sleeps or is about to; (2) one wake a sleep;
 * (3) p->m == m exactly if m->p == p or m->next_p == p.
 * Threads: `_locked` with sched.lock held; the rest by an M for itself, inside.
 */
#include <string.h>

#include "base/fatal.h"
#include "base/fmt.h"
#include "sched/switch_san.h"
#include "sched/verbs.h"

#define GUARD    ((size_t)64 << 10)
#define ALTSTACK ((size_t)64 << 10) /* a signal frame with AVX-512 state, and room for handlers */

enum { NOTE_NONE, NOTE_WOKEN, NOTE_ASLEEP };

/* The record and the alternate signal stack: | guard | altstack | record |. */
static size_t record_bytes(void)
{
    size_t page = gort__os_page();
    return GUARD + ALTSTACK + (sizeof(struct gort__m) + page - 1) / page * page;
}

static void prepare(struct gort__m *m)
{
    memset(m, 0, offsetof(struct gort__m, tid));
    m->g = &m->g0;
    m->attention = gort__load(&gort__os_light_is_full, RELAXED) ? GORT_ATT_FENCE : 0;
    m->g0.m = m;
    m->g0.flags = GORT_G_THREAD;
    m->g0.state = GORT_G_RUNNING;
}

struct gort__m *gort__m_make(bool plain)
{
    char *mem = gort__os_vm_map(record_bytes(), gort__os_page());
    if (!mem)
        return NULL;
    gort__os_vm_guard(mem, GUARD); /* without one it still works, only an overflow is not noticed */
    struct gort__m *m = (struct gort__m *)(void *)(mem + GUARD + ALTSTACK);
    prepare(m);
    m->plain = plain;
    return m;
}

void gort__m_destroy(struct gort__m *m)
{
    gort__os_vm_unmap((char *)m - ALTSTACK - GUARD, record_bytes());
}

char *gort__m_altstack(struct gort__m *m, size_t *size, size_t *guard)
{
    *size = ALTSTACK;
    *guard = GUARD;
    return (char *)m - ALTSTACK;
}

void gort__m_retire_locked(struct gort__m *m)
{
    m->link = gort__sched.free_ms;
    gort__sched.free_ms = m;
}

/* A record for a new thread: that of one that has ended, or a fresh one. */
static struct gort__m *record_locked(void)
{
    struct gort__m *m = gort__sched.free_ms;
    if (!m)
        return gort__m_make(false);
    gort__sched.free_ms = m->link;
    prepare(m);
    return m;
}

void gort__m_found_p_locked(struct gort__m *m)
{
    if (m->owed) {
        m->owed = false;
        gort__sched.without_p--;
    }
}

bool gort__m_sleep_until(struct gort__m *m, int64_t deadline)
{
    uint32_t none = NOTE_NONE;
    bool asleep = gort__cas(&m->note, &none, NOTE_ASLEEP, ACQUIRE); /* pairs with gort__m_wake */
    while (asleep && gort__load(&m->note, ACQUIRE) == NOTE_ASLEEP)  /* pairs with gort__m_wake */
        if (gort__os_futex_wait(&m->note, NOTE_ASLEEP, deadline) < 0 && deadline != INT64_MAX &&
            gort__os_now() >= deadline) {
            uint32_t sleeping = NOTE_ASLEEP;
            if (gort__cas(&m->note, &sleeping, NOTE_NONE, ACQUIRE)) /* pairs with gort__m_wake */
                return false;
        }
    gort__xchg(&m->note, NOTE_NONE, ACQUIRE); /* pairs with gort__m_wake */
    return true;
}

void gort__m_sleep(struct gort__m *m)
{
    gort__m_sleep_until(m, INT64_MAX);
}

void gort__m_wake(struct gort__m *m)
{
    uint32_t *note = &m->note;
    /* Pairs with gort__m_sleep_until. The record may be gone right after it, but for a futex
     * call on an address that nobody waits on any more, which does nothing. */
    if (gort__xchg(note, NOTE_WOKEN, RELEASE) == NOTE_ASLEEP)
        gort__os_futex_wake(note, 1);
}

struct gort__m *gort__m_start_locked(struct gort__p *p, bool spinning)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = s->idle_ms;
    bool created = !m;
    if (m) {
        s->idle_ms = m->link;
    } else {
        if (s->m_count >= s->conf.max_threads)
            gort__fatal("the program needs more than %d threads (gort_config.max_threads)",
                        s->conf.max_threads);
        m = record_locked();
        if (!m)
            gort__fatal("no memory for a thread's record");
        m->id = s->m_next_id++;
        m->run = gort__load(&s->run, RELAXED);
        gort__rand_seed(&m->rand, s->conf.fuzz_seed * 31 + (uint64_t)m->id);
        if (s->world_word & 1)
            m->attention |= GORT_ATT_WORLD;
        m->all_next = s->all_ms;
        s->all_ms = m;
        s->m_count++;
        m->link = s->wanted_ms;
        s->wanted_ms = m;
        gort__keeper_wake_locked();
    }
    m->next_p = p;
    m->spinning = spinning;
    p->m = m;
    return created ? NULL : m;
}

static void take_next_p(struct gort__m *m)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    m->p = m->next_p;
    m->next_p = NULL;
    if (m->p)
        gort__m_found_p_locked(m);
    gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
}

/* Waited long enough for work: true when the thread may end. */
static bool leave_idle(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    bool left = false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (struct gort__m **at = &s->idle_ms; *at; at = &(*at)->link)
        if (*at == m) {
            *at = m->link;
            left = true;
            gort__store(&m->quit, true, RELAXED);
            break;
        }
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    return left;
}

void gort__m_stop(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    gort__check(!m->p && !m->locked_g);
    if (m->spinning) { /* its P was taken while it looked for work */
        m->spinning = false;
        gort__sub(&s->spinning, 1, SEQ_CST); /* pairs with gort__wake_p */
    }
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (gort__load(&m->quit, RELAXED)) {
        gort__lock_drop(&s->lock, GORT_RANK_SCHED);
        return;
    }
    m->link = s->idle_ms;
    s->idle_ms = m;
    gort__m_found_p_locked(m); /* it has nothing to run any more */
    gort__deadlock_check_locked();
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    int64_t patience = gort__os_now() + (int64_t)s->conf.idle_ms * 1000000;
    if (!gort__m_sleep_until(m, patience)) {
        if (leave_idle(m))
            return;
        gort__m_sleep(m); /* handed a P at the last moment */
    }
    take_next_p(m);
}

void gort__p_handoff(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    struct gort__p *p = m->p;
    struct gort__m *other = NULL;
    bool idle = false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    m->p = NULL;
    p->m = NULL;
    if (s->ended) {
        /* nobody needs it any more */
    } else if (s->world_word & 1) {
        gort__world_event(); /* world_start sees to the P */
    } else if (!gort__runq_empty(&p->runq) || s->queue.n) {
        other = gort__m_start_locked(p, false);
    } else if (s->idle_count == 0 && gort__load(&s->spinning, RELAXED) == 0 && s->procs > 1) {
        gort__add(&s->spinning, 1, SEQ_CST); /* the last one awake: somebody must look around */
        other = gort__m_start_locked(p, true);
    } else {
        gort__p_idle_put_locked(p);
        idle = true;
        gort__deadlock_check_locked();
    }
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    if (other)
        gort__m_wake(other);
    if (idle) {
        gort__arch_fence_after_rmw(); /* pairs with idle.c: the second look */
        if (gort__p_has_work())
            gort__wake_if_idle();
    }
}

/* Sleeps until a P is granted. False: the run is over. */
static bool wait_for_grant(struct gort__m *m)
{
    if (!gort__load(&m->quit, RELAXED)) {
        gort__m_sleep(m);
        take_next_p(m);
    }
    while (!m->p &&
           !gort__load(&m->quit, RELAXED)) { /* the granted P went away with a stop of the world: ask again */
        struct gort__sched *s = &gort__sched;
        struct gort__g *g = m->g == &m->g0 ? m->locked_g : m->g;
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        struct gort__p *p = gort__p_idle_get_locked();
        if (p)
            gort__p_take(m, p);
        else
            gort__queue_put_locked(g);
        gort__m_found_p_locked(m);
        gort__lock_drop(&s->lock, GORT_RANK_SCHED);
        if (!p) {
            gort__fence(SEQ_CST); /* pairs with idle.c */
            gort__wake_if_idle();
            gort__m_sleep(m);
            take_next_p(m);
        }
    }
    return !gort__load(&m->quit, RELAXED);
}

bool gort__wait_for_locked(struct gort__m *m)
{
    if (m->handed) { /* picked for this thread, which must not run it */
        gort__queue_put_and_wake(m->handed);
        m->handed = NULL;
    }
    if (m->spinning)
        gort__spin_stop(m);
    if (m->p)
        gort__p_handoff(m);
    bool granted = wait_for_grant(m);
    while (granted && gort__m_wanted(m)) {
        if (gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED)
            return false;
        gort__attend(m);
        if (!m->p) {
            gort__queue_put_and_wake(m->locked_g);
            granted = wait_for_grant(m);
        }
    }
    return granted;
}

void gort__p_regain(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *g = m->g;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__and(&m->attention, ~(uint32_t)GORT_ATT_NO_P, RELAXED);
    gort__m_found_p_locked(m);
    struct gort__p *p = gort__p_idle_get_locked();
    if (p) {
        gort__p_take(m, p);
        gort__lock_drop(&s->lock, GORT_RANK_SCHED);
        if (gort__load(&g->state, RELAXED) != GORT_G_RUNNING)
            gort__g_set(g, GORT_G_RUNNING);
        return;
    }
    bool tied = (g->flags & GORT_G_BOUND) != 0;
    gort__g_flag_on(g, GORT_G_BOUND);
    g->bound_m = m;
    gort__g_set(g, GORT_G_RUNNABLE);
    gort__queue_put_locked(g);
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__wake_if_idle();
    if (!wait_for_grant(m))
        return; /* gort__attend sees that the run is over */
    if (!tied) {
        gort__g_flag_off(g, GORT_G_BOUND);
        g->bound_m = NULL;
    }
    gort__g_set(g, GORT_G_RUNNING);
}

void gort__run_bound(struct gort__m *m, struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *other = g->bound_m;
    if (m->spinning)
        gort__spin_stop(m);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    struct gort__p *p = m->p;
    m->p = NULL;
    p->m = other;
    other->next_p = p;
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
    gort__m_wake(other);
    gort__m_stop(m);
}

void gort__m_main(void *arg)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = arg;
    gort__arch_set_self(m);
    gort__store(&m->tid, gort__os_thread_id(), RELAXED);
    m->err = gort__os_errno();
    gort__os_altstack_set((char *)m - ALTSTACK, ALTSTACK, &m->old_altstack);
    gort__san_thread(m);
    gort__store(&m->inside, 1, RELAXED);
    gort__store(&m->started, true, RELEASE); /* pairs with run.c:bury */
    gort__os_fence_light();                  /* pairs with world.c:gort__world_stop */
    take_next_p(m);
    gort__schedule_loop(m);

    gort__os_altstack_restore(&m->old_altstack);
    gort__arch_set_self(NULL);
    if (gort__load(&m->attention, ACQUIRE) &
        GORT_ATT_ENDED) { /* pairs with run.c: nothing else may be touched */
        uint32_t open = GORT_FATE_OPEN;
        if (!gort__cas(&m->fate, &open, GORT_FATE_GONE, ACQ_REL) && /* pairs with run.c:let_go */
            gort__load(&m->fate, ACQUIRE) == GORT_FATE_ORPHAN) {    /* pairs with run.c:let_go: the estate */
            gort__estate_free(&m->estate);
            gort__m_destroy(m);
        }
        return;
    }
    if (m->p)
        gort__p_handoff(m);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (s->ended) { /* just now: the keeper joins it as one of the others */
        gort__lock_drop(&s->lock, GORT_RANK_SCHED);
        return;
    }
    for (struct gort__m **at = &s->all_ms; *at; at = &(*at)->all_next)
        if (*at == m) {
            *at = m->all_next;
            break;
        }
    s->m_count--;
    gort__m_found_p_locked(m);
    m->link = s->dead_ms;
    s->dead_ms = m;
    gort__keeper_wake_locked();
    gort__lock_drop(&s->lock, GORT_RANK_SCHED);
}

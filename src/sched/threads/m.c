/* SPDX-License-Identifier: MIT */
/*
 * m.c - threads: their records, sleeping and waking.
 *
 * Why: an M without a P sleeps on its own word (its note), so waking one wakes just that one. A P
 * is handed over under the scheduler's lock, before its new M wakes: whoever looks sees the P held.
 * How Ps change hands is told in handoff.c.
 * Threads are created by the supervisor (supervisor.c), never here: what the creator of a thread has done
 * to its signal mask or affinity must not be inherited, and creating needs memory from libc.
 *
 * Ways to wait, all on the note:
 *     gort__m_stop           has nothing to run; in sched.ms.idle; ends after a while, or sleeps in the poller (poller.c)
 *     gort__handoff_wait_bound  its bound goroutine does not run; the P is with somebody else (handoff.c)
 *     gort__handoff_reacquire         its goroutine runs, but the P is with somebody else (handoff.c)
 * Invariants: (1) note is 2 or 3 only while its thread sleeps or is about to; (2) one wake a sleep;
 * (3) p->m == m exactly if m->p == p or m->handoff.next_p == p.
 * Threads: `_locked` with sched.lock held; the rest by an M for itself, inside.
 */

#include "base/fatal.h"
#include "base/fmt.h"
#include "poll/poll.h"
#include "sched/core/san.h"
#include "sched/threads/threads.h"

#define GUARD ((size_t)64 << 10)

/* The record and the alternate signal stack: | guard | altstack | record |. */
static size_t record_bytes(void)
{
    size_t page = gort__os_page();
    return GUARD + GORT_ALTSTACK + (sizeof(struct gort__m) + page - 1) / page * page;
}

static void prepare(struct gort__m *m)
{
    /* Others may still look at the first and the last fields of a record that is used again. */
    enum { FROM = offsetof(struct gort__m, p), TO = offsetof(struct gort__m, tid) };
    _Static_assert((TO - FROM) % 8 == 0, "whole words");
    gort__clear((char *)m + FROM, TO - FROM);
    gort__store(&m->inside, 0, RELAXED);
    gort__store(&m->g, &m->g0, RELAXED);
    gort__store(&m->attention, gort__load(&gort__os_light_is_full, RELAXED) ? GORT_ATT_FENCE : 0, RELAXED);
    gort__store(&m->timer, -1, RELAXED);
    gort__store(&m->block_word, 0, RELAXED);
    m->shadow = (struct gort__shadow){0, GORT_ATT_SHADOW, &m->g0, NULL};
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
    struct gort__m *m = (struct gort__m *)(void *)(mem + GUARD + GORT_ALTSTACK);
    prepare(m);
    m->plain = plain;
    gort__sanitize_root_register((char *)m - GORT_ALTSTACK, (char *)m);
    return m;
}

void gort__m_destroy(struct gort__m *m)
{
    gort__san_zombie(m->tsan_blank);
    gort__sanitize_root_deregister((char *)m - GORT_ALTSTACK, (char *)m);
    gort__os_vm_unmap((char *)m - GORT_ALTSTACK - GUARD, record_bytes());
}

#define END ((size_t)64 << 10) /* a stack pointer that has left the stack is not much further down */

bool gort__m_own_stack(const struct gort__m *m, uintptr_t sp)
{
    uintptr_t hi = (uintptr_t)m->stack.hi;
    return sp <= hi && hi - sp <= gort__os_thread_stack_size() + END;
}

char *gort__m_altstack(struct gort__m *m, size_t *size, size_t *guard)
{
    *size = GORT_ALTSTACK;
    *guard = GUARD;
    return (char *)m - GORT_ALTSTACK;
}

void gort__m_retire_locked(struct gort__m *m)
{
    m->link = gort__sched.ms.free;
    gort__sched.ms.free = m;
}

/* A record for a new thread: that of one that has ended, or a fresh one. */
static struct gort__m *record_locked(void)
{
    struct gort__m *m = gort__sched.ms.free;
    if (!m)
        return gort__m_make(false);
    gort__sched.ms.free = m->link;
    prepare(m);
    return m;
}

void gort__m_found_p_locked(struct gort__m *m)
{
    if (m->handoff.counted_no_p) {
        m->handoff.counted_no_p = false;
        gort__sched.ms.without_p--;
    }
}

/* A new M, whose thread the supervisor is to create. NULL: no memory for its record; or the supervisor is at
 * the end of the run, while a plain thread still starts something. */
static struct gort__m *make_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (s->ended)
        return NULL;
    struct gort__m *m = record_locked();
    if (!m)
        return NULL;
    m->id = s->ms.next_id++;
    m->run = gort__load(&s->run, RELAXED);
    gort__rand_seed(&m->rand, s->conf.fuzz_seed * 31 + (uint64_t)m->id);
    if (s->world_word & 1)
        m->attention |= GORT_ATT_WORLD;
    m->all_next = s->ms.all;
    s->ms.all = m;
    gort__store(&s->ms.n, s->ms.n + 1, RELAXED);
    gort__tight_update_locked();
    m->link = s->ms.wanted;
    s->ms.wanted = m;
    gort__hooks.life.supervisor_wake_locked();
    return m;
}

void gort__m_spare_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (!s->limit.tight && !s->ms.idle)
        gort__m_probe_locked();
}

void gort__m_probe_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (s->limit.spare_coming || s->ms.n >= s->conf.max_threads)
        return;
    struct gort__m *m = make_locked();
    if (!m)
        return; /* whoever wanted it asks again */
    m->life.spare = s->limit.spare_coming = true;
}

/* There is no M that could run p, and none can be made: the others can still do its work, whoever comes back
 * from a blocking call takes it, and the supervisor tries again soon. Whom to wake, as gort__m_start_locked
 * says it. */
static struct gort__m *starve_locked(struct gort__p *p, bool spinning)
{
    struct gort__sched *s = &gort__sched;
    if (spinning)
        gort__sub(&s->spinning, 1, SEQ_CST); /* pairs with gort__idle_wake_p */
    gort__tight_say_locked();
    gort__tight_starve_locked(); /* so sysmon sees to timers meanwhile, and does not rest although all Ps are idle */
    struct gort__m *bound = s->ended ? NULL : gort__handoff_grant_bound_locked(p);
    if (!bound) {
        gort__local_drain_locked(p);
        gort__p_idle_put_locked(p);
        gort__store(&s->limit.no_m, true, RELAXED);
    }
    return bound;
}

/*
 * Of the first few idle Ms one that slept on this CPU, which the caller is about to leave. The kernel wakes a
 * thread where it slept unless another CPU is idle, and the caller's is not yet: elsewhere it would wait
 * behind another one of ours while this CPU has nothing to do, until the kernel notices (up to 12 ms were
 * seen).
 */
static struct gort__m **near_locked(struct gort__m **at)
{
    int cpu = gort__os_cpu();
    struct gort__m **first = at;
    for (int i = 0; *at && i < GORT_M_NEAR; i++, at = &(*at)->link)
        if (*at != gort__sched.poll.owner && (*at)->handoff.cpu == cpu)
            return at;
    return first;
}

struct gort__m *gort__m_start_locked(struct gort__p *p, bool spinning)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m **at = &s->ms.idle;
    if (*at && *at == s->poll.owner && (*at)->link)
        at = &(*at)->link; /* better one that does not wait for fds and timers */
    if (*at && !spinning)
        at = near_locked(at);
    struct gort__m *m = *at;
    bool created = !m;
    if (!m && s->preempted.list.n) { /* one that keeps a preempted goroutine is a spare: it exists already */
        if (spinning)
            gort__sub(&s->spinning, 1, SEQ_CST); /* pairs with gort__idle_wake_p */
        return gort__handoff_grant_locked(p, gort__preempted_pop_locked());
    }
    if (m) {
        *at = m->link;
    } else if (!s->limit.tight) {
        m = make_locked();
    }
    if (GORT_UNLIKELY(!m))
        return starve_locked(p, spinning);
    m->handoff.next_p = p;
    m->spinning = spinning;
    gort__store(&p->m, m, RELEASE); /* pairs with sysmon.c */
    return created ? NULL : m;
}

void gort__m_take_next_p(struct gort__m *m)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    m->p = m->handoff.next_p;
    m->handoff.next_p = NULL;
    if (m->p)
        gort__m_found_p_locked(m);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

/* Waited long enough for work: true when the thread may end. */
static bool leave_idle(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    bool left = false;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (struct gort__m **at = &s->ms.idle; *at; at = &(*at)->link)
        if (*at == m) {
            *at = m->link;
            left = true;
            gort__store(&m->life.quit, true, RELAXED);
            break;
        }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return left;
}

/*
 * A P for which there was no M, and work for it that nobody else sees to: the rule of idle.c counts on an M
 * that can be woken. A publisher that saw no_m has woken nobody; it has published before, in the global
 * queue, or runs what it has itself.
 */
static struct gort__p *left_p_locked(void)
{
    struct gort__sched *s = &gort__sched;
    bool line = s->line.list.n && s->ms.idle; /* else the M is the last one, and stays idle */
    return s->global.list.n || s->events.list.n || s->preempted.list.n || line ? gort__p_idle_get_locked()
                                                                               : NULL;
}

void gort__m_stop(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    gort__check(!m->p && !m->bound_g && !m->spinning);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (gort__load(&m->life.quit, RELAXED)) {
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        return;
    }
    struct gort__p *p = GORT_UNLIKELY(s->limit.starved) ? left_p_locked() : NULL;
    if (p) {
        gort__p_take(m, p);
        gort__m_found_p_locked(m);
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        return;
    }
    m->link = s->ms.idle;
    s->ms.idle = m;
    gort__store(&s->limit.no_m, false, RELAXED);
    m->handoff.cpu = gort__os_cpu();
    gort__m_found_p_locked(m); /* it has nothing to run any more */
    bool owner = gort__poller_take_locked(m);
    gort__hooks.life.deadlock_locked();
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (owner) {
        gort__poller_wait(m);
        return;
    }
    /* For a poll owner that sleeps too long; after the fence of idle.c:look_again. */
    (void)gort__poller_wanted();
    int64_t deadline = gort__os_now() + (int64_t)s->conf.idle_ms * 1000000;
    if (!gort__note_sleep_until(m, deadline)) {
        if (leave_idle(m))
            return;
        gort__note_sleep(m); /* handed a P at the last moment */
    }
    gort__m_take_next_p(m);
}

void gort__m_main(void *arg)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = arg;
    gort__m_set_self(m);
    m->stack.hi = __builtin_frame_address(0);
    gort__store(&m->tid, gort__os_thread_id(), RELAXED);
    m->err = gort__os_errno();
    gort__os_altstack_set((char *)m - GORT_ALTSTACK, GORT_ALTSTACK, &m->stack.old_alt);
    gort__san_thread(m);
    gort__store(&m->inside, 1, RELAXED);
    gort__hooks.monitor.preempt_thread(m);
    gort__mask_thread(m);
    gort__os_at_thread_end(gort__hooks.life.thread_ends, m);
    gort__store(&m->life.started, true, RELEASE); /* pairs with run.c:make_zombie */
    gort__os_fence_light();                       /* pairs with world.c:gort__world_stop */
    if (m->life.spare) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        m->life.spare = s->limit.spare_coming = false;
        s->limit.refused = false;
        gort__tight_update_locked();
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
    }
    gort__m_take_next_p(m);
    gort__schedule_loop(m);

    gort__os_at_thread_end(gort__hooks.life.thread_ends, NULL);
    gort__hooks.monitor.preempt_thread_end(m);
    gort__os_altstack_restore(&m->stack.old_alt);
    if (gort__load(&m->attention, ACQUIRE) &
        GORT_ATT_ENDED) { /* pairs with run.c: nothing else may be touched */
        uint32_t open = GORT_REAPER_OPEN;
        /* The supervisor joins it: until then self tells destructors of thread-local data that call us that
         * the run is over. */
        if (!gort__cas(&m->end.reaper, &open, GORT_REAPER_SUPERVISOR,
                       ACQ_REL) && /* pairs with run.c:let_go */
            /* Pairs with run.c:let_go: the memory of the zombie. */
            gort__load(&m->end.reaper, ACQUIRE) == GORT_REAPER_THREAD) {
            gort__m_set_self(NULL);
            gort__sub(&gort__zombie_count, 1, RELAXED);
            gort__hooks.life.zombie_free(&m->end.zombie);
            gort__m_destroy(m);
        }
        return;
    }
    gort__m_set_self(NULL);
    if (m->p)
        gort__handoff_give(m);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (s->ended) { /* just now: the supervisor joins it as one of the others */
        gort__store(&m->end.reaper, GORT_REAPER_SUPERVISOR, RELEASE); /* pairs with run.c:make_zombie */
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        return;
    }
    for (struct gort__m **at = &s->ms.all; *at; at = &(*at)->all_next)
        if (*at == m) {
            *at = m->all_next;
            break;
        }
    gort__store(&s->ms.n, s->ms.n - 1, RELAXED);
    gort__tight_update_locked();
    gort__m_found_p_locked(m);
    m->link = s->ms.dead;
    s->ms.dead = m;
    gort__hooks.life.supervisor_wake_locked();
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
}

/* SPDX-License-Identifier: MIT */
/*
 * schedule.c - choosing the next goroutine and changing to it: the only place that switches stacks.
 *
 * Why: a goroutine that stops changes directly to the next one when its P has one at hand; only
 * when there is none, or something special is to be done, does it change to the thread's own stack
 * (g0), where gort__schedule_loop looks for work or sleeps. What must wait until a goroutine is off
 * its stack (releasing a channel's lock, queueing it, freeing it) is a commit function that the
 * next context runs first thing: before that, nobody else can resume the stack that is still in use.
 *
 *     G1 --switch_to--> G2: switch_finish runs G1's commit, then G2 goes on
 *     G1 --switch_to--> g0: the same, then schedule_loop: find, switch_to G3
 *
 * Fairness: turn.c. Every 61st pick is a fair one: it passes over `next` and the ring, so that a ring that is
 * never empty keeps nobody waiting. It looks, in this order, at woken goroutines or the global queue (in
 * turns), those that wait for a thread (tight.c), preempted ones, the global queue, and those that have
 * yielded. It is also when timers that are due and fds that are ready get their turn although there is work;
 * they come before the pick, not instead of it.
 * Invariants: (1) m->g is whose stack is in use; (2) at most one commit is pending on an M, and it
 * belongs to m->prev; (3) a G is RUNNING exactly while it is some m->g, but for the moment before it leaves.
 * Threads: each function by an M for itself, inside.
 */
#include "base/fatal.h"
#include "mem/sanitize.h"
#include "poll/poll.h"
#include "sched/core/san.h"
#include "sched/core/core.h"

/* Not a goroutine. Flagged so that nobody can change to it at once, it brings the M to g0 and gort__find
 * without a look of its own on the way. Timers cannot be fired right where the pick is: locks of the one who
 * stops are released by its commit only. */
struct gort__g gort__poll_marker = {.flags = GORT_G_BOUND};

/* Whether timers are due on this P or on another one (all in turn), or it is time to look for ready fds. The
 * clock costs more than a switch: it is asked every 61st pick, and only when there is something to wait
 * for. */
static bool chores_wait(struct gort__p *p)
{
    struct gort__sched *s = &gort__sched;
    if (++p->other >= (uint32_t)gort__load(&s->p_made, RELAXED))
        p->other = 0;
    const struct gort__p *other = gort__load(&s->ps[p->other], ACQUIRE); /* pairs with p.c:make */
    int64_t first = gort__load(&p->timers.first, RELAXED), their = gort__load(&other->timers.first, RELAXED);
    bool poll = gort__poll_pending() && !gort__load(&s->poll.until, RELAXED);
    if (first > their)
        first = their;
    if (GORT_LIKELY(first == INT64_MAX && !poll))
        return false;
    int64_t now = gort__os_now();
    return first <= now || (poll && now - gort__load(&s->poll.at, RELAXED) >= GORT_POLL_EVERY);
}

static struct gort__g *pick(struct gort__p *p, bool chores);
static struct gort__g *pick_local(struct gort__p *p);

static struct gort__g *choose_fair(struct gort__p *p)
{
    gort__turn_look(p);
    p->queue_first = !p->queue_first; /* else woken or preempted goroutines at each of them keep it waiting */
    struct gort__g *g = p->queue_first ? NULL : gort__turn_woken(p);
    if (g)
        return g;
    if (p->queue_first && gort__load(&gort__sched.global.n, RELAXED))
        g = gort__queue_take(p, 1);
    if (!g && GORT_UNLIKELY(gort__load(&gort__sched.line.n, RELAXED)))
        g = gort__tight_take(p);
    if (!g && GORT_UNLIKELY(gort__load(&gort__sched.preempted.n, RELAXED)))
        g = gort__turn_preempted(p);
    if (!g && gort__load(&gort__sched.global.n, RELAXED))
        g = gort__queue_take(p, 1);
    if (!g &&
        p->yielded) { /* as if it were in the global queue: those who hand the P to each other need not be quick */
        g = gort__runq_get(&p->runq);
        p->yielded = g != NULL;
    }
    if (!g)
        return pick_local(p);
    gort__turn_others(p, g);
    gort__p_new_slice(p);
    return g;
}

static GORT_NOINLINE struct gort__g *pick_fair(struct gort__p *p, bool chores)
{
    if (GORT_UNLIKELY(p->deferred) && gort__wake_defer_look(p))
        return pick(p, chores);
    p->fair_in = GORT_FAIR_EVERY;
    if (GORT_UNLIKELY(gort__load(&gort__sched.fuzz, RELAXED)))
        p->fair_in = 1 + gort__rand_below(&p->rand, 8);
    if (chores && chores_wait(p)) {
        /* The fair pick is the next one: where many wait for fds there are always chores. */
        p->fair_in = p->defer_fair_in = 1;
        return &gort__poll_marker;
    }
    p->defer_fair_in = p->fair_in;
    if (p->deferred && p->fair_in > GORT_WAKE_DEFER_EVERY)
        p->fair_in = GORT_WAKE_DEFER_EVERY;
    struct gort__g *g = choose_fair(p);
    gort__latency_fair(p, g);
    return g;
}

/* What is to run next, unless the time slice is over; then the ring. */
static GORT_ALWAYS_INLINE struct gort__g *pick_local(struct gort__p *p)
{
    bool alone = gort__sched_alone();
    struct gort__g *g = NULL;
    if (GORT_LIKELY(!(p->mode & GORT_MODE_OVER)))
        g = alone ? gort__runq_get_next_alone(&p->runq) : gort__runq_get_next(&p->runq);
    if (g)
        return g;
    if (GORT_UNLIKELY(p->mode))
        return gort__turn_pick(p);
    g = alone ? gort__runq_get_alone(&p->runq) : gort__runq_get(&p->runq);
    gort__runq_look_ahead(&p->runq, alone);
    gort__p_new_slice(p);
    return g;
}

/* chores: gort__poll_marker may come back too. */
static GORT_ALWAYS_INLINE struct gort__g *pick(struct gort__p *p, bool chores)
{
    if (GORT_UNLIKELY(--p->fair_in == 0))
        return pick_fair(p, chores);
    return pick_local(p);
}

struct gort__g *gort__schedule_pick(struct gort__p *p)
{
    return pick(p, true);
}

struct gort__g *gort__schedule_pick_local(struct gort__p *p)
{
    return pick(p, false);
}

/* A G that first runs gets its stack now; false when there is no memory. */
bool gort__schedule_give_stack(struct gort__p *p, struct gort__g *g)
{
    struct gort__stack *s = g->stack;
    if (!s)
        s = gort__stack_get(&p->stacks, gort__stack_class(0));
    if (GORT_UNLIKELY(!s))
        return false;
    gort__store(&g->stack, s, RELEASE); /* pairs with dump.c */
    gort__store(&s->owner, g, RELAXED);
    if (GORT_UNLIKELY(s->guard != GORT_STACK_GUARDED || gort__sched.conf.stackcensus))
        gort__g_flag_on(g, GORT_G_CHECKED);
    gort__arch_make(&g->ctx, gort__stack_top(s), gort__gmain_start);
    gort__san_fiber_make(g);
    return true;
}

/* g can be changed to at once, from any stack. */
static inline bool ready_to_run(struct gort__p *p, struct gort__g *g)
{
    uint32_t special = gort__load(&g->flags, ACQUIRE) &
                       GORT_G_SPECIAL; /* pairs with scavenge_stack.c:let_go */
    if (GORT_UNLIKELY(special)) {
        if (special != GORT_G_TRACKED)
            return false;
        gort__latency_end(p, g);
    }
    return g->ctx.pc ||
           (GORT_LIKELY(!gort__load(&gort__sched.limit.careful, RELAXED)) && gort__schedule_give_stack(p, g));
}

/* First thing on the other side: the errno of whoever goes on, and the commit of whoever left. */
static inline struct gort__m *arrive(void)
{
    struct gort__m *m = gort__m_self();
    struct gort__g *g = m->g;
    gort__san_arrived(m, g);
    *m->err = g->err;
    gort__commit commit = m->commit.fn;
    if (commit) {
        struct gort__g *prev = m->prev;
        m->commit.fn = NULL;
        if (GORT_UNLIKELY(gort__load(&gort__sched.fuzz, RELAXED)))
            gort__fuzz_point(m);
        GORT_TSAN_IGNORE_BEGIN(); /* it is prev's last act */
        bool waits = commit(prev, m->commit.arg);
        GORT_TSAN_IGNORE_END();
        if (!waits)
            gort__ready(m, prev);
    }
    return m;
}

struct gort__m *gort__schedule_switch_finish(void)
{
    return arrive();
}

/* Whoever stops is in a catch block, or its destructors run because of an exception; or the signal mask may
 * be its own. */
static inline bool carries(const struct gort__m *m)
{
    return m->eh_globals && (m->eh_globals->caught || m->eh_globals->uncaught);
}

/*
 * The kernel keeps the mask for a thread (mask.c), and C++ exceptions in thread-local data: the next
 * goroutine would take them for its own, and this one may go on on another thread. So they wait on its stack.
 * Who starts or goes on finds none there, because everybody leaves none; commit functions, which run before
 * they are put back, throw nothing.
 */
static GORT_NOINLINE struct gort__m *switch_carrying(struct gort__m *m, struct gort__g *from,
                                                     struct gort__g *to)
{
    uint64_t mask;
    bool masked = gort__mask_put_away(m, &mask);
    /* One by one: a copy of both is a call of memcpy, which TSan looks at. */
    void *caught = m->sig.cxx ? m->sig.cxx->caught : NULL;
    unsigned int uncaught = m->sig.cxx ? m->sig.cxx->uncaught : 0;
    if (m->sig.cxx)
        gort__m_eh_set(m, NULL, 0);
    m = gort__schedule_switch_to(m, from, to);
    if (caught || uncaught)
        gort__m_eh_set(m, caught, uncaught);
    if (masked)
        gort__mask_take_up(m, mask);
    return m;
}

static GORT_ALWAYS_INLINE void change_over(struct gort__m *m, struct gort__g *from, struct gort__g *to)
{
    from->err = *m->err;
    m->prev = from;
    gort__store(&m->g, to, RELEASE); /* pairs with run.c:make_zombie */
    if (GORT_UNLIKELY(to == &m->g0)) {
        to->ctx.control = from->ctx.control; /* our own code runs with any, and changes none */
    } else {
        gort__store(&to->m, m, RELEASE); /* pairs with dump.c */
        gort__g_set(to, GORT_G_RUNNING);
        gort__p_count_switch(m->p);
    }
}

#if !GORT_TSAN
/* In a program with ASan. */
static GORT_NOINLINE struct gort__m *switch_asan(struct gort__m *m, struct gort__g *from, struct gort__g *to)
{
    struct gort__san_stack here;
    change_over(m, from, to);
    gort__san_start(from, to, &here);
    gort__arch_switch(&from->ctx, &to->ctx);
    return arrive();
}
#endif

static GORT_ALWAYS_INLINE struct gort__m *switch_to(struct gort__m *m, struct gort__g *from,
                                                    struct gort__g *to)
{
    gort__check(to == &m->g0 || (m->p && gort__load(&m->p->m, RELAXED) == m));
    gort__check(!(to->flags & GORT_G_BOUND) || to->m == m);
    if (GORT_UNLIKELY(carries(m)))
        return switch_carrying(m, from, to);
#if !GORT_TSAN
    if (GORT_UNLIKELY(gort__asan))
        return switch_asan(m, from, to);
#endif
    change_over(m, from, to);
    GORT_UNUSED void *fiber = gort__san_leave(m, from, to);
    gort__arch_switch(&from->ctx, &to->ctx);
    if (GORT_TSAN)
        from->sanitizer = fiber;
    return arrive();
}

GORT_NOINLINE struct gort__m *gort__schedule_switch_to(struct gort__m *m, struct gort__g *from,
                                                       struct gort__g *to)
{
    return switch_to(m, from, to);
}

/* Returns to `to` after a switch. The processor predicts that if the goroutine that stopped here last would
 * have returned there, too. */
static GORT_ALWAYS_INLINE struct gort__m *go_back(struct gort__m *m, const void *to)
{
    m->ras.match = m->ras.stop == to;
    return m->ras.match ? m : gort__arch_ret_indirect(m);
}

struct gort__m *gort__schedule_switch_away(struct gort__m *m, struct gort__g *g)
{
    struct gort__g *next = NULL;
    m->ras.stop = __builtin_return_address(0);
    gort__arch_save_control(&g->ctx);
    if (GORT_LIKELY(!m->bound_g && !gort__m_wanted(m))) {
        next = pick(m->p, true);
        if (next && GORT_UNLIKELY(!ready_to_run(m->p, next))) {
            m->handed = next;
            next = NULL;
        }
    }
    m = switch_to(m, g, next ? next : &m->g0);
    return go_back(m, __builtin_return_address(0));
}

/* Waits for memory for the stack of a picked G; others run meanwhile. False: it was queued again. */
static bool stack_or_requeue(struct gort__m *m, struct gort__g *g)
{
    if (g->ctx.pc || gort__schedule_give_stack(m->p, g))
        return true;
    gort__g_collect();
    if (gort__schedule_give_stack(m->p, g))
        return true;
    gort__queue_put(g);
    gort__os_nap(1000000);
    return false;
}

/*
 * g has not run yet and must wait, because many are preempted: one that has run before, from behind it, or a
 * preempted one. Without the look behind it everybody who wakes would wait for as many time slices as there
 * are new ones in the queue.
 */
static GORT_NOINLINE struct gort__g *pass_over(struct gort__m *m, struct gort__g *g)
{
    for (int i = 0; i < GORT_PASS_OVER && g && !g->ctx.pc; i++) {
        gort__queue_put(g);
        g = gort__hooks.threads.find(m);
    }
    if (!g || g->ctx.pc)
        return g;
    gort__queue_put(g);
    return gort__preempted_take();
}

/* Whether one that has not run yet may have to. */
static bool waits_for_thread(void)
{
    return gort__load(&gort__sched.limit.tight, RELAXED) || gort__load(&gort__sched.line.n, RELAXED);
}

void gort__schedule_loop(struct gort__m *m)
{
    for (;;) {
        struct gort__g *g;
        if (m->life.die)
            return;
        if (GORT_UNLIKELY(m->block.call != NULL))
            gort__hooks.threads.block_call_run(m);
        if (m->bound_g) {
            if (!gort__hooks.threads.wait_bound(m))
                return;
            g = m->bound_g;
        } else {
            g = gort__hooks.threads.find(m);
            if (!g)
                return;
            if (GORT_UNLIKELY(!g->ctx.pc) && g != m->p->woken_g && !gort__cputime_admit_new()) {
                g = pass_over(m, g);
                if (!g)
                    continue;
            }
            uint16_t flags = gort__load(&g->flags, ACQUIRE); /* pairs with scavenge_stack.c:let_go */
            if (GORT_UNLIKELY(flags & GORT_G_SHRINKING)) {
                gort__queue_put(g);
                gort__os_thread_yield();
                continue;
            }
            if ((flags & GORT_G_BOUND) && g->m != m) {
                gort__hooks.threads.run_bound(m, g);
                continue;
            }
            if (GORT_UNLIKELY((flags & GORT_G_BLOCKS) || (!g->ctx.pc && waits_for_thread()))) {
                g = gort__tight_turn(m->p, g);
                if (!g)
                    continue;
            }
            if (!stack_or_requeue(m, g))
                continue;
        }
        if (m->spinning)
            gort__hooks.threads.spin_stop(m);
        if (GORT_UNLIKELY(g->flags & GORT_G_CHECKED))
            gort__hooks.outer.overflow_check(g);
        gort__latency_found(m->p, g);
        gort__schedule_switch_to(m, &m->g0, g);
    }
}

static bool commit_yield_ring(struct gort__g *g, void *arg)
{
    (void)arg;
    gort__local_put(gort__m_self()->p, g);
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__wake_idle();
    return true;
}

static bool commit_yield_queue(struct gort__g *g, void *arg)
{
    (void)arg;
    gort__queue_put(g);
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__wake_idle();
    return true;
}

/* A goroutine that is bound to its thread: the P goes to another M, and comes back in its turn. */
static GORT_NOINLINE struct gort__m *yield_bound(struct gort__m *m, struct gort__g *g, bool queued)
{
    if (!queued && gort__local_empty(m->p) && !gort__load(&gort__sched.events.n, RELAXED))
        return m;
    gort__g_set(g, GORT_G_RUNNABLE);
    m->commit.fn = commit_yield_queue;
    return gort__schedule_switch_to(m, g, &m->g0);
}

static GORT_ALWAYS_INLINE struct gort__m *yield(struct gort__m *m)
{
    struct gort__g *g = m->g, *next;
    if (GORT_UNLIKELY(!m->p)) {
        gort__os_thread_yield();
        return m;
    }
    gort__arch_save_control(&g->ctx);
    bool queued = gort__load(&gort__sched.global.n, RELAXED) != 0;
    if (GORT_UNLIKELY(m->bound_g != NULL))
        return yield_bound(m, g, queued);
    next = pick(m->p, true);
    if (!next && gort__load(&gort__sched.events.n, RELAXED))
        next = gort__turn_woken(m->p);
    if (!next && queued)
        next = gort__queue_take(m->p, UINT32_MAX);
    if (!next && GORT_UNLIKELY(gort__load(&gort__sched.preempted.n, RELAXED)))
        next = gort__preempted_take();
    gort__p_new_slice(m->p);
    if (!next)
        return m; /* nobody else wants to run here */
    gort__g_set(g, GORT_G_RUNNABLE);
    m->p->yielded = true;
    /* While there is a global queue, yielding means its tail: everybody takes turns. Without thieves
     * g may be queued before it is off its stack: only this M can pick it again. */
    if (queued)
        m->commit.fn = commit_yield_queue;
    else if (gort__sched_alone())
        gort__local_put(m->p, g);
    else
        m->commit.fn = commit_yield_ring;
    if (GORT_UNLIKELY(!ready_to_run(m->p, next))) {
        m->handed = next;
        next = &m->g0;
    }
    return switch_to(m, g, next);
}

struct gort__m *gort__schedule_yield(struct gort__m *m)
{
    m->ras.stop = __builtin_return_address(0);
    return go_back(yield(m), __builtin_return_address(0));
}

int gort_yield(void)
{
    struct gort__m *m = gort__enter();
    if (GORT_UNLIKELY(!m)) {
        gort__os_thread_yield();
        return 0;
    }
    m->ras.stop = __builtin_return_address(0);
    if (GORT_LIKELY(gort__load(&gort__sched.world.owner, RELAXED) != m)) /* else all others are stopped */
        m = yield(m);
    bool near = m->ras.stop == __builtin_return_address(0);
    gort__leave(m);
    return near ? 0 : gort__arch_ret_indirect_int(0);
}

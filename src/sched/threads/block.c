/* SPDX-License-Identifier: MIT */
/*
 * block.c - calls that block, announced by the caller.
 *
 * Why: any goroutine in user code can lose its P to sysmon (handoff.c), so announcing a blocking call needs
 * no atomic operation: enter says so in m->block_word, where sysmon marks what it sees; a call that still has the
 * mark at the next tick loses its P, unless the thread only waits for a CPU. leave wipes it out and then
 * looks whether that happened. Once a call turned out to be long, and others wait, the P is handed over at
 * once, until eight calls in a row were brief. The fast halves compute nothing from what the other has just
 * stored, so that pairs do not wait for each other's stores.
 *
 * In between the caller counts as a plain thread. The thread's self then points at the M's shadow, a
 * stand-in whose attention is never 0: a gort call takes the slow way in, which surfaces: gives up the
 * P for real and makes g0, which can wait on the thread's own note, the caller.
 *
 *     RUNNING --enter--> shadow (P kept or taken) --a gort call--> surfaced: m->block_g set, m->g is g0
 *        ^-----leave--------'                                          |
 *        ^------------------------- leave: waits for a P --------------'
 *
 * gort_block changes to the thread's own, large stack for the call, and hands the P over first.
 * Threads: the calling goroutine for itself; plain threads and threads outside of runs need not announce
 * anything.
 */
#include "base/fatal.h"
#include "sched/threads/threads.h"

struct gort__block_call {
    intptr_t (*fn)(void *);
    void *arg;
    intptr_t result;
    bool masked; /* its signal mask is not the thread's usual one, but */
    uint64_t mask;
};

/* The M has something to come back to: no deadlock meanwhile. */
static void owe(struct gort__m *m)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    if (!m->handoff.counted_no_p) {
        m->handoff.counted_no_p = true;
        gort__sched.ms.without_p++;
    }
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

/* How often the thread has gone to sleep. */
static uint64_t waits(void)
{
    int64_t cpu;
    uint64_t n;
    gort__os_thread_usage(&cpu, &n);
    return n;
}

/* Gives up the P before the call. Inside. */
static void give_up(struct gort__m *m)
{
    owe(m);
    gort__count(&m->p->counts.handoffs, 1);
    gort__handoff_give(m);
    /* So that the way back waits for one. Not before: sysmon, which marks and unmarks who has a P, could undo
     * it. */
    gort__or(&m->attention, GORT_ATT_NO_P, RELAXED);
}

/* more: GORT_BLOCK_MORE or 0. */
static inline void begin_call(struct gort__m *m, uint32_t more)
{
    gort__store(&m->g->state, GORT_G_SYSCALL, RELAXED); /* from RUNNING, or DETACHED just now */
    gort__store(&m->block_word, GORT_BLOCK_CALL | more, RELAXED);
    gort__arch_set_self(&m->shadow);
}

static inline void end_call(struct gort__m *m)
{
    gort__arch_set_self(m);
    gort__store(&m->block_word, 0, RELAXED);
    gort__store(&m->g->state, GORT_G_RUNNING,
                RELAXED); /* from SYSCALL; without a P for a moment: handoff.c */
}

/* Slow halves end the call themselves, so that the fast ones save no registers. */
static GORT_NOINLINE void enter_slow(struct gort__m *m)
{
    if (gort__load(&m->block_word, RELAXED) ||
        (m->g->flags & GORT_G_THREAD)) { /* in a call already, or no goroutine */
        m->block_depth++;
        if (gort__load(&m->block_word, RELAXED))
            gort__or(&m->block_word, GORT_BLOCK_MORE, RELAXED);
        return;
    }
    m = gort__enter();
    struct gort__p *p = m->p; /* a goroutine always has an M here */
    if (p) {
        gort__wake_sysmon();
        if (gort__load(&p->long_blocks, RELAXED) && gort__queue_has_work()) {
            give_up(m);
            m->block.at = gort__os_now();
            m->block.waits = waits();
        }
    }
    gort__hooks.life.leave_blocking(m); /* what else attention asks for can wait until the call is over */
    begin_call(m, GORT_BLOCK_MORE);
}

/* The monitor sleeps for long, and somebody waits for the P. Else nobody misses it; waking it each time would
 * be dear. */
static inline bool missed(const struct gort__p *p)
{
    return gort__load(&gort__sched.sysmon.state, RELAXED) >= GORT_MON_LONG &&
           (!gort__local_seems_empty(p) || gort__load(&gort__sched.global.n, RELAXED) ||
            gort__load(&gort__sched.events.n, RELAXED));
}

void gort_block_enter(void)
{
    struct gort__m *m = gort__m_home();
    if (GORT_UNLIKELY(!m))
        return;
    const struct gort__p *p = gort__load(&m->p, RELAXED); /* a hint: it may be taken at this moment */
    if (GORT_UNLIKELY(gort__load(&m->block_word, RELAXED) || m->g == &m->g0 ||
                      (gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED) || /* its P is gone, too */
                      (p && (gort__load(&p->long_blocks, RELAXED) || missed(p)))))
        enter_slow(m);
    else
        begin_call(m, 0);
}

/* One call was brief, or was not. Ps that others hold may be judged by sysmon at the same time: a guess gets
 * lost. */
static void judge(struct gort__p *p, bool brief)
{
    uint32_t n = gort__load(&p->long_blocks, RELAXED);
    gort__store(&p->long_blocks, !brief ? GORT_LONG_BLOCKS : n ? n - 1 : 0, RELAXED);
}

/* The caller does not count as a plain thread any more: what it has left as one, a context in use, values and
 * exit handlers, must not meet the next one on this thread. Outside, on g0. */
static void end_as_thread(struct gort__m *m)
{
    if (GORT_LIKELY(!(m->g0.flags & (GORT_G_CLEANUP | GORT_G_CONTEXT))) || !gort__enter())
        return; /* nothing; or the run is over, and took it along */
    gort__gmain_cleanup(&m->g0);
    gort__g_flag_off(&m->g0, GORT_G_CLEANUP | GORT_G_CONTEXT);
    gort__leave(m);
}

/* The call for which it gave up its P. One that never slept was brief, however long the thread waited for a
 * CPU. */
static bool was_brief(const struct gort__m *m)
{
    return waits() == m->block.waits || gort__os_now() - m->block.at < GORT_SHORT_CALL;
}

static GORT_NOINLINE void leave_surfaced(struct gort__m *m)
{
    if (m->block_depth) {
        m->block_depth--;
        return;
    }
    if (!m->block_g || m->block.on_g0) {
        if (!m->plain)
            gort__fatal("gort_block_leave without gort_block_enter");
        return;
    }
    end_as_thread(m);
    gort__store(&m->inside, 1, RELAXED);
    gort__os_fence_light();                  /* pairs with world.c and handoff.c */
    gort__store(&m->g, m->block_g, RELEASE); /* pairs with run.c:make_zombie */
    gort__store(&m->block_g, NULL, RELEASE); /* pairs with world.c:user_stopped_locked */
    gort__store(&m->block_word, 0, RELAXED);
    m->block.at = 0;
    gort__hooks.life.attend(m);
    if (!m->p)
        gort__handoff_reacquire(m);
    gort__leave(m);
}

/* Its P is gone, something else wants attention, or the call is to be judged. */
static GORT_NOINLINE void leave_marked(struct gort__m *m)
{
    gort__store(&m->inside, 1, RELAXED);
    gort__os_fence_light(); /* pairs with world.c and handoff.c */
    bool taken = gort__load(&m->attention, RELAXED) & GORT_ATT_NO_P, gave_up = m->block.at != 0;
    bool brief = !taken || was_brief(m);
    m->block.at = 0;
    gort__hooks.life.attend(m);
    if (!taken || gave_up) /* else it was up to sysmon */
        judge(m->p, brief);
    gort__store(&m->g->state, GORT_G_RUNNING, RELAXED); /* from SYSCALL, or RUNNING already */
    gort__leave(m);
}

static GORT_NOINLINE void leave_more(struct gort__m *m)
{
    if (gort__m_self() == m) {
        leave_surfaced(m);
    } else if (m->block_depth) {
        m->block_depth--;
    } else {
        end_call(m);
        leave_marked(m);
    }
}

/*
 * Where nothing has happened there is no need to be inside: the P stays the thread's own as it does in any
 * user code, until somebody marks it. Proof: as in handoff.c, with the end of the call in place of inside.
 * The taker marks and then looks at m->block_word, through a heavy fence; here it is 0 before the look at the
 * mark. So who misses the mark is seen to have left, and keeps its P.
 */
void gort_block_leave(void)
{
    struct gort__m *m = gort__m_home();
    if (GORT_UNLIKELY(!m))
        return;
    if (GORT_UNLIKELY((gort__load(&m->block_word, RELAXED) | GORT_BLOCK_SEEN) !=
                      (GORT_BLOCK_CALL | GORT_BLOCK_SEEN))) {
        leave_more(m);
        return;
    }
    end_call(m);
    gort__compiler_fence(); /* a light one: pairs with handoff.c and world.c; see GORT_ATT_FENCE */
    if (GORT_UNLIKELY(gort__load(&m->attention, RELAXED)))
        leave_marked(m);
}

struct gort__m *gort__block_surface(struct gort__m *m)
{
    gort__arch_set_self(m);
    gort__or(&m->block_word, GORT_BLOCK_MORE, RELAXED);
    gort__store(&m->inside, 1, RELAXED);
    gort__os_fence_light(); /* pairs with world.c and handoff.c */
    /* Settles who has the P; the mark NO_P means that sysmon took it, under the lock. After the end of the
     * run nobody does. */
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    bool has_p = m->p && !(gort__load(&m->attention, RELAXED) & GORT_ATT_ENDED);
    gort__and(&m->attention, ~(uint32_t)(GORT_ATT_NO_P | GORT_ATT_PREEMPT), RELAXED);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    gort__store(&m->block_g, m->g, RELAXED);
    gort__store(&m->g, &m->g0, RELEASE); /* pairs with run.c:make_zombie */
    if (has_p) {
        owe(m);
        gort__count(&m->p->counts.handoffs, 1);
        gort__handoff_give(m);
    }
    gort__store(&m->inside, 0, RELEASE); /* pairs with world.c and handoff.c */
    return m;
}

void gort__block_left_open(void)
{
    for (const struct gort__m *m; (m = gort__m_self()) && m->block_g;)
        gort_block_leave(); /* so that the message names the goroutine */
    gort__fatal("a goroutine ended between gort_block_enter and gort_block_leave");
}

/* --- gort_block ------------------------------------------------------------------------------- */

void gort__block_call_run(struct gort__m *m)
{
    struct gort__block_call *call = m->block.call;
    struct gort__g *g = m->prev;
    m->block.call = NULL;
    gort__store(&m->block_g, g, RELAXED); /* its stack must stay: the argument may lie there */
    bool was_bound = m->bound_g != NULL;
    m->bound_g = NULL;
    owe(m);
    if (m->p) {
        gort__count(&m->p->counts.handoffs, 1);
        gort__handoff_give(m);
    }
    gort__store(&m->block.on_g0, true, RELAXED);
    gort__g_edge(g);
    gort__leave(m);
    if (GORT_UNLIKELY(call->masked))
        gort__mask_take_up(m, call->mask);
    call->result = call->fn(call->arg);
    m->block_depth = 0;
    end_as_thread(m);
    call->masked = gort__mask_put_away(m, &call->mask);
    gort__store(&m->inside, 1, RELAXED);
    gort__store(&m->block.on_g0, false, RELAXED);
    gort__os_fence_light(); /* pairs with world.c and handoff.c */
    gort__store(&m->block_g, NULL, RELAXED);
    /* Nothing of the run may be touched any more: the search for work sees to it. */
    if (gort__load(&m->attention, RELAXED) & (GORT_ATT_ENDED | GORT_ATT_FORKED))
        return;
    if (was_bound)
        m->bound_g = g;
    g->err = *m->err; /* what the call left in errno */
    gort__g_set(g, GORT_G_RUNNABLE);
    /* Counted before the M stops counting (gort__m_stop). */
    gort__queue_put_woken((struct gort__glist){g, g, 1});
    gort__fence(SEQ_CST); /* pairs with idle.c: publish, then look for idle Ps */
    gort__wake_idle();
}

intptr_t gort_block(intptr_t (*fn)(void *), void *arg)
{
    GORT_NEED("gort_block", "function", fn);
    struct gort__m *m = gort__m_self();
    if (!m || (m->g->flags & GORT_G_THREAD)) /* a plain thread, or in such a call already */
        return fn(arg);
    m = gort__enter();
    struct gort__g *g = m->g;
    struct gort__block_call call = {.fn = fn, .arg = arg};
    call.masked = gort__mask_put_away(m, &call.mask);
    m->block.call = &call;
    gort__arch_save_control(&g->ctx);
    gort__g_set(g, GORT_G_SYSCALL);
    m = gort__schedule_switch_to(m, g, &m->g0);
    if (GORT_UNLIKELY(call.masked))
        gort__mask_take_up(m, call.mask);
    if (GORT_UNLIKELY(gort__load(&gort__sched.limit.tight, RELAXED)))
        gort__g_flag_on(g, GORT_G_BLOCKS);
    gort__leave(m);
    return call.result;
}

/* SPDX-License-Identifier: MIT */
/*
 * gs.h - what the models about goroutines that wait for one another (chan.c, mutex.c, wg.c) have in common:
 * waiting and waking (sched/wait/wait.c, park.c), the switch away from a stack (sched/core/schedule.c), and small
 * versions of what these call.
 *
 * A model thread is a goroutine with an M and a P of its own: a switch to g0 runs the commit there (the real
 * arrive), and then waits until somebody has readied the goroutine. One thread is the clock: the alarm of a
 * wait goes off at any time. With gs_alone the first thread is a goroutine that has the only P, and all
 * others are plain threads.
 * Modelled instead of real: stacks, run queues (to be readied is to be resumed; idle.c explores those), the
 * lock's slow path, the heap of timers (one alarm under a lock), memory.
 */
#ifndef GORT_TEST_MODEL_GS_H
#define GORT_TEST_MODEL_GS_H

#include "model/engine/explore.c"

#include "model/locks.h"

#include <errno.h>

static void *self_get(void);
static void switch_stack(void);
#define gort__arch_self()                  self_get()
#define gort__arch_set_self(m)             ((void)(m))
#define gort__arch_home()                  self_get()
#define gort__arch_switch(from, to)        ((void)(from), (void)(to), switch_stack())
#define gort__arch_ret_indirect(value)     (value)
#define gort__arch_ret_indirect_int(value) (value)
#undef GORT_ARCH_TAIL
#undef GORT_ARCH_RET_INDIRECT_AS
#define GORT_ARCH_TAIL
#define GORT_ARCH_RET_INDIRECT_AS(type, value, ...) (value)
#define gort__arch_make(ctx, hi, fn)                ((void)(ctx), (void)(hi), (void)(fn))

/* Never reached from here; they only have to link. */
#pragma weak gort__mask_put_away
#pragma weak gort__mask_take_up
#pragma weak gort__block_call_run
#pragma weak gort__entry_plain
#pragma weak gort__find
#pragma weak gort__cputime_admit_new
#pragma weak gort__fuzz_here
#pragma weak gort__fuzz_release_slow
#pragma weak gort__fuzz_point
#pragma weak gort__g_collect
#pragma weak gort__preempted_take
#pragma weak gort__entry_light_slow
#pragma weak gort__wake_defer_look
#pragma weak gort__entry_leave_blocking
#pragma weak gort__entry_leave_slow
#pragma weak gort__os_nap
#pragma weak gort__os_thread_yield
#pragma weak gort__overflow_check
#pragma weak gort__local_put_woken
#pragma weak gort__local_put_woken_fits
#pragma weak gort__poll_pending
#pragma weak gort__queue_take
#pragma weak gort__sysmon_sleep_work
#pragma weak gort__handoff_run_bound
#pragma weak gort__scope_refuses
#pragma weak gort__scope_wait_begin
#pragma weak gort__scope_wait_end
#pragma weak gort__idle_spin_stop
#pragma weak gort__stack_class
#pragma weak gort__stack_get
#pragma weak gort__stack_guard_size
#pragma weak gort__gmain_start
#pragma weak gort__timer_ready_at
#pragma weak gort__tight_take
#pragma weak gort__tight_turn
#pragma weak gort__turn_preempted
#pragma weak gort__turn_look
#pragma weak gort__turn_others
#pragma weak gort__turn_pick
#pragma weak gort__turn_woken
#pragma weak gort__handoff_wait_bound
#pragma weak gort__idle_wake_p

#include "model/hooks.h"
#include "sched/core/runq.c"
#include "sched/core/park.c"
#include "sched/core/ready.c"
#include "sched/core/schedule.c"
#define commit_unlock commit_unlock_any
#include "sched/wait/wait.c"
#undef commit_unlock

#ifndef gort__asan
bool gort__asan;
#endif

#ifndef TS
#define TS 3
#endif
#define SOON 100

struct gort__sched gort__sched;
void (*gort__run_at_end)(void);

/* Nobody is followed (latency.c). */
void gort__latency_fair(struct gort__p *p, const struct gort__g *next)
{
    (void)p, (void)next;
}
void gort__latency_follow(struct gort__p *p, struct gort__g *g)
{
    (void)p, (void)g;
}
void gort__latency_mutex(struct gort__m *m, int64_t ns)
{
    (void)m, (void)ns;
}
bool gort__os_light_is_full;
_Thread_local uint64_t gort__tls[4] __attribute__((tls_model("initial-exec")));
static struct gort__m ms[TS];
static struct gort__p ps[TS];
static struct gort__g gs[TS];
static struct {
    struct gort__lock alarm_lock; /* of the heap of timers */
    struct gort__g *alarm;        /* whose wait it ends */
    uint32_t armed;
    uint32_t resumed[TS]; /* readied, and not yet gone on */
    uint32_t slept[TS];   /* plain threads: woken */
    bool off[TS];         /* off its stack */
    bool hasty;           /* a mutation: who goes on is on its stack while others can find it */
    int err[TS];
} asleep; /* who waits; written between steps only, but for what is atomic */

static int gs_outside = -1; /* a thread that is outside of runs and has no M; announced by who needs it */

static void *self_get(void)
{
    return model_self() < 0 || model_self() == gs_outside ? NULL : &ms[model_self()];
}

static int me(void)
{
    int i = model_self();
    MODEL_ASSERT(i >= 0 && i < TS);
    return i;
}

/* --- what the real code calls ------------------------------------------------------------------ */

/* The goroutine of this thread leaves its stack for g0, where its commit runs; it goes on when it was
 * readied. */
static void switch_stack(void)
{
    int i = me();
    asleep.off[i] = !asleep.hasty;
    gort__schedule_switch_finish(); /* on g0 */
    if (asleep.hasty)
        (void)gort__load(&asleep.armed, RELAXED);
    asleep.off[i] = true;
    model_await(&asleep.resumed[i], 1);
    asleep.resumed[i] = 0;
    asleep.off[i] = false;
    gort__store(&ms[i].g, &gs[i], RELEASE); /* as whoever resumes it does */
}
/* Somebody may resume g from now on. */
static void resume(struct gort__g *g)
{
    int i = (int)(g - gs);
    if (!asleep.off[i] && !gort__sched_alone()) /* else it is queued, and waits until its M has time for it */
        model_fail("goroutine %d is resumed while it is on its stack", i);
    MODEL_ASSERT(gort__xchg(&asleep.resumed[i], 1, SEQ_CST) == 0);
}
void gort__local_put_next(struct gort__p *p, struct gort__g *g)
{
    (void)p;
    resume(g);
}
void gort__local_put(struct gort__p *p, struct gort__g *g)
{
    (void)p;
    resume(g);
}
void gort__queue_put(struct gort__g *g)
{
    resume(g);
}
void gort__queue_put_and_wake(struct gort__g *g)
{
    resume(g);
}
void gort__queue_put_woken(struct gort__glist list)
{
    struct gort__g *g = list.first;
    for (uint32_t n = list.n; n; n--) {
        struct gort__g *next = g->link;
        resume(g);
        g = next;
    }
}
void gort__note_sleep(struct gort__m *m)
{
    model_await(&asleep.slept[m - ms], 1);
    asleep.slept[m - ms] = 0;
}
void gort__note_wake(struct gort__m *m)
{
    MODEL_ASSERT(gort__xchg(&asleep.slept[m - ms], 1, SEQ_CST) == 0);
}
int gort__timer_set(struct gort__timer *t, int64_t when, void (*fn)(void *), void *arg)
{
    MODEL_ASSERT(when == SOON && !fn && !asleep.alarm);
    (void)t;
    gort__lock_take(&asleep.alarm_lock, GORT_RANK_TIMER);
    asleep.alarm = arg;
    gort__lock_release(&asleep.alarm_lock, GORT_RANK_TIMER);
    gort__store(&asleep.armed, 1, SEQ_CST);
    return 0;
}
void gort__timer_del(struct gort__timer *t)
{
    (void)t;
    gort__lock_take(&asleep.alarm_lock, GORT_RANK_TIMER);
    asleep.alarm = NULL;
    gort__lock_release(&asleep.alarm_lock, GORT_RANK_TIMER);
}
#ifndef MODEL_CLOCK
int64_t gort__os_now(void)
{
    return 0;
}
#endif

/* --- for the threads and cases ------------------------------------------------------------------ */

static void alarm_fires(void)
{
    struct gort__glist woken = {0};
    gort__lock_take(&asleep.alarm_lock, GORT_RANK_TIMER);
    struct gort__g *g = asleep.alarm;
    asleep.alarm = NULL;
    if (g && gort__g_claim(g)) { /* as gort__timer_fire does */
        g->wait_slot = (void *)(intptr_t)-ETIMEDOUT;
        gort__runq_list_add(&woken, g);
    }
    gort__lock_release(&asleep.alarm_lock, GORT_RANK_TIMER);
    if (woken.n)
        gort__ready(self_get(), g);
}
static void gs_all_awake(void)
{
    for (int i = 0; i < TS; i++)
        MODEL_ASSERT(!asleep.resumed[i] && !asleep.slept[i] && gs[i].wait_word == GORT_CLAIM_NONE);
}

static void gs_start(void)
{
    struct gort__sched *s = &gort__sched;
    memset(s, 0, sizeof *s);
    memset(ms, 0, sizeof ms);
    memset(ps, 0, sizeof ps);
    memset(gs, 0, sizeof gs);
    memset(&asleep, 0, sizeof asleep);
    s->procs = s->p_made = TS; /* not alone */
    s->run = 1;
    for (int i = 0; i < TS; i++) {
        s->ps[i] = &ps[i];
        ps[i].fair_in = 1000;
        ps[i].timers.first = INT64_MAX;
        ps[i].m = &ms[i];
        ms[i].p = &ps[i];
        ms[i].g = &gs[i];
        ms[i].err = &asleep.err[i];
        ms[i].g0.flags = GORT_G_THREAD;
        gs[i].state = GORT_G_RUNNING;
        gs[i].m = &ms[i];
    }
    model_memory(ms, sizeof ms);
    model_memory(ps, sizeof ps);
    model_memory(gs, sizeof gs);
    model_memory(&asleep, sizeof asleep);
    model_quiet(s, offsetof(struct gort__sched, phase)); /* that one is a step */
    model_quiet(&s->phase + 1, sizeof *s - offsetof(struct gort__sched, phase) - sizeof s->phase);
    model_quiet(ps, sizeof ps);
    model_quiet(ms, sizeof ms);  /* each M is its thread's own here */
    for (int i = 0; i < TS; i++) /* but for the claim word */
        model_quiet(&gs[i], offsetof(struct gort__g, wait_word));
}

static inline void gs_alone(void)
{
    gort__sched.procs = gort__sched.p_made = 1;
    for (int i = 1; i < TS; i++) {
        gs[i].flags = GORT_G_THREAD;
        ms[i].p = NULL;
    }
}

#endif

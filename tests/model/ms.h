/* SPDX-License-Identifier: MIT */
/*
 * ms.h - what the models about Ms that look for work, sleep and are woken (idle.c, events.c, poller.c) have
 * in common: the real sources, small versions of what they call, threads, setup and the oracle.
 *
 * An M here is a model thread that calls gort__find as the real loop does; a goroutine is a function call
 * that returns, or one that computes for ever: then its M ends and keeps its P. In the end, when nobody can
 * make a step, every published goroutine has run once, unless all Ps are with goroutines that compute for
 * ever: then sysmon has been told that it waits.
 * Modelled instead of real: the lock's slow path (waits until the word is free), futexes, the clock, the
 * supervisor (model threads stand by that become the wanted ones), the poller (a sleep that a kick ends), the
 * heap of timers (each P has room for one). Absent: stops of the world, bound goroutines, stacks, fds that
 * are ready, the watch. Each case says what it is about: rings, woken goroutines, timers, fds. The rest is
 * quiet: visible at once, and no steps.
 */
#ifndef GORT_TEST_MODEL_MS_H
#define GORT_TEST_MODEL_MS_H

#include "model/engine/explore.c"

#include "model/locks.h"

/* Never reached from here; they only have to link. */
#pragma weak gort__os_beat
#pragma weak gort__warn
#pragma weak gort__entry_attend
#pragma weak gort__entry_thread_ends
#pragma weak gort__os_at_thread_end
#pragma weak gort__cputime_begin
#pragma weak gort__cputime_end
#pragma weak gort__preempt_ask
#pragma weak gort__preempt_thread
#pragma weak gort__preempt_thread_end
#pragma weak gort__sysmon_sleep_disarm_locked
#pragma weak gort__sysmon_sleep_arm_locked
#pragma weak gort__zombie_free
#pragma weak gort__fuzz_point
#pragma weak gort__g_cache_flush
#pragma weak gort__os_altstack_restore
#pragma weak gort__os_altstack_set
#pragma weak gort__os_errno
#pragma weak gort__os_fence_heavy
#pragma weak gort__os_nap
#pragma weak gort__poll_open
#pragma weak gort__timer_heap_init
#pragma weak gort__os_thread_stack_size
#pragma weak gort__os_thread_id
#pragma weak gort__os_thread_stack
#pragma weak gort__os_thread_yield
#pragma weak gort__mask_doubt
#pragma weak gort__mask_thread
#pragma weak gort__os_eh_globals
#pragma weak gort__os_vm_guard
#pragma weak gort__os_vm_unmap
#pragma weak gort__schedule_loop
#pragma weak gort__stack_cache_flush
#pragma weak gort__schedule_switch_away
#pragma weak gort__world_event

#include "model/hooks.h"
#define gort__arch_ticks()   ticks()     /* of the book */
#define gort__p_new_slice(p) ((void)(p)) /* sysmon counts them */
static uint64_t ticks(void);

#include "sched/core/runq.c"
#include "sched/core/queue.c"
#include "sched/core/local.c"
#include "sched/core/turn.c"
#include "sched/core/tight.c"
#include "sched/threads/p.c"
#include "sched/threads/idle.c"
#include "sched/threads/find.c"
#include "sched/threads/m.c"
#include "sched/core/note.c"
#include "sched/threads/handoff.c"
#include "sched/core/preempted.c"
#include "sched/core/park.c"
#include "sched/core/ready.c"
#include "sched/threads/netpoll.c"
#include "sched/threads/poller.c"

#ifndef gort__asan
bool gort__asan;
#endif

#define MS    3 /* Ms that are there from the start */
#define MADE  2 /* more Ms, made on demand */
#define PS    3
#define GS    3
#define LATE  100 /* when timers are due */
#define EARLY 50
#define SOON  30

struct gort__sched gort__sched;

/* Nobody stops the world. */
void gort__world_publish_sp(struct gort__m *m, void *sp)
{
    (void)m;
    (void)sp;
}

void gort__world_retract_sp(struct gort__m *m)
{
    (void)m;
}

bool gort__os_light_is_full;
int gort__zombie_count;
_Thread_local uint64_t gort__tls[4] __attribute__((tls_model("initial-exec")));
static struct gort__m ms[MS + MADE]; /* the first is the publisher's; the last have no thread yet */
static struct gort__p ps[PS];
static struct gort__g gs[GS];
static struct {
    uint32_t published, ran[GS], computing;
    bool for_ever[GS];    /* this one never returns */
    uint32_t begun[MADE]; /* threads made on demand */
    int64_t now;
    uint64_t ticks;
    uint32_t kicked;  /* the poller's eventfd */
    uint32_t pending; /* goroutines that wait for an fd, which is never ready; atomic */
    bool timers;      /* the case is about timers: that of P 0 readies gs[1], that of P 1 gs[2] */
    uint32_t noted;   /* those published when sysmon, which sleeps for long, was last told of work */
} book;               /* what the threads did; written between steps only */

/* --- what the real code calls ----------------------------------------------------------------- */

struct gort__g gort__poll_marker;
bool (*gort__poll_claim)(struct gort__poll_waiter *w);
uint32_t gort__poll_pending(void)
{
    return gort__load(&book.pending, RELAXED);
}
void gort__poll_kick(void)
{
    gort__xchg(&book.kicked, 1, SEQ_CST); /* pairs with gort__poll_look */
    model_futex_wake(&book.kicked);
}
struct gort__poll_waiter *gort__poll_look(int64_t deadline)
{
    bool timed_out = false;
    if (deadline == INT64_MIN)
        return NULL;
    if (deadline > book.now)
        model_futex_wait(&book.kicked, 0, deadline != INT64_MAX, &timed_out);
    if (timed_out && book.now < deadline)
        book.now = deadline;
    gort__xchg(&book.kicked, 0, SEQ_CST); /* pairs with gort__poll_kick */
    return NULL;
}
int64_t gort__timer_next(void)
{
    int64_t next = INT64_MAX;
    for (int i = 0; book.timers && i < gort__sched.p_made; i++) {
        int64_t first = gort__load(&ps[i].timers.first, RELAXED);
        if (first < next)
            next = first;
    }
    return next;
}
bool gort__timer_coalesces(void)
{
    return false;
}
uint32_t gort__timer_fire(struct gort__heap *h, struct gort__m *m, int64_t now)
{
    int64_t first = gort__load(&h->first, RELAXED);
    if (first > now || !gort__cas(&h->first, &first, INT64_MAX, SEQ_CST)) /* stands for the lock */
        return 0;
    int i = h == &ps[0].timers ? 1 : 2;
    book.published |= 1u << i;
    gs[i].state = GORT_G_WAITING;
    struct gort__glist woken = {&gs[i], &gs[i], 1};
    if (m->p && gort__local_empty(m->p)) /* as in timer.c */
        gort__ready_events_no_wake(m, woken);
    else
        gort__ready_events(m, woken);
    return 1;
}
uint32_t gort__timer_run(struct gort__m *m, int64_t now)
{
    uint32_t n = 0;
    for (int i = 0; book.timers && i < gort__sched.p_made; i++)
        n += gort__timer_fire(&ps[i].timers, m, now);
    return n;
}
/* As in schedule.c, but for the fair picks. */
struct gort__g *gort__schedule_pick_local(struct gort__p *p)
{
    struct gort__g *g = p->mode & GORT_MODE_OVER ? NULL : gort__runq_get_next(&p->runq);
    if (g)
        return g;
    return p->mode ? gort__turn_pick(p) : gort__runq_get(&p->runq);
}
int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline)
{
    bool timed_out;
    int result = model_futex_wait(word, expected, deadline != INT64_MAX, &timed_out);
    if (timed_out && book.now < deadline)
        book.now = deadline;
    return result;
}
int gort__os_cpu(void)
{
    return model_self() % 2;
}

void gort__os_futex_wake(uint32_t *word, int count)
{
    (void)count;
    model_futex_wake(word);
}
int64_t gort__os_now(void)
{
    return book.now;
}
static uint64_t ticks(void)
{
    return book.ticks;
}
size_t gort__os_page(void)
{
    return 4096;
}
void *gort__os_vm_map(size_t size, size_t align)
{
    (void)size, (void)align;
    model_cut(); /* more threads on demand than the model has */
}
void gort__supervisor_deadlock_locked(void) {}
void gort__sysmon_sleep_calm(void) {}
void gort__sysmon_sleep_work(void)
{
    book.noted = book.published;
}
void gort__sysmon_sleep_notify(void)
{
    gort__sysmon_sleep_work();
}
/* All Ps are busy: sysmon wakes for the timer and listens to the fds (sysmon_sleep.c explores that it does),
 * and sees to them. */
void gort__sysmon_sleep_timer(int64_t when)
{
    (void)when;
}
void gort__sysmon_sleep_events(void) {}
void gort__overflow_check(struct gort__g *g)
{
    (void)g;
}
void gort__supervisor_wake_locked(void)
{
    struct gort__m *m = gort__sched.ms.wanted;
    if (!m) /* it is to try again soon: here it never does */
        return;
    gort__sched.ms.wanted = m->link;
    for (int i = 0; i < MADE; i++)
        book.begun[i] |= m == &ms[MS + i];
}

/* --- the threads ------------------------------------------------------------------------------ */

/* False: it computes for ever. */
static bool run(struct gort__g *g)
{
    MODEL_ASSERT(g >= gs && g < gs + GS);
    MODEL_ASSERT(++book.ran[g - gs] == 1);
    book.computing += book.for_ever[g - gs];
    return !book.for_ever[g - gs];
}

/* gort__schedule_loop without the switch of stacks. */
static void loop(struct gort__m *m)
{
    for (;;) {
        struct gort__g *g = gort__find(m);
        if (!g)
            return;
        MODEL_ASSERT(m->p && m->p->m == m);
        if (m->spinning)
            gort__idle_spin_stop(m);
        if (!run(g))
            return;
    }
}

static GORT_UNUSED void m1(void)
{
    loop(&ms[1]);
}

static GORT_UNUSED void m2(void)
{
    loop(&ms[2]);
}
/* Ms that do not exist yet. */
static void begin(int i)
{
    model_await(&book.begun[i], 1);
    gort__m_take_next_p(&ms[MS + i]);
    loop(&ms[MS + i]);
}

static GORT_UNUSED void made0(void)
{
    begin(0);
}

static GORT_UNUSED void made1(void)
{
    begin(1);
}

static void publish(int i)
{
    book.published |= 1u << i;
    gs[i].state = GORT_G_WAITING;
    gort__ready(&ms[0], &gs[i]);
}
/* A plain thread: through sched.woken. */
static GORT_UNUSED void plain_readies_one(void)
{
    publish(0);
}
/* Its goroutine makes an announced blocking call that lasts: the P changes hands with all that it has. */
static GORT_UNUSED void hands_off_own(void)
{
    gort__handoff_give(&ms[0]);
}

/* --- setup and oracle ------------------------------------------------------------------------- */

/* What a case is about; the rest is quiet. */
enum { RINGS = 1, WOKEN = 2, TIMERS = 4, FDS = 8 };

/* Ps 0 .. procs-1; M i holds P i, except that M 0 is a plain thread if !inside, and its P then is idle. Up to
 * `spare` threads can be made. */
static void start_with(int procs, bool inside, int spare, int about)
{
    bool timers = about & TIMERS;
    struct gort__sched *s = &gort__sched;
    memset(s, 0, sizeof *s);
    memset(ms, 0, sizeof ms);
    memset(ps, 0, sizeof ps);
    memset(gs, 0, sizeof gs);
    memset(&book, 0, sizeof book);
    book.timers = timers;
    s->sysmon.on = about & (TIMERS | FDS);
    s->sysmon.state = GORT_MON_LONG;
    s->procs = s->p_made = procs;
    s->conf.max_threads = MS + MADE;
    s->conf.idle_ms = 1;
    s->ms.n = procs;
    for (int i = 0; i < procs; i++) {
        s->ps[i] = &ps[i];
        ps[i].id = i;
        ps[i].fair_in = 1000;
        ps[i].timers.first = INT64_MAX;
        if (i > 0 || inside)
            gort__p_take(&ms[i], &ps[i]);
    }
    if (!inside)
        gort__p_idle_put_locked(&ps[0]);
    model_memory(s, offsetof(struct gort__sched, ps));
    model_memory(ms, sizeof ms);
    model_memory(ps, sizeof ps);
    model_memory(gs, sizeof gs);
    model_memory(&book, sizeof book);
    model_quiet(&s->procs, sizeof s->procs);
    model_quiet(s->ps, sizeof s->ps);
    model_quiet(gs, sizeof gs);
    if (!(about & FDS))
        model_quiet(&book.pending, sizeof book.pending);
    model_quiet(&s->sysmon.state, sizeof s->sysmon.state);
    model_quiet(&s->fuzz, sizeof s->fuzz);
    model_quiet(&s->preempted.n,
                offsetof(struct gort__sched, idle_ps) - offsetof(struct gort__sched, preempted.n));
    if (!(about & RINGS))
        model_quiet(&s->global.n, sizeof s->global.n);
    if (!(about & WOKEN))
        model_quiet(&s->events.n, sizeof s->events.n);
    for (int i = 0; i < PS; i++) {
        model_quiet(&ps[i].id, offsetof(struct gort__p, m) - offsetof(struct gort__p, id));
        if (!(about & RINGS))
            model_quiet(&ps[i].runq, sizeof ps[i].runq);
        if (!(about & WOKEN))
            model_quiet(&ps[i].events, sizeof ps[i].events);
        if (!timers)
            model_quiet(&ps[i].timers, sizeof ps[i].timers);
    }
    for (int i = 0; i < MS + MADE; i++)
        model_quiet(&ms[i].attention, sizeof ms[i].attention);
    for (int i = spare - 1; i >= 0; i--)
        gort__m_retire_locked(&ms[MS + i]); /* a record to make a thread from */
}

static GORT_UNUSED void start(int procs, bool inside, int spare)
{
    start_with(procs, inside, spare, inside ? RINGS : WOKEN);
}

static GORT_UNUSED void two_plain(void)
{
    start(2, false, 2);
}

static void all_done(void)
{
    struct gort__sched *s = &gort__sched;
    uint32_t missing = 0, unseen = 0, idle = 0;
    for (int i = 0; i < GS; i++) {
        missing += (book.published >> i & 1) && !book.ran[i];
        unseen += (book.published >> i & 1) && !book.ran[i] && !(book.noted >> i & 1);
    }
    for (struct gort__p *p = s->idle_ps; p; p = p->link)
        idle++;
    if (missing && book.computing < (uint32_t)s->procs)
        model_fail("lost wake-up: %u goroutines wait, %u of %d Ps compute", missing, book.computing,
                   s->procs);
    if (unseen)
        model_fail("all Ps compute, %u goroutines wait, and sysmon, which would end a slice, sleeps for long",
                   unseen);
    MODEL_ASSERT(s->spinning == 0);
    MODEL_ASSERT(s->idle_count == idle && idle + book.computing == (uint32_t)s->procs);
    MODEL_ASSERT(s->global.n == s->global.list.n && s->events.n == s->events.list.n);
    for (int i = 0; i < s->procs; i++) /* else its M does not look there */
        MODEL_ASSERT(ps[i].events.head == ps[i].events.tail || (ps[i].mode & GORT_MODE_EVENTS));
    int64_t next = INT64_MAX;
    for (int i = 0; book.timers && i < s->p_made; i++)
        next = ps[i].timers.first < next ? ps[i].timers.first : next;
    if (next != INT64_MAX && book.computing < (uint32_t)s->procs && (!s->poll.until || s->poll.until > next))
        model_fail("a timer is due at %d, the poll owner sleeps until %d", (int)next, (int)s->poll.until);
    if (book.pending && book.computing < (uint32_t)s->procs && !s->poll.until)
        model_fail("one waits for an fd, and nobody owns the poller");
}

/* --- cases ------------------------------------------------------------------------------------ */

/* preemptions 0: all interleavings; else those with at most so many (the threads' number of steps
 * decides). */
static GORT_UNUSED void check(struct model m, const char *name, enum model_memory_kind memory,
                              int preemptions)
{
    m.memory = memory;
    m.preemptions = preemptions;
    model_check(&m, name);
}

#endif

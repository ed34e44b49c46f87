/* SPDX-License-Identifier: MIT */
/*
 * ps.h - what the models about Ps that change hands (handoff.c, world.c, end.c) have in common: the real
 * sources, small versions of what they call, threads to build cases from, and the oracle.
 *
 * Thread i of a model is the thread of M i. A goroutine is a function call: user(), a step in user code,
 * which sysmon takes for a sleep in the kernel, too; call(), an ordinary gort call that uses its P; and the
 * announced blocking calls of block.c. Signals are the engine's: the real handler runs before any step of the
 * thread they are for. The kernel's membarrier is the engine's too; `full` cases have none, and fences
 * instead (GORT_ATT_FENCE).
 * Modelled instead of real: the switch of stacks, the lock's slow path, futexes, the supervisor. Quiet, that
 * is visible at once and no steps: the states of goroutines, the Ps' queues (runq.c and idle.c explore
 * those), what sysmon only guesses by.
 * Absent: timers, fds, bound goroutines, gort_block, code in libc, fork.
 */
#ifndef GORT_TEST_MODEL_PS_H
#define GORT_TEST_MODEL_PS_H

#include "model/engine/explore.c"

#include "model/locks.h"

#include <errno.h>
#include <unistd.h>

/* One self a model thread. */
static void *self_get(void);
static void self_set(void *self);
static void *home_get(void);
#define gort__arch_self()      self_get()
#define gort__arch_set_self(m) self_set(m)
#define gort__arch_home()      home_get()
#define gort__arch_set_home(m) ((void)(m))
/* Time stands still: woken goroutines always may run first. */
#define gort__arch_ticks() ((uint64_t)0)
/* The only system call of barrier.c that is made where membarrier is not refused. */
static long model_syscall(long number, ...)
{
    (void)number;
    model_barrier("membarrier");
    return 0;
}
#define syscall model_syscall

/* Never reached from here; they only have to link. */
#pragma weak gort__warn
#pragma weak gort__slab_chunk_drop
#pragma weak gort__poller_wait
#pragma weak gort__poller_covers
#pragma weak gort__fuzz_point
#pragma weak gort__gmain_cleanup
#pragma weak gort__os_errno
#pragma weak gort__os_thread_join
#pragma weak gort__wake_defer_watch
#pragma weak gort__mask_doubt
#pragma weak gort__warn
#pragma weak gort__mask_take_up
#pragma weak gort__os_thread_precise
#pragma weak gort__os_thread_usual
#pragma weak gort__os_thread_start
#pragma weak gort__os_say_refused
#pragma weak gort__os_thread_stack
#pragma weak gort__os_thread_stack_size
#pragma weak gort__os_eh_globals
#pragma weak gort__scavenge_stack_stir
#pragma weak gort__os_vm_guard
#pragma weak gort__poll_kick
#pragma weak gort__queue_put_and_wake
#pragma weak gort__sysmon_sleep_disarm_locked
#pragma weak gort__sysmon_sleep_close
#pragma weak gort__sysmon_sleep_arm_locked
#pragma weak gort__sysmon_sleep_if_idle
#pragma weak gort__sysmon_sleep_open
#pragma weak gort__sysmon_sleep_quit
#pragma weak gort__sysmon_sleep
#pragma weak gort__sysmon_sleep_until
#pragma weak gort__sysmon_sleep_work
#pragma weak gort__os_vm_unmap
#pragma weak gort__schedule_loop
#pragma weak gort__sysmon_sleep_notify
#pragma weak gort__timer_heap_init

#include "model/hooks.h"
#include "os/linux/barrier.c"
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
#include "sched/life/entry.c"
#include "sched/threads/block.c"
#include "sched/core/stall.c"
#include "sched/monitor/preempt.c"
#include "sched/life/world.c"
#include "sched/monitor/sysmon.c"

#ifndef gort__asan
bool gort__asan;
#endif

struct gort__os_force gort__os_force; /* nothing is forced */

#define TS MODEL_THREADS
#define PS 2

#ifndef MODEL_REAL_RUN
struct gort__sched gort__sched;
int gort__zombie_count;
void gort__zombie_free(struct gort__zombie *e)
{
    (void)e;
    model_fail("nobody is left behind");
}
#endif
struct gort__g gort__poll_marker;
_Thread_local uint64_t gort__tls[4] __attribute__((tls_model("initial-exec")));
static struct gort__m ms[TS];
static struct gort__p ps[PS];
static struct gort__g gs[TS];
static struct {
    struct gort__m *self[TS];
    bool catches[TS]; /* jumps[i] is set */
    uint32_t begun[TS], ended[TS];
    uint32_t tick, never; /* words to make steps with */
    uint32_t done;        /* scripts that came to their end: bits */
    uint32_t ran;         /* goroutines from the queue: bits */
    uint32_t users[PS];   /* who uses this P right now */
    uint32_t work[PS];    /* counted by whoever uses it, in the way that a P's own data is written */
    uint32_t worked[PS];  /* what it must be */
    uint32_t patient;     /* these run while nobody is preempted: bits */
    uint32_t last;        /* these run when goroutine 0 has ended: bits */
    bool computes;        /* sysmon sees that nobody sleeps */
    int64_t cpu;          /* that every thread has used */
    int64_t now;          /* for sysmon, which nobody else asks */
    uint32_t supervisor;  /* it was woken */
    bool stopped;         /* user code must not run ... */
    bool stopped_inside;  /* ... nobody must use a P ... */
    int stopper;          /* ... but this thread */
    bool over;            /* the run is torn down */
} book;                   /* what the threads did; written between steps only */

static struct {
    uint64_t granted, jumped, acted, refused;
} met;                      /* over all executions: how often a case came to what it is about */
static jmp_buf jumps[TS];   /* where a signal handler of the program jumps to: the same in all executions */
static jmp_buf ends_at[TS]; /* where a thread goes on whose goroutine is left for good: the same */

static void *self_get(void)
{
    return model_self() < 0 ? NULL : book.self[model_self()];
}
static void *home_get(void)
{
    struct gort__m *self = self_get();
    return self && (self->attention & GORT_ATT_SHADOW) ? GORT_CONTAINER(self, struct gort__m, shadow) : self;
}
static void self_set(void *self)
{
    book.self[model_self()] = self;
}

/* --- what the real code calls ----------------------------------------------------------------- */

uint32_t gort__poll_pending(void)
{
    return 0;
}
uint32_t gort__netpoll(struct gort__m *m, int64_t deadline)
{
    (void)m, (void)deadline;
    return 0;
}
int64_t gort__timer_next(void)
{
    return INT64_MAX;
}
uint32_t gort__timer_fire(struct gort__heap *h, struct gort__m *m, int64_t now)
{
    (void)h, (void)m, (void)now;
    return 0;
}
uint32_t gort__timer_run(struct gort__m *m, int64_t now)
{
    (void)m, (void)now;
    return 0;
}
void gort__timer_watch(void) {}
void gort__sysmon_sleep_calm(void) {}
void gort__cputime_begin(struct gort__m *m)
{
    (void)m;
}
void gort__cputime_end(struct gort__m *m)
{
    (void)m;
}
bool gort__cputime_awake(int64_t ns, int64_t cpu)
{
    (void)ns, (void)cpu;
    return book.computes;
}
int64_t gort__cputime_burst(struct gort__m *m, struct gort__p *p, int64_t now, int64_t cpu)
{
    (void)m, (void)p, (void)now, (void)cpu;
    return 0;
}
void gort__wake_defer_watch(struct gort__p *p)
{
    (void)p;
}
void gort__g_cache_flush(struct gort__p *p)
{
    (void)p;
}
void gort__stack_cache_flush(struct gort__stack_cache *c)
{
    (void)c;
}
void gort__supervisor_deadlock_locked(void) {}
bool gort__poller_take_locked(struct gort__m *m)
{
    (void)m;
    return false;
}
bool gort__poller_wanted(void)
{
    return false;
}
bool gort__poller_vacant(void)
{
    return gort__poller_wanted();
}
/* As in schedule.c, but for the fair picks. */
struct gort__g *gort__schedule_pick_local(struct gort__p *p)
{
    struct gort__g *g = p->mode & GORT_MODE_OVER ? NULL : gort__runq_get_next(&p->runq);
    if (g)
        return g;
    if (p->mode)
        return gort__turn_pick(p);
    g = gort__runq_get(&p->runq);
    gort__p_new_slice(p);
    return g;
}
/* Of a goroutine whose run is over. */
struct gort__m *gort__schedule_switch_to(struct gort__m *m, struct gort__g *from, struct gort__g *to)
{
    MODEL_ASSERT(to == &m->g0 && m == self_get() && from != to);
    model_unmask();
    gort__store(&m->g, to, RELEASE); /* pairs with run.c:make_zombie, as in the real one */
    _longjmp(ends_at[model_self()], 1);
}
struct gort__m *gort__schedule_yield(struct gort__m *m)
{
    return m;
}
/* In our handler a signal handler of the program may end the sleep, and jump out of both. */
int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline)
{
    const struct gort__m *m = self_get();
    bool left;
    (void)deadline;
    int result = model_futex_wait(word, expected, m && m->preempt.in_handler && book.catches[model_self()],
                                  &left);
    if (left) {
        met.jumped++;
        model_unmask();
        _longjmp(jumps[model_self()], 1);
    }
    return result;
}
void gort__os_futex_wake(uint32_t *word, int count)
{
    if (count == 1)
        model_futex_wake(word);
    else
        model_futex_wake_all(word);
}
int64_t gort__os_now(void)
{
    return 0;
}
void gort__os_nap(int64_t ns)
{
    (void)ns;
    book.cpu = FREEZE_GRACE + 1; /* time passes */
    (void)gort__load(&book.tick, RELAXED);
}
void gort__os_thread_yield(void) {}
int gort__os_cpu(void)
{
    return model_self() % 2;
}
int gort__os_thread_id(void)
{
    return model_self() + 1;
}
int64_t gort__os_thread_cpu(int tid)
{
    (void)tid;
    return book.cpu;
}
bool gort__os_thread_holds_back(int tid, int number)
{
    (void)tid, (void)number;
    return false;
}
enum gort__os_task gort__os_thread_state(int tid)
{
    (void)tid;
    return book.computes ? GORT__OS_TASK_RUNS : GORT__OS_TASK_SLEEPS;
}
void gort__os_thread_usage(int64_t *cpu, uint64_t *waits)
{
    *cpu = book.cpu;
    *waits = 0;
}
void gort__os_thread_signal(int tid, int number, void *value)
{
    MODEL_ASSERT(tid > 0 && value == &signo);
    (void)number;
    model_signal(tid - 1);
}
int gort__os_cpu_timer_make(int tid, int number, void *value)
{
    (void)number, (void)value;
    return tid - 1;
}
bool gort__os_cpu_timer_arm(int timer, int64_t ns)
{
    (void)ns;
    gort__fence(SEQ_CST); /* a handler sees what was stored before the system call */
    model_signal(timer);
    return true;
}
void gort__os_cpu_timer_drop(int timer)
{
    (void)timer;
}
bool gort__os_text_in_libc(const struct gort__os_signal *s)
{
    (void)s;
    return false;
}
bool gort__os_text_loading(const struct gort__os_signal *s)
{
    (void)s;
    return false;
}
void gort__os_text_collect(void) {}
int gort__os_signal_share(int number, void (*fn)(const struct gort__os_signal *))
{
    (void)number, (void)fn;
    return 0;
}
bool gort__os_signal_shared(int number)
{
    (void)number;
    return true;
}
void gort__os_signal_unshare(int number)
{
    (void)number;
}
void gort__os_signal_chain(const struct gort__os_signal *s)
{
    (void)s;
}
/* Nobody changes a mask. */
void gort__mask_thread(struct gort__m *m)
{
    (void)m;
}

bool gort__mask_put_away(struct gort__m *m, uint64_t *mask)
{
    (void)m, (void)mask;
    return false;
}

void gort__os_signal_block(int number)
{
    (void)number;
}
void gort__os_signal_unblock(int number)
{
    (void)number;
}
int gort__os_at_thread_end(void (*fn)(void *), void *arg)
{
    (void)fn, (void)arg;
    return 0;
}
void gort__os_altstack_set(void *stack, size_t size, struct gort__os_altstack *old)
{
    (void)stack, (void)size, (void)old;
}
void gort__os_altstack_restore(const struct gort__os_altstack *old)
{
    (void)old;
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
void gort__supervisor_wake_locked(void)
{
    struct gort__m *m = gort__sched.ms.wanted;
    gort__sched.ms.wanted = NULL;
    book.supervisor = 1;
    if (m)
        book.begun[m - ms] = 1;
}

/* --- threads to build cases from -------------------------------------------------------------- */

static GORT_UNUSED void on_model_signal(void)
{
    struct gort__os_signal s = {.thread = true, .value = &signo};
    on_signal(&s);
}

/* A step in user code. */
static void user(void)
{
    (void)gort__load(&book.tick, RELAXED);
    MODEL_ASSERT(!book.stopped || book.stopper == model_self());
}

/* Something that needs the P: nobody else has it, and what the last one wrote is there. */
static void use_p(struct gort__m *m)
{
    MODEL_ASSERT(m == self_get() && m == &ms[model_self()]);
    MODEL_ASSERT(!book.over && m->p && m->p->m == m && m->inside);
    int i = m->p->id;
    MODEL_ASSERT(!book.stopped_inside || book.stopper == model_self());
    MODEL_ASSERT(++book.users[i] == 1);
    uint32_t n = gort__load(&book.work[i], RELAXED);
    MODEL_ASSERT(n == book.worked[i]++);
    gort__store(&book.work[i], n + 1, RELAXED);
    MODEL_ASSERT(!book.stopped_inside || book.stopper == model_self());
    MODEL_ASSERT(--book.users[i] == 0);
}

/* Any gort call of a goroutine. */
static void call(void)
{
    struct gort__m *m = gort__enter();
    MODEL_ASSERT(m);
    use_p(m);
    gort__leave(m);
}

/* gort__schedule_loop without the switch of stacks; goroutines from the queue make a call and end. */
static void m_loop(struct gort__m *m)
{
    struct gort__g *g;
    while ((g = gort__find(m)) != NULL) {
        MODEL_ASSERT(m->p && m->p->m == m);
        if ((g->flags & GORT_G_BOUND) && g->m != m) {
            met.granted++;
            gort__handoff_run_bound(m, g);
            continue;
        }
        if (m->spinning)
            gort__idle_spin_stop(m);
        MODEL_ASSERT(!(book.ran & 1u << (g - gs)));
        book.ran |= 1u << (g - gs);
        MODEL_ASSERT(!(book.patient & 1u << (g - gs)) || !gort__sched.preempted.list.n);
        MODEL_ASSERT(!(book.last & 1u << (g - gs)) || (book.done & 1));
        gort__store(&m->g, g, RELEASE); /* as switch_to does */
        g->m = m;                       /* plain: others look at it only after they got g from a queue */
        gort__leave(m);
        user();
        m = gort__enter();
        use_p(m);
        gort__store(&m->g, &m->g0, RELEASE); /* as switch_to does */
    }
}

/* The goroutine that thread i began in ends: its M looks for work like the others. */
static GORT_UNUSED void ends(void)
{
    struct gort__m *m = gort__enter();
    MODEL_ASSERT(m == self_get());
    use_p(m);
    book.done |= 1u << model_self();
    gort__store(&m->g, &m->g0, RELEASE); /* as switch_to does */
    m_loop(m);
}

/* M i sleeps in ms.idle from the start. */
static GORT_UNUSED void sleeps_idle(void)
{
    struct gort__m *m = self_get();
    gort__note_sleep(m);
    gort__m_take_next_p(m);
    m_loop(m);
}

/* M i is made on demand. */
static GORT_UNUSED void made(void)
{
    struct gort__m *m = &ms[model_self()];
    model_await(&book.begun[model_self()], 1);
    self_set(m);
    m->inside = 1;
    m->tid = model_self() + 1;
    m->timer = model_self();
    gort__store(&m->life.started, true, RELEASE); /* as gort__m_main does */
    gort__os_fence_light();                       /* as gort__m_main does */
    gort__m_take_next_p(m);
    m_loop(m);
}

/* A look of sysmon at P 0, at which its M has been in one time slice for long: it takes the P away from one
 * that sleeps in the kernel or in an announced call, and asks the others to stop. */
static GORT_UNUSED void sysmon_looks(bool computes)
{
    bool moved = false;
    struct gort__watch *w = &ps[0].watch;
    const struct gort__m *m = ps[0].m;
    book.computes = computes;
    if (ps[0].m) /* an earlier look */
        mark_call(ps[0].m);
    look_at(&ps[0], ++book.now, (struct waiting){0, true}, &moved);
    if (w->asked == book.now || ps[0].m != m)
        met.acted++;
    else
        met.refused++;
}

/* Sysmon sees that woken goroutines wait, and that all Ps compute. */
static GORT_UNUSED void sysmon_makes_room(void)
{
    book.computes = true;
    make_room(++book.now);
}

/* --- setup ------------------------------------------------------------------------------------ */

static struct gort__m *new_m(int i)
{
    struct gort__m *m = &ms[i];
    prepare(m);
    m->tid = i + 1;
    m->timer = i;
    m->life.started = true;
    m->life.has_thread = true;
    m->all_next = gort__sched.ms.all;
    gort__sched.ms.all = m;
    gort__sched.ms.n++;
    book.self[i] = m;
    return m;
}
/* M i runs goroutine i, with P p. signals: its CPU timer works. */
static GORT_UNUSED void runs(int i, int p, bool signals)
{
    struct gort__m *m = new_m(i);
    gort__p_take(m, &ps[p]);
    m->timer = signals ? i : -1;
    m->g = &gs[i];
    gs[i].m = m;
    gs[i].state = GORT_G_RUNNING;
    ps[p].watch = (struct gort__watch){.m = m, .since = -GORT_SLICE};
}
static GORT_UNUSED void is_idle(int i)
{
    struct gort__m *m = new_m(i);
    m->inside = 1;
    m->link = gort__sched.ms.idle;
    gort__sched.ms.idle = m;
}
static GORT_UNUSED void is_queued(int i)
{
    gs[i].state = GORT_G_RUNNABLE;
    gort__queue_put_locked(&gs[i]);
}
/* By an event, and not by a P. */
static GORT_UNUSED void is_woken(int i)
{
    gs[i].state = GORT_G_RUNNABLE;
    gort__queue_put_woken_locked(&gs[i]);
}
/* A thread that called gort once. */
static GORT_UNUSED void is_plain(int i)
{
    struct gort__m *m = &ms[i];
    prepare(m);
    m->plain = true;
    m->tid = i + 1;
    m->run = gort__sched.run;
    gort__sched.plain_ms = m;
    gort__sched.plain.users++;
    book.self[i] = m;
}
static GORT_UNUSED void can_be_made(int i)
{
    gort__m_retire_locked(&ms[i]);
}

static void begin_setup(int procs, bool full)
{
    struct gort__sched *s = &gort__sched;
    memset(s, 0, sizeof *s);
    memset(ms, 0, sizeof ms);
    memset(ps, 0, sizeof ps);
    memset(gs, 0, sizeof gs);
    memset(&book, 0, sizeof book);
    gort__os_light_is_full = full;
    s->procs = s->p_made = procs;
    s->phase = GORT_PHASE_ON;
    s->run = 1;
    s->conf.max_threads = 2 * TS;
    s->conf.idle_ms = 1;
    for (int i = 0; i < PS; i++) {
        s->ps[i] = &ps[i];
        ps[i].id = i;
        ps[i].timers.first = INT64_MAX;
    }
}

/* What only those who stop the world or end the run look at. */
static void quiet_world(int threads)
{
    struct gort__sched *s = &gort__sched;
    model_quiet(&s->world_word, sizeof s->world_word);
    model_quiet(&s->world, sizeof s->world);
    for (int i = 0; i < threads; i++) {
        model_quiet(&ms[i].life, offsetof(struct gort__m, handoff.next_p) - offsetof(struct gort__m, life));
        model_quiet(&ms[i].block_g, sizeof ms[i].block_g);
    }
}

/* Says what is shared. threads: how many Ms the case has; world: it is about more than Ps. */
static void end_setup(int threads, bool world)
{
    struct gort__sched *s = &gort__sched;
    model_memory(s, offsetof(struct gort__sched, ps));
    model_memory(&s->p_made, offsetof(struct gort__sched, conf) - offsetof(struct gort__sched, p_made));
    model_memory(ms, sizeof ms[0] * (size_t)threads);
    model_memory(ps, sizeof ps);
    model_memory(gs, sizeof gs[0] * (size_t)threads);
    model_memory(&book, sizeof book);
    model_quiet(&gort__os_light_is_full, sizeof gort__os_light_is_full);
    model_quiet(&s->idle_count, /* of sleeping and waking, up to what the lock guards anyway */
                offsetof(struct gort__sched, limit) - offsetof(struct gort__sched, idle_count));
    model_quiet(s->ps, sizeof s->ps);
    if (!world)
        quiet_world(threads);
    model_quiet(gs, sizeof gs);
    model_quiet(&signo, sizeof signo);
    for (int i = 0; i < PS; i++) {
        model_quiet(&ps[i], offsetof(struct gort__p, m));
        model_quiet(&ps[i].long_blocks, sizeof ps[i].long_blocks);
        model_quiet(&ps[i].timers, sizeof ps[i].timers);
    }
    for (int i = 0; i < threads; i++) {
        model_quiet(&ms[i].g0, sizeof ms[i].g0);
        model_quiet(&ms[i].shadow, sizeof ms[i].shadow);
        model_quiet(&ms[i].tid, 2 * sizeof ms[i].tid);
        model_quiet(&ms[i].burst, offsetof(struct gort__m, handoff) - offsetof(struct gort__m, burst));
        model_quiet(&ms[i].ask.slice, 2 * sizeof ms[i].ask.slice);
        model_quiet(&ms[i].commit.fn, sizeof ms[i].commit.fn);
    }
}

/* --- oracle ----------------------------------------------------------------------------------- */

/* Every P is idle or with one M that runs on; nobody waits. */
static GORT_UNUSED void ps_in_order(void)
{
    struct gort__sched *s = &gort__sched;
    uint32_t idle = 0;
    for (const struct gort__p *p = s->idle_ps; p; p = p->link) {
        MODEL_ASSERT(!p->m);
        idle++;
    }
    MODEL_ASSERT(s->idle_count == idle);
    for (int i = 0; i < s->procs; i++) {
        const struct gort__m *m = ps[i].m;
        idle += m != NULL;
        if (m && m->p != &ps[i])
            model_fail("P %d is lost: granted to M %d, which does not come", i, (int)(m - ms));
    }
    if (idle != (uint32_t)s->procs)
        model_fail("a P is lost: %u of %d are idle or with an M", idle, s->procs);
    for (int i = 0; i < PS; i++)
        MODEL_ASSERT(book.work[i] == book.worked[i]);
    for (int i = 0; i < TS; i++) {
        MODEL_ASSERT(!ms[i].p || ms[i].p->m == &ms[i]);
        MODEL_ASSERT(!ms[i].handoff.next_p && !ms[i].handoff.stopped);
        MODEL_ASSERT(!ms[i].handoff.waiting);
    }
    MODEL_ASSERT(!s->global.list.n && !s->events.list.n && !s->preempted.list.n && !s->lock.word &&
                 !(s->world_word & 1) && !s->world.busy);
}

/* --- exploring -------------------------------------------------------------------------------- */

static inline void mutant(struct model m, const char *name, enum model_memory_kind memory, int preemptions,
                          struct model_mutation mutation)
{
    m.memory = memory;
    m.preemptions = preemptions;
    model_catch_at(&m, name, mutation);
}

#endif

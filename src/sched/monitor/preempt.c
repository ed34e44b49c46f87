/* SPDX-License-Identifier: MIT */
/*
 * preempt.c - interrupting code that does not call us.
 *
 * Why: a signal reaches a thread anywhere. The handler does what the next gort call would do: it looks at the
 * M's attention. If the goroutine's time is up, or it has no P, it waits right there, on the alternate stack,
 * until it is granted a P; then it returns to exactly where the code was, with every register as the kernel
 * saved it. The goroutine keeps its thread, because C code keeps addresses of thread-local data in registers,
 * and locks that know their owner.
 *
 * How the signal is sent: by a timer on the thread's own CPU clock, which goes off only while the thread
 * computes, so no system call is ever cut short. Sent directly, which does cut some short, it is for threads
 * that have only computed for a while (sysmon.c), for a stop of the world, and at the end of a run.
 *
 * Inside the runtime the handler does nothing: attention stays set, and the exit looks at it. In libc, the
 * loader or an allocator it comes again a few times before it insists: there the code may hold locks. At the
 * end of a run threads that compute are frozen: the handler never returns; there it always insists on a place
 * outside of libc, or in memset and its like, which hold no lock (os/linux/text.c). But first they may come
 * to their next call, which ends them: a signal from before the end must not freeze one that is about to call
 * us, and leave its thread for good. So they have a little of their own CPU time for that, however long it
 * takes them to get it. One that slept in a blocking call is ended when it comes back.
 * Invariants: (1) the handler takes no lock but the runtime's own, which nobody holds in user code, and calls
 * nothing that allocates; (2) in_handler is set while the thread is in the handler because of us, on the
 * alternate stack or, under valgrind, on the one that the signal met; (3) no other handler runs meanwhile, so
 * none leaves ours half-way by siglongjmp (os/linux/signal.c masks them).
 * Threads: the handler by each M for itself.
 */
#include "base/fatal.h"
#include "mem/sanitize.h"
#include "os/force.h"
#include "sched/monitor/monitor.h"

#define DEFERRALS_MAX     3       /* times */
#define POLITE_FOR        1000000 /* ns of CPU time between them */
#define DEFERRALS_OFF_MAX 100     /* times, at the end of a run: one that keeps preemption off */

static int signo; /* of the current or last run; atomic: threads that a run left behind use it too */

/* Stops for good. The record, the goroutine and its stack stay as they are. */
__attribute__((noreturn)) static void freeze_here(struct gort__m *m)
{
    gort__store(&m->inside, 0, RELEASE);     /* pairs with run.c:make_zombie */
    gort__store(&m->end.frozen, 1, RELEASE); /* pairs with gort__preempt_freeze */
    for (;;)
        gort__os_futex_wait(&m->end.frozen, 1, INT64_MAX);
}

/* The run has ended, and the thread computes. Back from a blocking call it ends; unless it runs on its own
 * stack (gort_block), which comes to its end by itself. */
static void run_is_over(struct gort__m *m)
{
    if (!gort__load(&m->end.slept, RELAXED))
        freeze_here(m);
    if (m->block_g && !m->block.on_g0)
        gort__store(&m->g, m->block_g, RELAXED);
    if (m->g == &m->g0)
        return;
    gort__arch_set_self(m);
    gort__store(&m->inside, 1, RELAXED);
    gort__hooks.life.end_thread(m);
}

#define FREEZE_GRACE INT64_C(2000000) /* ns of CPU time, in which it may still call us */

/* The thread's clock tells, not the signal: that may be from before the end, and a thread that got no CPU
 * since then has not had its time. */
static bool grace_is_over(struct gort__m *m)
{
    int64_t from = gort__load(&m->end.cpu, RELAXED), cpu = gort__os_thread_cpu(gort__load(&m->tid, RELAXED));
    return from && (cpu < 0 || cpu - from >= FREEZE_GRACE);
}

/* The handler finds that the run is over. One that waits for a P does not go on: only those who ran when main
 * returned have time left. Not armed when it has: gort__preempt_freeze sees to a signal when the time is
 * over. */
static void meet_end(struct gort__m *m, uint32_t bits, bool off, bool libc, const struct gort__os_signal *s)
{
    /* Masked: it ran on without a P. */
    bool waits = (bits & GORT_ATT_NO_P) && !gort__load(&m->preempt.masked, RELAXED);
    if (!waits && !gort__load(&m->end.slept, RELAXED) && !grace_is_over(m))
        return;
    if (!libc && (!off || m->preempt.deferrals++ >= DEFERRALS_OFF_MAX) && !gort__os_text_loading(s))
        run_is_over(m);
    gort__os_cpu_timer_arm(m->timer, POLITE_FOR);
}

/* What attention asks for, as far as it concerns the code that was interrupted. */
static uint32_t wanted(struct gort__m *m, bool shadow)
{
    uint32_t bits = gort__load(&m->attention, ACQUIRE); /* pairs with whoever set the bit */
    uint32_t mine = GORT_ATT_WORLD | GORT_ATT_ENDED;
    const struct gort__g *g = m->g;
    if (!shadow && g != &m->g0 && !g->preempt_off)
        mine |= GORT_ATT_NO_P | GORT_ATT_PREEMPT;
    return bits & mine;
}

static void handle(struct gort__m *m, bool shadow, const struct gort__os_signal *s)
{
    if (gort__load(&m->inside, RELAXED) || gort__load(&m->nested, RELAXED) ||
        gort__load(&m->end.called, RELAXED))
        return; /* its exit looks */
    uint32_t bits = wanted(m, shadow);
    if (!bits)
        return;
    bool off = !shadow && m->g != &m->g0 && m->g->preempt_off, libc = gort__os_text_in_libc(s);
    bool in_libc = off || libc; /* code that keeps preemption off may hold a lock, too */
    if (bits & GORT_ATT_ENDED) {
        meet_end(m, bits, off, libc, s);
        return;
    }
    if (in_libc && !(bits & GORT_ATT_WORLD) && m->preempt.deferrals < DEFERRALS_MAX) {
        m->preempt.deferrals++;
        if (gort__os_cpu_timer_arm(m->timer, POLITE_FOR))
            return;
    }
    m->preempt.deferrals = 0;
    /* Which holds registers. */
    m->preempt.met_sp = gort__load(&gort__os_force.no_altstack, RELAXED) ? s->context : (void *)s->sp;
    gort__store(&m->preempt.in_handler, true, RELAXED);
    gort__store(&m->preempt.in_libc, in_libc, RELAXED);
    do {
        gort__store(&m->inside, 1, RELAXED);
        gort__os_fence_light(); /* pairs with world.c and handoff.c */
        if (shadow || m->g == &m->g0)
            gort__hooks.life.world_wait(m);
        else
            gort__hooks.life.attend(m);
        gort__store(&m->inside, 0, RELEASE); /* pairs with world.c and handoff.c */
        gort__os_fence_light();              /* pairs with world.c and handoff.c */
        bits = wanted(m, shadow);
    } while (bits && !(bits & GORT_ATT_ENDED));
    if (bits)
        meet_end(m, bits, off, libc, s);
    gort__store(&m->preempt.in_handler, false, RELEASE); /* pairs with run.c:make_zombie */
}

#define BLANK_FOR INT64_C(10000000000) /* ns */

static void on_signal(const struct gort__os_signal *s)
{
    struct gort__m *m = gort__m_home();
    bool shadow = m != gort__m_self();
    /* Nobody else knows that address. It need not be this thread's own: TSan keeps a signal back until the
     * goroutine that it met comes to a call of libc's, which may be on another thread. */
    bool ours = (s->timer || s->thread) && s->value == &signo;
    /* When too many signals are queued, one without a sender is taken for ours for a while after we sent
     * one. */
    int64_t sent = m && s->blank ? gort__load(&m->preempt.signalled, RELAXED) : 0;
    ours |= sent && gort__os_now() - sent < BLANK_FOR;
    char *here = __builtin_frame_address(0);
    if (!ours && m && m->preempt.chaining && here < m->preempt.chaining)
        return; /* the program's handler calls ours in turn; one that has left by siglongjmp does not lie above us */
    if (!ours) {
        if (m)
            m->preempt.chaining = here;
        gort__os_signal_chain(s);
        if (m)
            m->preempt.chaining = NULL;
    } else if (m && !gort__sched.forked) /* else it came too late: another thread has the number now */
        handle(m, shadow, s);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void send_to(struct gort__m *m, int tid)
{
    gort__store(&m->preempt.signalled, gort__os_now(), RELAXED);
    gort__os_thread_signal(tid, gort__load(&signo, RELAXED), &signo);
}

int gort__preempt_signal(void)
{
    return gort__load(&signo, RELAXED);
}

bool gort__preempt_refused(struct gort__m *m)
{
    if (gort__sanitize_valgrind()) /* it takes signals when it wants them: every mask looks so */
        return false;
    return gort__os_thread_holds_back(gort__load(&m->tid, RELAXED), gort__load(&signo, RELAXED));
}

void gort__preempt_ask(struct gort__m *m, bool urgent)
{
    int tid = gort__load(&m->tid, RELAXED), timer = gort__load(&m->timer, RELAXED);
    if (gort__sched.conf.preempt_off || !tid)
        return;
    if (!urgent && timer >= 0 && gort__os_cpu_timer_arm(timer, 1))
        return;
    if (!urgent && gort__os_thread_state(tid) == GORT__OS_TASK_SLEEPS)
        return; /* if nobody can tell (no /proc), a call that is cut short is better than no preemption */
    send_to(m, tid);
}

int gort__preempt_start(void)
{
    gort__store(&signo, gort__sched.conf.signal, RELAXED);
    gort__os_text_collect();
    return gort__os_signal_share(gort__load(&signo, RELAXED), on_signal);
}

void gort__preempt_end(bool keep)
{
    if (!keep)
        gort__os_signal_unshare(gort__load(&signo, RELAXED));
}

void gort__preempt_again(void)
{
    if (!gort__os_signal_shared(gort__load(&signo, RELAXED)))
        gort__os_signal_share(gort__load(&signo, RELAXED), on_signal);
}

void gort__preempt_thread(struct gort__m *m)
{
    int number = gort__load(&signo, RELAXED), timer = -1;
    gort__os_signal_unblock(number);
    if (!gort__sched.conf.preempt_off)
        timer = gort__os_cpu_timer_make(gort__load(&m->tid, RELAXED), number, &signo);
    gort__store(&m->timer, timer, RELAXED);
}

void gort__preempt_thread_end(struct gort__m *m)
{
    /* What is still on its way to the thread must not meet it without its M. */
    gort__os_signal_block(gort__load(&signo, RELAXED));
    int timer = gort__xchg(&m->timer, -1, RELAXED);
    if (timer >= 0)
        gort__os_cpu_timer_drop(timer);
}

/* --- the end of a run ------------------------------------------------------------------------- */

#define FREEZE_TIMEOUT INT64_C(1000000000) /* ns */
/* For the signal: TSan keeps it back. */
#define SIGNAL_TIMEOUT (GORT_TSAN ? INT64_C(50000000) : FREEZE_TIMEOUT)

/* From now on the time counts in which m may still call us. */
static void begin_grace(struct gort__m *m)
{
    if (m->end.cpu)
        return;
    int64_t cpu = gort__os_thread_cpu(gort__load(&m->tid, RELAXED));
    gort__store(&m->end.cpu, cpu > 0 ? cpu : 1, RELAXED);
}

/* What m does is settled: it ends by itself, stands still, or sleeps in the kernel and will be met when it
 * wakes. */
static bool settled(struct gort__m *m)
{
    if (!gort__load(&m->life.has_thread, RELAXED) || gort__load(&m->end.called, RELAXED) ||
        !gort__load(&m->life.started, ACQUIRE) ||
        gort__load(&m->end.frozen, ACQUIRE)) /* pair with m.c, freeze_here */
        return true;
    if (gort__load(&m->preempt.in_handler, ACQUIRE)) /* pairs with handle */
        return false;
    if (gort__load(&m->inside, ACQUIRE) ||
        gort__load(&m->nested, ACQUIRE)) /* pairs with gort__leave, timer.c */
        return true;
    int tid = gort__load(&m->tid, RELAXED), timer = gort__load(&m->timer, RELAXED);
    bool left = gort__load(&m->end.slept, RELAXED);
    if (gort__stall_asleep(&m->end.stall, tid, gort__os_now(), false) &&
        !gort__load(&m->preempt.in_handler, ACQUIRE)) { /* pairs with handle */
        gort__store(&m->end.slept, true, RELAXED);
        if (!left && timer >= 0) /* it has its time when it comes back: it may be about to call us */
            gort__os_cpu_timer_arm(timer, FREEZE_GRACE);
        return true;
    }
    if (left && gort__load(&m->block.on_g0, RELAXED)) /* run_is_over lets it go on */
        return true;
    /* Most call us, or block, in a moment, and end in a clean way. Also those that slept at the first look:
     * perhaps for a lock of stdio, which asks for none when the program exits. */
    begin_grace(m);
    if (grace_is_over(m))
        send_to(m, tid);
    return false;
}

void gort__preempt_freeze(struct gort__m *list)
{
    int64_t from = gort__os_now(), deadline = FREEZE_TIMEOUT;
    for (bool all = gort__sched.conf.preempt_off; !all && gort__os_now() - from < deadline;) {
        all = true;
        deadline = SIGNAL_TIMEOUT;
        for (struct gort__m *m = list; m; m = m->all_next)
            if (!settled(m)) {
                all = false;
                if (!grace_is_over(m)) /* it is not signalled yet: it waits for a CPU, or is about to end */
                    deadline = FREEZE_TIMEOUT;
            }
        if (!all)
            gort__os_nap(100000);
    }
    /* Those that got no CPU all the time, or waited in the handler: their own clock tells when their time is
     * over. */
    for (struct gort__m *m = list; m && !gort__sched.conf.preempt_off; m = m->all_next)
        if (!settled(m)) {
            begin_grace(m);
            gort__os_cpu_timer_arm(gort__load(&m->timer, RELAXED), FREEZE_GRACE);
        }
}

/* --- public ----------------------------------------------------------------------------------- */

void gort_preempt_off(void)
{
    struct gort__m *m = gort__m_self();
    if (m && !(m->g->flags & GORT_G_THREAD))
        m->g->preempt_off++;
}

void gort_preempt_on(void)
{
    struct gort__m *m = gort__m_self();
    if (!m || (m->g->flags & GORT_G_THREAD))
        return;
    if (!m->g->preempt_off)
        gort__fatal("gort_preempt_on without gort_preempt_off");
    if (--m->g->preempt_off)
        return;
    gort__compiler_fence(); /* the handler on this thread looks at it */
    /* The signal came meanwhile and went: without this a loop over such pairs would hardly ever be met
     * outside of one. */
    if (GORT_UNLIKELY(gort__load(&m->attention, RELAXED) & (GORT_ATT_PREEMPT | GORT_ATT_NO_P))) {
        m = gort__enter();
        if (m)
            gort__leave(m);
    }
}

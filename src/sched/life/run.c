/* SPDX-License-Identifier: MIT */
/*
 * run.c - a run from gort_run to its return.
 *
 * Why: all state of a run is one structure that is filled at its start and emptied at its end, so
 * runs can follow one another and leave nothing behind. The calling thread becomes the supervisor; the
 * main goroutine is started like any other, with a larger stack.
 *
 * The end. The main goroutine stops the world when it returns: nobody starts or resumes from then on. The
 * supervisor then tells every M that the run is over. Those inside the runtime end their threads and are
 * joined, or left alone when their destructors take long. One that is in user code (computing, or in a
 * blocking call) is left behind: its thread, its stack and its record stay, it is detached, and its next call
 * into gort ends it; it touches nothing but what was left to it. Everything else is unmapped.
 * tests/model/end.c explores who touches what, and when.
 * Invariants: (1) phase tells plain threads whether there is a run; (2) after teardown no memory of
 * the run is reachable but that of those left behind.
 * Threads: gort_run by any plain thread, one at a time; gort_maxprocs by anybody; `_locked` functions with
 * sched.lock held.
 */
#include <errno.h>
#include <signal.h>

#include "base/fatal.h"
#include "poll/poll.h"
#include "sched/core/san.h"
#include "sched/life/life.h"

#define MAIN_STACK ((size_t)8 << 20)

struct gort__sched gort__sched;
void (*gort__run_at_end)(void);

/* Stands for the supervisor, so that what it calls finds an M; owned by it. */
static struct gort__m *supervisor_m;

static int asked_procs; /* gort_maxprocs before a run; atomic, 0: nobody asked */

static struct {
    int (*fn)(void *);
    void *arg;
    bool returned;
} main_call; /* of the current run; owned by the supervisor until main runs, then by main */

static bool has_quit; /* the handler is ours */

static void on_quit(int signo)
{
    (void)signo;
    gort__warn("SIGQUIT: list of all goroutines");
    gort_dump(2);
    gort__os_exit_now(2);
}

/*
 * No atomic access comes before forked is set, and TSan looks at none: at the next one that it sees it calls
 * the handler of a signal that it has kept back since before the fork, and the handler would wait for ever
 * for a P of the parent's. There are no other threads here.
 */
static GORT_NO_TSAN void in_forked_child(void)
{
    if (*(volatile uint32_t *)&gort__sched.phase == GORT_PHASE_NONE)
        return;
    gort__sched.forked = true;
    struct gort__m *m = gort__m_home();
    if (m && !m->plain)
        (void)gort__os_thread_usual(); /* for the sake of what it will exec */
    if (m)
        gort__or(&m->attention, GORT_ATT_FORKED, RELAXED);
}

void gort__run_done_locked(int result)
{
    gort__sched.main.result = result;
    gort__sched.main.done = true;
    gort__supervisor_wake_locked();
}

#define SUPERVISOR_NAP 20000 /* ns: creating a thread takes longer */

/*
 * Waits until the supervisor creates and joins no threads any more. For that it may need a lock of malloc
 * that a stopped goroutine holds, so it must be over before everybody is stopped for good.
 */
static struct gort__m *let_supervisor_finish(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    for (;;) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        bool busy = s->supervisor.creating; /* then it goes on: the yield may need a thread */
        if (!busy)
            s->main.ending = true;
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        if (!busy)
            return m;
        m = gort__schedule_yield(m);
        if (gort__m_wanted(m))
            gort__entry_attend(m);
        m = gort__m_self();
        if (m->p && gort__local_seems_empty(m->p) && !gort__load(&s->global.n, RELAXED) &&
            !gort__load(&s->events.n, RELAXED))
            gort__os_nap(SUPERVISOR_NAP); /* nobody else runs here, and the supervisor needs a CPU */
    }
}

void gort__run_main_ends(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = gort__m_self();
    if (main_call.returned) {
        gort__world_disown(m);
        gort__store(&s->main.leaving, true, RELAXED);
        while (!gort__world_turn(&m)) /* before it: while main waits, others may need threads */
            ;
        m = let_supervisor_finish(m);
        gort__world_stop_now(m); /* for good: the supervisor takes it from here */
    }
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    if (main_call.returned) {
        s->main.final = true;
        gort__or(&m->attention, GORT_ATT_WORLD, RELAXED);
        gort__run_done_locked(s->main.result);
    } else {
        s->main.exited = true;
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
}

static void main_start(void *unused)
{
    (void)unused;
    int result = main_call.fn(main_call.arg);
    gort__sched.main.result = result;
    main_call.returned = true;
}

/* Starts the main goroutine and the first M. 0 or -errno; everything is undone by teardown. */
static int start(void)
{
    struct gort__sched *s = &gort__sched;
    gort__stack_init(s->conf.stack_size);
    supervisor_m = gort__m_make(true);
    if (!supervisor_m)
        return -ENOMEM;
    supervisor_m->err = gort__os_errno();
    supervisor_m->tid = gort__os_thread_id();
    gort__store(&supervisor_m->inside, 1, RELAXED);
    gort__m_set_self(supervisor_m);
    s->gs.object = sizeof(struct gort__g);
    s->extras.object = sizeof(struct gort__extra);
    s->ids = 1;
    gort__argmem_init();
    gort__store(&s->fuzz, s->conf.fuzz, RELAXED); /* plain threads outside of runs look at it, too */
    s->main.started_at = gort__os_now();
    gort__arch_fp = gort__arch_fp_read();
    int err = gort__netpoll_open();
    if (!err)
        err = gort__p_resize(s->conf.maxprocs);
    if (!err)
        err = gort__preempt_start();
    if (err)
        return err;
    size_t got;
    struct gort__g *g = gort__slab_carve(&s->gs, 1, &got);
    if (!g)
        return -ENOMEM;
    g->stack = gort__stack_get(
        NULL, gort__stack_class(s->conf.stack_size > MAIN_STACK ? s->conf.stack_size : MAIN_STACK));
    if (!g->stack)
        return -ENOMEM;
    g->fn = (void (*)(void))main_start;
    g->id = s->ids++;
    gort__store(&g->flags, (uint16_t)(GORT_G_MAIN), RELAXED);
    gort__g_set(g, GORT_G_RUNNABLE);

    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (int i = s->procs - 1; i >= 0; i--)
        gort__p_idle_put_locked(s->ps[i]);
    s->plain.spawned = 1;
    gort__queue_put_locked(g);
    gort__store(&s->phase, GORT_PHASE_ON, RELEASE); /* pairs with entry.c */
    gort__m_start_locked(gort__p_idle_get_locked(), false);
    struct gort__m *first = s->ms.wanted;
    s->ms.wanted = NULL;
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    if (!first)
        return -ENOMEM;
    first->life.has_thread = true;
    err = gort__os_thread_start(&first->thread, gort__m_main, first, "gort-0");
    if (err)
        first->life.has_thread = false;
    return err;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* The Ms that are in user code, while the supervisor frees what is around them. */
static struct gort__m *zombies;
/* One of them, in this run or an earlier one, may still come back from a blocking call. */
static bool left_running;

static bool keep_stack(const char *base, size_t size)
{
    for (struct gort__m *m = zombies; m; m = m->link)
        if (m->end.zombie.stack == base) {
            m->end.zombie.stack_size = size;
            return true;
        }
    return false;
}

static bool keep_chunk(struct gort__chunk *c)
{
    for (struct gort__m *m = zombies; m; m = m->link)
        for (int i = 0; i < 3; i++) {
            /* An address in the chunk, until it is found here. */
            const char *used = (const char *)m->end.zombie.chunk[i];
            if (used >= c->first && used < c->limit) {
                m->end.zombie.chunk[i] = c;
                c->refs++;
            }
        }
    return c->refs != 0;
}

/* Only the record: what is in it goes with the run. A P is m->p of one M at most. */
static bool keep_p(const struct gort__p *p)
{
    for (struct gort__m *m = zombies; m; m = m->link)
        if (m->end.zombie.p == p)
            return true;
    return false;
}

/* The thread stands still in the handler, or runs something else than our code. */
static bool in_user_code(struct gort__m *m)
{
    if (!gort__load(&m->life.started, ACQUIRE)) /* pairs with m.c */
        return false;
    if (gort__load(&m->end.frozen, ACQUIRE)) /* pairs with preempt.c */
        return true;
    return !gort__load(&m->preempt.in_handler, ACQUIRE) &&
           !gort__load(&m->nested, ACQUIRE) && /* pair with preempt.c, timer.c */
           !gort__load(&m->inside, ACQUIRE);   /* pairs with gort__leave */
}

/* --- threads that have nothing to do but to end ------------------------------------------------- */

#define LEAVE_TIMEOUT INT64_C(1000000000) /* ns, for all together */

static struct gort__m *leaving;   /* of this run */
static struct gort__m *lingering; /* of former runs: they count as zombies */

static void leave(struct gort__m *m)
{
    m->link = leaving;
    leaving = m;
}

/* Frees those on the list whose threads are gone, and returns the others. */
static struct gort__m *reap(struct gort__m *list, bool zombies_too)
{
    struct gort__m *rest = NULL;
    for (struct gort__m *m = list, *next; m; m = next) {
        next = m->link;
        if (gort__os_thread_try_join(m->thread)) {
            if (zombies_too)
                gort__sub(&gort__zombie_count, 1, RELAXED);
            gort__zombie_free(&m->end.zombie);
            gort__m_destroy(m);
        } else {
            m->link = rest;
            rest = m;
        }
    }
    return rest;
}

/*
 * Waits until the threads that end are gone. Destructors of their thread-local data may take long, or wait
 * for a goroutine that is gone: after a second they are left alone, and their records stay until the end of a
 * later run that finds them gone.
 */
static void reap_leaving(void)
{
    int64_t deadline = gort__os_now() + LEAVE_TIMEOUT, nap = 20000;
    lingering = reap(lingering, true);
    while ((leaving = reap(leaving, false)) != NULL && gort__os_now() < deadline) {
        gort__os_nap(nap);
        nap = nap < 1000000 ? 2 * nap : nap;
    }
    for (struct gort__m *m; (m = leaving) != NULL;) {
        leaving = m->link;
        m->link = lingering;
        lingering = m;
        gort__add(&gort__zombie_count, 1, RELAXED);
    }
}

/* Ends the M's thread; or, when it is in user code, notes what it uses and puts it on the list of zombies.
 * From now on such a thread touches its record, its goroutine and its stack only; its record stays until
 * let_go. */
static void make_zombie(struct gort__m *m)
{
    /* Before inside: both are stored while inside, and from now on who comes back from a blocking call stays
     * there. Pair with switch_to and block.c; in this order, because a call that surfaces sets block_g before
     * g. */
    struct gort__g *g = gort__load(&m->g, ACQUIRE), *block_g = gort__load(&m->block_g, ACQUIRE);
    /* One look is not enough: a blocking call has moments inside from which it goes back to its call. */
    while (m->life.has_thread &&
           gort__load(&m->end.reaper, ACQUIRE) == GORT_REAPER_OPEN && /* pairs with m.c */
           !in_user_code(m))
        gort__os_nap(50000);
    if (m->life.has_thread && gort__load(&m->end.reaper, ACQUIRE) == GORT_REAPER_OPEN) { /* pairs with m.c */
        if (block_g)
            g = block_g;
        if (!gort__load(&m->end.frozen, RELAXED))
            left_running = true;
        m->end.zombie.p = m->p;
        if (g != &m->g0) {
            m->end.zombie.stack = g->stack->base;
            m->end.zombie.fiber = g->sanitizer;
            m->end.zombie.chunk[0] = (struct gort__chunk *)(void *)g;
            m->end.zombie.chunk[1] = gort__load(&g->flags, RELAXED) & GORT_G_COPY ? (void *)g->arg[0] : NULL;
            m->end.zombie.chunk[2] = (struct gort__chunk *)(void *)gort__load(&g->extra, RELAXED);
        }
        m->link = zombies;
        zombies = m;
        return;
    }
    if (m->life.has_thread)
        leave(m);
    else
        gort__m_destroy(m);
}

/* Everything around it is gone: lets a zombie look after itself, unless it has ended meanwhile. */
static void let_go(struct gort__m *m)
{
    uint32_t open = GORT_REAPER_OPEN;
    uintptr_t thread = m->thread;
    if (gort__cas(&m->end.reaper, &open, GORT_REAPER_THREAD, ACQ_REL)) { /* pairs with m.c:gort__m_main */
        gort__add(&gort__zombie_count, 1, RELAXED);
        gort__os_thread_detach(thread);
        return;
    }
    leave(m);
}

/* Somebody writes a dump right now; one that is stuck in its write does not hold up the end of the run for
 * long. */
static void wait_for_dumpers(void)
{
    int64_t deadline = gort__os_now() + INT64_C(1000000000);
    while (gort__load(&gort__sched.dumpers, SEQ_CST) && gort__os_now() < deadline) /* pairs with gort_dump */
        gort__os_nap(50000);
}

static void end_threads(void)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    struct gort__m *all = s->ms.all;
    s->ended = true;
    for (struct gort__m *m = all; m; m = m->all_next) {
        gort__store(&m->life.quit, true, RELAXED);
        gort__or(&m->attention, GORT_ATT_ENDED, RELEASE); /* pairs with entry.c:gort__entry_attend */
    }
    struct gort__m *dead = s->ms.dead, *free = s->ms.free;
    s->ms.all = s->ms.idle = s->ms.wanted = s->ms.dead = s->ms.free = NULL;
    gort__store(&s->world_word, s->world_word + 1, RELEASE); /* pairs with gort__world_wait */
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__os_fence_heavy(); /* pairs with gort__enter and gort__leave */
    gort__os_futex_wake(&s->world_word, INT32_MAX);
    for (struct gort__m *m = all; m; m = m->all_next) {
        if (gort__g_claim(&m->g0)) /* it waits like a plain thread, in a blocking call */
            m->g0.wait_slot = (void *)(intptr_t)-ECANCELED;
        gort__note_wake(m);
    }
    gort__world_event(); /* a plain thread may be stopping the world */
    gort__preempt_freeze(all);
    for (struct gort__m *m = all, *next; m; m = next) {
        next = m->all_next;
        make_zombie(m);
    }
    for (struct gort__m *m = dead, *next; m; m = next) {
        next = m->link;
        leave(m);
    }
    reap_leaving();
    for (struct gort__m *m = free, *next; m; m = next) {
        next = m->link;
        gort__m_destroy(m);
    }
}

/* Plain threads find no run any more; waits until none of them is inside. */
static void send_away_plain(void)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (struct gort__m *m = s->plain_ms; m; m = m->all_next)
        gort__or(&m->attention, GORT_ATT_NO_RUN, RELAXED);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__os_fence_heavy(); /* pairs with gort__enter */
    for (bool again = true; again;) {
        again = false;
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        for (struct gort__m *m = s->plain_ms; m; m = m->all_next) {
            if (gort__load(&m->inside, ACQUIRE)) /* pairs with gort__leave */
                again = true;
            if (gort__g_claim(&m->g0)) { /* it waits for somebody who is gone */
                m->g0.wait_slot = (void *)(intptr_t)-ECANCELED;
                gort__note_wake(m);
            }
            if (again)
                continue;
            gort__store(&m->g0.extra, NULL, RELAXED); /* all its memory goes with the run */
        }
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        if (again)
            gort__os_nap(50000);
    }
}

/* TSan keeps a record of every goroutine that has run; those who are gone without an end must be told to
 * it. */
static void forget_fibers(void)
{
    for (struct gort__chunk *c = gort__sched.gs.chunks; c; c = c->next)
        for (char *at = c->first; at < c->carved; at += sizeof(struct gort__g)) {
            struct gort__g *g = (struct gort__g *)(void *)at;
            bool zombie = false;
            for (struct gort__m *m = zombies; m; m = m->link)
                zombie |= (char *)m->end.zombie.chunk[0] == at;
            if (!zombie)
                gort__san_forget(g);
        }
}

/* former: the M of the calling thread, from an earlier run in which it was a plain one, or NULL. */
static void teardown(struct gort__m *former)
{
    struct gort__sched *s = &gort__sched;
    gort__san_after_all();
    if (GORT_TSAN)
        forget_fibers();
    gort__timer_forget();
    gort__poll_close();
    if (has_quit) /* after that, which puts back what the program caught on top of it */
        gort__os_signal_give_back(SIGQUIT, on_quit);
    void (*at_end)(void) = gort__load(&gort__run_at_end, ACQUIRE); /* pairs with whoever set it */
    if (at_end)
        at_end();
    gort__stack_destroy(keep_stack);
    gort__argmem_destroy(keep_chunk);
    gort__slab_destroy(&s->extras, keep_chunk);
    gort__slab_destroy(&s->gs, keep_chunk);
    for (int i = 0; i < s->p_made; i++) {
        if (s->ps[i]->timer_cache)
            gort__alloc_free(s->ps[i]->timer_cache, GORT_TIMER_BYTES);
        if (!keep_p(s->ps[i]))
            gort__p_free(s->ps[i]);
    }
    for (struct gort__m *m = zombies, *next; m; m = next) {
        next = m->link;
        let_go(m);
    }
    zombies = NULL;
    reap_leaving();
    gort__m_set_self(former); /* not before: calls from outside wait for us now (entry.c) */
    if (supervisor_m)
        gort__m_destroy(supervisor_m);
    supervisor_m = NULL;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__clear(s->begin, sizeof *s - offsetof(struct gort__sched, begin));
    gort__store(&s->world_word, (s->world_word + 1) & ~1u, RELAXED);
    gort__store(&s->run, s->run + 1, RELAXED);        /* what still waits in some queue is gone (wait.h) */
    gort__store(&s->phase, GORT_PHASE_NONE, RELEASE); /* pairs with gort_run_with */
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
}

int gort_run_with(const gort_config *config, int (*fn)(void *), void *arg)
{
    struct gort__sched *s = &gort__sched;
    static bool fork_hook;
    uint32_t none = GORT_PHASE_NONE;
    if (s->forked)
        gort__fatal("gort was called in the child of a fork: the child may only exec");
    GORT_NEED("gort_run", "function", fn);
    if (gort__sanitize_tsan_missing())
        gort__fatal(
            "gort_run: the program is built with ThreadSanitizer, but libgort is not: build libgort with it too "
            "(docs/GUIDE.md)");
    if (!gort__cas(&s->phase, &none, GORT_PHASE_STARTING, ACQUIRE)) /* pairs with teardown */
        return -EBUSY;
    int saved = *gort__os_errno();
    int err = gort__conf_load(&s->conf, config);
    if (err) {
        gort__store(&s->phase, GORT_PHASE_NONE, RELEASE); /* pairs with gort_run_with */
        return err;
    }
    int asked = gort__load(&asked_procs, RELAXED);
    if (asked && !s->conf.maxprocs_set) {
        s->conf.maxprocs = asked;
        s->conf.maxprocs_set = true;
    }
    gort__os_init();
    gort__lock_init(s->conf.fuzz);
    gort__cached_now_init();
    gort__store(&gort__lock_exposed, gort__entry_exposed, RELAXED);
    if (!fork_hook)
        fork_hook = gort__os_at_fork_child(in_forked_child) == 0;
    gort__fatal_hooks = (struct gort__fatal_hooks){gort__hooks.outer.dump_who, gort_dump};
    gort__store(&s->run, s->run + 1, RELAXED);
    main_call.fn = fn;
    main_call.arg = arg;
    main_call.returned = false;
    struct gort__m *former = gort__m_self();
    has_quit = gort__os_signal_take(SIGQUIT, on_quit);
    gort__hooks.outer.overflow_init();
    err = start();
    if (!err) {
        gort__supervisor_loop();
        if (!s->main.final)
            gort__world_stop(NULL);
    }
    int result = err ? err : s->main.result;
    gort__store(&s->phase, GORT_PHASE_ENDING, SEQ_CST); /* pairs with entry.c and gort_dump */
    gort__sysmon_quiet();
    wait_for_dumpers();
    end_threads();
    gort__sysmon_stop(); /* frees a stack: not while the world is stopped, also those who have malloc's lock */
    send_away_plain();
    gort__hooks.outer.census_print();
    gort__hooks.outer.overflow_end();
    gort__preempt_end(left_running);
    gort__fatal_hooks = (struct gort__fatal_hooks){gort__hooks.outer.dump_who, NULL};
    teardown(former);
    *gort__os_errno() = saved;
    return result;
}

int gort_run(int (*fn)(void *), void *arg)
{
    return gort_run_with(NULL, fn, arg);
}

int gort_maxprocs(int n)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = gort__enter();
    if (n > GORT_MAXPROCS_MAX)
        n = GORT_MAXPROCS_MAX;
    if (!m) { /* no run is on: for the next one */
        int old = gort__load(&asked_procs, RELAXED);
        if (n >= 1)
            gort__store(&asked_procs, n, RELAXED);
        return old ? old : gort__os_cpus();
    }
    int old = gort__load(&s->procs, RELAXED);
    if (n >= 1 && gort__load(&s->world.owner, RELAXED) != m) {
        if (gort__world_stop(&m)) {
            old = s->procs;
            gort__store(&s->conf.maxprocs_set, true, RELAXED);
            if (n != old && gort__p_resize(n))
                gort__warn("gort_maxprocs: no memory for %d procs, there are still %d", n, old);
            gort__world_start();
        }
    }
    gort__leave(m);
    return old;
}

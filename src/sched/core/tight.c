/* SPDX-License-Identifier: MIT */
/*
 * tight.c - no more threads can be had: who may use the last one.
 *
 * Why: a goroutine in a blocking call keeps its thread, and so does one that was preempted. At a limit
 * (gort_config.max_threads, RLIMIT_NPROC, a cgroup's pids.max) all threads can be taken that way. Then a
 * goroutine whose timer fires has no thread to run on until a call returns, and behind a queue of goroutines
 * that block as well it waits for many calls. So while no thread can be created (sched.tight) the last idle M
 * is kept for goroutines that are not likely to take it: those that have run before and have not lost their P
 * in a blocking call since they were last let through here (GORT_G_BLOCKS). The others stand in one line
 * (sched.line), first come, first served, and start when another idle M is there, which can have the P if
 * they block.
 *
 *     picked: new, or GORT_G_BLOCKS --gort__tight_turn--> runs, or waits in the line
 *     the line --gort__tight_take--> runs: an idle M is left; every M has a P; there is one M; nothing else needed the last M for 1 s
 *
 * The last condition is for goroutines whose peers are blocked and wait for just them: nobody else uses the
 * last M then. Rejected: to keep it for good, which deadlocks such programs, and to give it away while others
 * use it, which starves timers.
 *
 * Who lets the line go on: an M that finds nothing else (find.c), the fair pick (schedule.c), an M that would
 * become the second idle one (m.c:gort__m_stop), and, if the last M is to be used after all, the supervisor,
 * which wakes somebody every 10 ms while anybody waits (sched.starved).
 * Invariants: (1) tight is true exactly if m_count >= max_threads or the kernel refused the last thread; (2)
 * what is in the line is runnable, in no other queue, and not bound to an M.
 * Threads: `_locked` with sched.lock held; the rest by an M for itself, inside, with a P.
 */
#include "base/fatal.h"
#include "sched/core/core.h"

void gort__tight_update_locked(void)
{
    struct gort__sched *s = &gort__sched;
    bool tight = s->ms.n >= s->conf.max_threads || s->limit.refused;
    gort__store(&s->limit.tight, tight, RELAXED);
    gort__store(&s->limit.careful, tight || s->preempted.list.n, RELAXED);
}

void gort__tight_starve_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (s->limit.starved)
        return;
    s->limit.starved = true;
    gort__hooks.life.supervisor_wake_locked();
}

/* Whether at least one M has no P, but a goroutine that keeps it. */
static bool some_taken_locked(void)
{
    struct gort__sched *s = &gort__sched;
    return s->ms.n > s->procs - (int)s->idle_count;
}

void gort__tight_say_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (s->ms.n < s->conf.max_threads || !some_taken_locked())
        return; /* nobody waits for a thread; or the kernel is the limit, and the supervisor says so */
    if (s->conf.threads_fatal)
        gort__fatal(
            "the program needs more than %d threads (gort_config.max_threads; GORT_DEBUG=threads=fatal)",
            s->conf.max_threads);
    if (s->said.limit)
        return;
    s->said.limit = true;
    gort__warn(
        "all %d threads (gort_config.max_threads) are in use by goroutines that block or compute: "
        "other goroutines wait for a thread; raise max_threads, or make fewer blocking calls at a time",
        s->conf.max_threads);
}

void gort__tight_say_hogs_locked(void)
{
    struct gort__sched *s = &gort__sched;
    if (s->said.hogs || s->preempted.list.n + (s->procs - s->idle_count) < (uint32_t)s->ms.n)
        return;
    s->said.hogs = true;
    gort__warn(
        "goroutines that compute use all %d threads that gort can have: other goroutines run only when one of "
        "these ends or waits; allow more threads than there are such goroutines (gort_config.max_threads)",
        s->ms.n);
}

/* Nobody has been switched to for long: only the line wants the last M. */
static bool unused_locked(void)
{
    struct gort__sched *s = &gort__sched;
    int64_t now = gort__os_now();
    uint64_t switches = 0;
    for (int i = 0; i < s->procs; i++)
        switches += gort__load(&s->ps[i]->switches, RELAXED);
    if (!s->line.since || switches != s->line.switches) {
        s->line.since = now;
        s->line.switches = switches;
    }
    return now - s->line.since >= GORT_LAST_M_UNUSED;
}

static bool may_run_locked(void)
{
    struct gort__sched *s = &gort__sched;
    return !s->limit.tight || s->ms.idle || s->ms.n == 1 || !some_taken_locked() || unused_locked();
}

static void set_line_locked(uint32_t n)
{
    gort__sched.line.list.n = n;
    gort__store(&gort__sched.line.n, n, RELEASE); /* pairs with the looks at line_n in find.c */
}

static void put_locked(struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    g->link = NULL;
    if (s->line.list.n)
        s->line.list.last->link = g;
    else
        s->line.list.first = g;
    s->line.list.last = g;
    set_line_locked(s->line.list.n + 1);
}

/* The first of the line, if it may run now. The last M is the caller's then, or another one is idle. */
static struct gort__g *pop_locked(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__g *g = s->line.list.first;
    if (!s->line.list.n)
        return NULL;
    if (!may_run_locked()) {
        gort__tight_say_locked();
        gort__tight_starve_locked();
        return NULL;
    }
    s->line.list.first = g->link;
    s->line.since = 0;
    set_line_locked(s->line.list.n - 1);
    return g;
}

struct gort__g *gort__tight_take(struct gort__p *p)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    struct gort__g *g = pop_locked();
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    p->let_through = g;
    return g;
}

struct gort__g *gort__tight_turn(struct gort__p *p, struct gort__g *g)
{
    struct gort__sched *s = &gort__sched;
    if (p->let_through != g) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        put_locked(g);
        g = pop_locked();
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
    }
    p->let_through = NULL;
    if (g && (g->flags & GORT_G_BLOCKS))
        gort__g_flag_off(g, GORT_G_BLOCKS);
    return g;
}

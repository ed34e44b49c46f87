/* SPDX-License-Identifier: MIT */
/*
 * stats.c - what the scheduler counts, added up.
 *
 * Why: whoever does something counts it, with plain stores, in a place that nobody else writes: in its P
 * (p.h), or, where a lock is held anyway, in what the lock guards. Here the places are added up. That takes a
 * look at each P and each thread, never at each goroutine: runnable ones are as many as the queues are long,
 * a goroutine that runs, or is in a call that blocks, has a thread; the others wait. Retired Ps keep their
 * counts, so nothing is lost when maxprocs changes.
 * Threads: any. The list of threads is walked with sched.lock held, which all who create threads or let them
 * sleep wait for: 10,000 threads take some 100 us.
 */
#include "observe/stats.h"

#include <errno.h>
#include <string.h>

#include "base/fatal.h"

_Static_assert(sizeof(gort_stats) == 8 * (32 + 5 * 34 + 16), "ABI");
_Static_assert(sizeof(gort_stats_proc) == 8 * 12, "ABI");
_Static_assert(GORT_HISTOGRAM_BUCKETS == GORT_HIST_BUCKETS, "the public buckets are ours");

#define SIZE_LEAST sizeof(gort_stats) /* of the first version */

/* --- adding up ---------------------------------------------------------------------------------- */

static void add(gort_histogram *to, const struct gort__hist *h)
{
    to->sum_ns += gort__load(&h->sum, RELAXED);
    for (int i = 0; i < GORT_HIST_BUCKETS; i++) {
        uint64_t n = gort__load(&h->bucket[i], RELAXED);
        to->bucket[i] += n;
        to->count += n;
    }
}

static uint64_t queued(const struct gort__p *p)
{
    return gort__runq_length(&p->runq) + gort__runq_length(&p->events);
}

static void add_p(gort_stats *s, const struct gort__p *p)
{
    s->switches += gort__load(&p->switches, RELAXED);
    s->steals += gort__load(&p->counts.steals, RELAXED);
    s->handoffs_announced += gort__load(&p->counts.handoffs, RELAXED);
    s->mutex_wait_ns += gort__load(&p->counts.mutex_ns, RELAXED);
    s->runnable += queued(p);
    add(&s->latency, &p->counts.latency);
    add(&s->timer_lateness, &p->timers.late);
    s->timers += gort__load(&p->timers.live, RELAXED);
}

enum gort__stats_thread gort__stats_thread_locked(struct gort__m *m, enum gort__gstate *state)
{
    struct gort__g *g = gort__load(&m->g, ACQUIRE); /* pairs with switch_to */
    if (gort__load(&m->block_g, RELAXED)) {
        *state = GORT_G_SYSCALL;
        return GORT_STATS_BLOCKED;
    }
    *state = g == &m->g0 ? GORT_G_IDLE : (enum gort__gstate)gort__load(&g->state, RELAXED);
    if (g != &m->g0)
        switch (*state) {
        case GORT_G_SYSCALL:
        case GORT_G_DETACHED:
            return GORT_STATS_BLOCKED;
        case GORT_G_PREEMPTED:
        case GORT_G_RUNNABLE:
            return m->handoff.waiting ? GORT_STATS_STOPPED : GORT_STATS_RUNNING;
        default:
            return GORT_STATS_RUNNING;
        }
    if (m->p || m->handoff.next_p)
        return GORT_STATS_SEARCHING;
    return m->handoff.waiting ? GORT_STATS_STOPPED : GORT_STATS_IDLE;
}

static void add_threads(gort_stats *s)
{
    struct gort__sched *all = &gort__sched;
    uint64_t n[GORT_STATS_THREADS] = {0};
    gort__lock_take(&all->lock, GORT_RANK_SCHED);
    for (struct gort__m *m = all->ms.all; m; m = m->all_next) {
        enum gort__gstate state;
        n[gort__stats_thread_locked(m, &state)]++;
        s->running += state == GORT_G_RUNNING;
        s->blocked += state == GORT_G_SYSCALL;
        s->detached += state == GORT_G_DETACHED;
    }
    s->preempted = all->preempted.n;
    gort__lock_release(&all->lock, GORT_RANK_SCHED);
    s->threads_running = n[GORT_STATS_RUNNING];
    s->threads_searching = n[GORT_STATS_SEARCHING];
    s->threads_blocked = n[GORT_STATS_BLOCKED];
    s->threads_stopped = n[GORT_STATS_STOPPED];
    s->threads_idle = n[GORT_STATS_IDLE];
    for (int i = 0; i < GORT_STATS_THREADS; i++)
        s->threads += n[i];
}

/* Those that are counted alone fit into what is left for the ones before. */
static uint64_t at_most(uint64_t *n, uint64_t *left)
{
    if (*n > *left)
        *n = *left;
    return *left -= *n;
}

/* As gort__g_count: ends first. */
static void add_goroutines(gort_stats *s)
{
    struct gort__sched *all = &gort__sched;
    int n = gort__load(&all->p_made, ACQUIRE); /* pairs with p.c:make */
    for (int i = 0; i < n; i++)
        s->ended += gort__load(&gort__load(&all->ps[i], ACQUIRE)->exited,
                               ACQUIRE);                   /* pair with p.c, gmain.c */
    s->created = gort__load(&all->plain.spawned, ACQUIRE); /* pairs with spawn.c */
    n = gort__load(&all->p_made, ACQUIRE);                 /* pairs with p.c:make */
    for (int i = 0; i < n; i++)
        s->created += gort__load(&gort__load(&all->ps[i], ACQUIRE)->spawned,
                                 ACQUIRE); /* pair with p.c, spawn.c */
    s->goroutines = s->created - s->ended;
    uint64_t left = s->goroutines;
    at_most(&s->running, &left);
    at_most(&s->blocked, &left);
    at_most(&s->detached, &left);
    at_most(&s->preempted, &left);
    s->waiting = at_most(&s->runnable, &left);
}

void gort__stats_fill(gort_stats *s)
{
    struct gort__sched *all = &gort__sched;
    int n = gort__load(&all->p_made, ACQUIRE); /* pairs with p.c:make */
    s->run_ns = gort__os_now() - all->main.started_at;
    for (int i = 0; i < n; i++)
        add_p(s, gort__load(&all->ps[i], ACQUIRE)); /* pairs with p.c:make */
    s->queue_length = gort__load(&all->global.n, RELAXED) + gort__load(&all->events.n, RELAXED) +
                      gort__load(&all->line.n, RELAXED);
    s->runnable += s->queue_length;
    add_threads(s);
    add_goroutines(s);
    s->threads_spinning = gort__load(&all->spinning, RELAXED);
    s->maxprocs = (uint64_t)gort__load(&all->procs, RELAXED);
    s->procs_idle = gort__load(&all->idle_count, RELAXED);
    s->handoffs_unannounced = gort__load(&all->counts.retakes[0], RELAXED);
    s->handoffs_announced += gort__load(&all->counts.retakes[1], RELAXED);
    s->preemptions_asked = gort__load(&all->counts.preempt_asked, RELAXED);
    s->preemptions_done = gort__load(&all->counts.preempted, RELAXED);
    s->polls = gort__load(&all->counts.polls, RELAXED);
    s->poll_events = gort__load(&all->counts.polled, RELAXED);
    s->mutex_wait_ns += gort__load(&all->counts.mutex_ns, RELAXED);
    add(&s->poll_latency, &all->counts.poll_late);
    add(&s->stop_stopping, &all->counts.stop_stopping);
    add(&s->stop_total, &all->counts.stop_total);
    s->timers_fired = s->timer_lateness.count;
}

bool gort__stats_fill_proc(gort_stats_proc *proc, int i)
{
    struct gort__sched *s = &gort__sched;
    if (i >= gort__load(&s->procs, RELAXED))
        return false;
    const struct gort__p *p = gort__load(&s->ps[i], ACQUIRE); /* pairs with p.c:make */
    struct gort__m *m = gort__load(&p->m, ACQUIRE);           /* pairs with gort__p_take; records stay */
    *proc = (gort_stats_proc){
        .queue_length = queued(p),
        .created = gort__load(&p->spawned, RELAXED),
        .ended = gort__load(&p->exited, RELAXED),
        .switches = gort__load(&p->switches, RELAXED),
        .steals = gort__load(&p->counts.steals, RELAXED),
        .timers = gort__load(&p->timers.live, RELAXED),
        .thread = m ? gort__load(&m->tid, RELAXED) : 0,
    };
    return true;
}

/* --- public ------------------------------------------------------------------------------------- */

/* Whoever holds a lock must not be stopped by a signal; and the run does not end while somebody looks. */
bool gort__stats_begin(struct gort__stats_look *look)
{
    struct gort__sched *s = &gort__sched;
    look->m = gort__enter_light();
    gort__add(&s->dumpers, 1, SEQ_CST);                  /* pairs with run.c:wait_for_dumpers */
    if (gort__load(&s->phase, SEQ_CST) == GORT_PHASE_ON) /* pairs with run.c:wait_for_dumpers */
        return true;
    gort__stats_end(look);
    return false;
}

void gort__stats_end(struct gort__stats_look *look)
{
    gort__sub(&gort__sched.dumpers, 1, RELEASE); /* pairs with run.c:wait_for_dumpers */
    gort__leave_light(&look->m);
}

int gort_stats_get(gort_stats *stats)
{
    GORT_NEED("gort_stats_get", "place for the numbers", stats);
    size_t size = stats->size;
    struct gort__stats_look look;
    gort_stats s = {0};
    if (size < SIZE_LEAST)
        return -EINVAL;
    if (!gort__stats_begin(&look))
        return -ESRCH;
    gort__stats_fill(&s);
    gort__stats_end(&look);
    s.size = size;
    memset(stats, 0, size);
    memcpy(stats, &s, size < sizeof s ? size : sizeof s);
    return 0;
}

int gort_stats_procs(gort_stats_proc *procs, int n)
{
    struct gort__stats_look look;
    if (n > 0)
        GORT_NEED("gort_stats_procs", "place for the numbers", procs);
    if (!gort__stats_begin(&look))
        return -ESRCH;
    for (int i = 0; i < n; i++)
        if (!gort__stats_fill_proc(&procs[i], i))
            break;
    int made = gort__load(&gort__sched.procs, RELAXED);
    gort__stats_end(&look);
    return made;
}

int64_t gort_histogram_edge(int bucket)
{
    if (bucket < 0)
        return 0;
    return bucket < GORT_HIST_BUCKETS - 1 ? INT64_C(1) << (bucket + GORT_HIST_FIRST) : INT64_MAX;
}

int64_t gort_histogram_quantile(const gort_histogram *h, double share)
{
    GORT_NEED("gort_histogram_quantile", "histogram", h);
    uint64_t n = 0;
    for (int i = 0; i < GORT_HISTOGRAM_BUCKETS; i++) {
        n += h->bucket[i];
        if (n && (double)n >= share * (double)h->count)
            return gort_histogram_edge(i);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * schedtrace.c - the state of the scheduler every so often, in Go's format (GORT_DEBUG=schedtrace=MS).
 *
 *     SCHED 1004ms: gomaxprocs=2 idleprocs=0 threads=3 spinningthreads=0 needspinning=0 idlethreads=0 runqueue=3 [ 5 9 ] schedticks=[ 211 198 ]
 *
 * With scheddetail=1 a line for each P, M and G follows. What Go counts and gort does not have is 0; status
 * is Go's number.
 *
 * Who prints: the supervisor. It sleeps on a futex until a time in any case, so a line costs one wake-up of a
 * thread that nobody waits for. sysmon was rejected: when it looks, and that it does not while all Ps are
 * idle, decides how it treats goroutines, so looking more often would change what is to be shown. It must not
 * wait for whoever reads the lines, because it creates threads: what the fd does not take at once is left
 * out.
 * Threads: by the supervisor. Threads are looked at with sched.lock held, a few at a time.
 */
#include <string.h>

#include "base/fmt.h"
#include "observe/observe.h"
#include "observe/stats.h"

#define CHUNK    4096 /* a pipe that is writable takes so much at once (PIPE_BUF) */
#define LINE     512  /* no piece is longer */
#define SOME     32   /* threads looked at while the lock is held */
#define GS_SHOWN 1000

static struct {
    uint64_t run;
    int64_t next; /* when the next line is due in that run */
    size_t len;
    char text[CHUNK];
} trace; /* owned by the supervisor */

static void flush(void)
{
    if (trace.len && gort__os_fd_writable(2))
        gort__fmt_write(2, trace.text, trace.len);
    trace.len = 0;
}

static void put(const char *fmt, ...) GORT_PRINTF(1, 2);
static void put(const char *fmt, ...)
{
    va_list args;
    if (trace.len + LINE > sizeof trace.text)
        flush();
    va_start(args, fmt);
    trace.len += gort__fmt_v(trace.text + trace.len, LINE, fmt, args);
    va_end(args);
}

/* Numbers of goroutines, threads and Ps; nil: none. */
static const char *number(int64_t n, char buf[24])
{
    if (n < 0)
        return "nil";
    gort__fmt(buf, 24, "%ld", (long)n);
    return buf;
}

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

static struct gort__p *p_at(int i)
{
    return gort__load(&gort__sched.ps[i], ACQUIRE); /* pairs with p.c:make */
}

static unsigned long queued(const struct gort__p *p)
{
    return gort__runq_length(&p->runq) + gort__runq_length(&p->events);
}

static void put_ps(int n)
{
    for (int i = 0; i < n; i++) {
        const struct gort__p *p = p_at(i);
        const struct gort__m *m = gort__load(&p->m, ACQUIRE); /* pairs with gort__p_take; records stay */
        char buf[24];
        put("  P%d: status=%d schedtick=%lu syscalltick=%lu m=%s runqsize=%lu gfreecnt=0 timerslen=%u\n", i,
            m != NULL, (unsigned long)gort__load(&p->switches, RELAXED),
            (unsigned long)gort__load(&p->counts.handoffs, RELAXED), number(m ? m->id : -1, buf), queued(p),
            gort__load(&p->timers.live, RELAXED));
    }
}

/* What is shown of an M. */
struct seen {
    int id, p;
    int64_t g, bound;
    enum gort__stats_thread what;
};

/* From the first one that was not seen. How many. */
static int look_at_ms(struct seen *seen, int from)
{
    struct gort__sched *s = &gort__sched;
    int n = 0;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    struct gort__m *m = s->ms.all;
    for (int i = 0; m && i < from; i++)
        m = m->all_next;
    for (; m && n < SOME; m = m->all_next, n++) {
        enum gort__gstate state;
        const struct gort__g *g = gort__load(&m->block_g, RELAXED);
        if (!g)
            g = gort__load(&m->g, ACQUIRE); /* pairs with switch_to */
        bool idle = g == &m->g0, bound = !idle && gort__load(&g->lock_depth, RELAXED);
        seen[n].id = m->id;
        seen[n].p = m->p ? m->p->id : m->handoff.next_p ? m->handoff.next_p->id : -1;
        seen[n].g = idle ? -1 : (int64_t)gort__load(&g->id, RELAXED);
        seen[n].bound = bound ? seen[n].g : -1;
        seen[n].what = gort__stats_thread_locked(m, &state);
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return n;
}

static void put_ms(void)
{
    struct seen seen[SOME];
    for (int from = 0, n = SOME; n == SOME; from += n) {
        n = look_at_ms(seen, from);
        for (int i = 0; i < n; i++) {
            char p[24], g[24], bound[24];
            put("  M%d: p=%s curg=%s mallocing=0 throwing=0 preemptoff= locks=0 dying=0 spinning=%s blocked=%s "
                "lockedg=%s\n",
                seen[i].id, number(seen[i].p, p), number(seen[i].g, g),
                truth(seen[i].what == GORT_STATS_SEARCHING),
                truth(seen[i].what == GORT_STATS_IDLE || seen[i].what == GORT_STATS_STOPPED),
                number(seen[i].bound, bound));
        }
    }
}

/* Go's numbers. */
static const uint8_t go_status[GORT_G_STATES] = {
    [GORT_G_IDLE] = 0,     [GORT_G_RUNNABLE] = 1, [GORT_G_RUNNING] = 2,   [GORT_G_SYSCALL] = 3,
    [GORT_G_DETACHED] = 3, [GORT_G_WAITING] = 4,  [GORT_G_PREEMPTED] = 9, [GORT_G_DEAD] = 6,
};

static void put_g(const struct gort__g *g, enum gort__gstate state)
{
    enum gort__reason reason = (enum gort__reason)gort__load(&g->reason, RELAXED);
    const struct gort__m *m = gort__load(&g->m, ACQUIRE); /* pairs with schedule.c; records stay */
    bool has_m = m && (go_status[state] == 2 || go_status[state] == 3 || state == GORT_G_PREEMPTED);
    bool bound = m && gort__load(&g->lock_depth, RELAXED);
    char on[24], lock[24];
    put("  G%lu: status=%u(%s) m=%s lockedm=%s\n", (unsigned long)gort__load(&g->id, RELAXED),
        (unsigned)go_status[state], state == GORT_G_WAITING ? gort__state_reason_name(reason) : "",
        number(has_m ? m->id : -1, on), number(bound ? m->id : -1, lock));
}

static void put_gs(void)
{
    unsigned long shown = 0;
    /* Pairs with slab.c: chunks and what was carved from them. */
    for (struct gort__chunk *c = gort__load(&gort__sched.gs.chunks, ACQUIRE); c; c = c->next) {
        char *end = gort__load(&c->carved, ACQUIRE);
        for (char *at = c->first; at < end; at += sizeof(struct gort__g)) {
            const struct gort__g *g = (const struct gort__g *)(const void *)at;
            enum gort__gstate state = (enum gort__gstate)gort__load(&g->state, RELAXED);
            if (state != GORT_G_IDLE && state != GORT_G_DEAD && ++shown <= GS_SHOWN)
                put_g(g, state);
        }
    }
    if (shown > GS_SHOWN)
        put("  ... and %lu more\n", shown - GS_SHOWN);
}

static void print(int64_t now)
{
    struct gort__sched *s = &gort__sched;
    gort_stats all = {0};
    gort__stats_fill(&all);
    int n = gort__load(&s->procs, RELAXED);
    put("SCHED %ldms: gomaxprocs=%d idleprocs=%lu threads=%lu spinningthreads=%lu needspinning=0 idlethreads=%lu "
        "runqueue=%lu",
        (long)((now - s->main.started_at) / 1000000), n, (unsigned long)all.procs_idle,
        (unsigned long)all.threads, (unsigned long)all.threads_spinning, (unsigned long)all.threads_idle,
        (unsigned long)all.queue_length);
    if (s->conf.scheddetail) {
        put(" gcwaiting=%s nmidlelocked=0 stopwait=0 sysmonwait=%s\n",
            truth(gort__load(&s->world_word, RELAXED) & 1),
            truth(gort__load(&s->sysmon.state, RELAXED) == GORT_MON_IDLE));
        put_ps(n);
        put_ms();
        put_gs();
    } else {
        put(" [");
        for (int i = 0; i < n; i++)
            put(" %lu", queued(p_at(i)));
        put(" ] schedticks=[");
        for (int i = 0; i < n; i++)
            put(" %lu", (unsigned long)gort__load(&p_at(i)->switches, RELAXED));
        put(" ]\n");
    }
    flush();
}

int64_t gort__schedtrace_tick(int64_t now)
{
    struct gort__sched *s = &gort__sched;
    int64_t every = (int64_t)s->conf.schedtrace_ms * 1000000;
    uint64_t run = gort__load(&s->run, RELAXED);
    if (!every)
        return INT64_MAX;
    if (trace.run != run) {
        trace.run = run;
        trace.next = now;
    }
    if (now < trace.next)
        return trace.next;
    struct gort__stats_look look;
    if (gort__stats_begin(&look)) {
        print(now);
        gort__stats_end(&look);
    }
    trace.next += every;
    if (trace.next <= now)
        trace.next = now + every;
    return trace.next;
}

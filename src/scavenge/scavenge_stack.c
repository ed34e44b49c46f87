/* SPDX-License-Identifier: MIT */
/*
 * scavenge_stack.c - stacks give their memory back: those of goroutines that went deep once and are parked,
 * and free ones.
 *
 * Why: a goroutine that once called something deep keeps those pages as long as it lives, and most live long
 * and are parked. Below the stack pointer of a parked goroutine there is nothing of value, so the pages can
 * go.
 * How it finds them: nobody notices how deep a goroutine goes but the kernel, so the page tables are read
 * (mem/scavenge.c), some 150 ns a stack. Not at each tick: only when the process has grown since the last
 * time, or some were seen that could not be trimmed then; and never for more than a fiftieth of the time. A
 * stack must be seen deep and parked twice before it is trimmed, and up to eight times when it grew again
 * after that: who goes deep again and again keeps its pages most of the time.
 *
 * The race: the goroutine may be readied, and run, while its pages are discarded. So
 *     1. the world is stopped; each candidate that is WAITING, is marked GORT_G_SHRINKING, and its stack pointer noted;
 *     2. the world goes on, the pages below the noted stack pointers are discarded, the marks are taken off.
 * Proof. Whoever parks does not look at attention between becoming WAITING and leaving its stack (park.c,
 * schedule.c), so with the world stopped a WAITING goroutine is off its stack and ctx.sp is its stack
 * pointer. Only an M with a P resumes goroutines, and all of those are stopped: they see the mark when they
 * go on (world_start's lock). A marked one may be readied (by a timer, by a plain thread): it is queued, and
 * whoever picks it tests GORT_G_SPECIAL before anything else and puts it back. So from 1. to the end of 2.
 * nobody runs on the stack. The flags of a goroutine are written by its owner; a WAITING or queued goroutine
 * has none that would, so the scavenger may. Bound goroutines are resumed another way (m.c) and are left
 * alone. The test costs nothing: it is the one for GORT_G_BOUND with two more bits. A goroutine may be parked
 * on a stack that is not ours (makecontext, a library's coroutines). Then ctx.sp says nothing about its own
 * stack: nobody knows how much of that is in use, and it is left as it is.
 * The stop lasts as long as looking at some 100 records; discarding, which is slow, comes after it.
 * Threads: `_locked` with sched.lock held; gort__scavenge_stack by the supervisor alone; stir by anybody; sysmon does while a P is at work,
 * and the last one that goes idle.
 */
#include <string.h>

#include "base/fatal.h"
#include "scavenge/scavenge.h"

#define TICK     INT64_C(200000000) /* ns */
#define WAIT_MAX INT64_C(1000000000)
#define SHARE    50               /* scans take at most one part in so many of the time */
#define BATCH    128              /* stacks held at once */
#define SLICE    INT64_C(1000000) /* ns of work at a time: the supervisor has other things to do */
#define RED_ZONE 512              /* bytes below the stack pointer that are left alone */

static struct {
    uint64_t run; /* which this is about */
    int64_t due, scan_at, wait;
    uint64_t switches; /* of all Ps, at the last tick */
    size_t floor;      /* the least memory of the process since the last scan */
    int quiet;         /* ticks since something happened */
    bool trimming;     /* free stacks are being trimmed */
    bool records;      /* so are free records */
    bool scanning;     /* a scan is on: */
    struct gort__stack_cursor at;
    int64_t spent; /* time */
    long trimmed;
    bool skipped; /* it saw some that it did not trim */
    bool urgent;  /* the machine is short of memory */
    int n;
    struct gort__stack *ripe[BATCH];
} job;

static bool asleep; /* nothing happened for a while: gort__scavenge_stack waits for a stir; atomic */

void gort__scavenge_stack_stir_locked(void)
{
    if (gort__load(&asleep, RELAXED)) {
        gort__store(&asleep, false, RELAXED);
        gort__supervisor_wake_locked();
    }
}

void gort__scavenge_stack_stir(void)
{
    if (!gort__load(&asleep, RELAXED))
        return;
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__scavenge_stack_stir_locked();
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

static uint64_t count_switches(void)
{
    uint64_t n = 0;
    struct gort__p *p;
    for (int i = 0; i < GORT_MAXPROCS_MAX && (p = gort__load(&gort__sched.ps[i], ACQUIRE)) != NULL; i++)
        n += gort__load(&p->switches, RELAXED); /* the pointer pairs with p.c:make */
    return n;
}

/* What idle Ps keep for themselves may age like the rest. */
static void flush_idle(void)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    for (struct gort__p *p = gort__sched.idle_ps; p; p = p->link)
        if (p->stacks.n)
            gort__stack_cache_flush(&p->stacks);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}

/* A stack with memory below its top: counts how often it was seen so while its goroutine was parked. */
static GORT_NO_TSAN bool on_deep(struct gort__stack *s, char *lowest, void *arg)
{
    struct gort__g *g = gort__stack_owner(s);
    (void)arg;
    if (!g)
        return true; /* free, or in a P's cache: gort__scavenge_trim sees to it */
    /* A look at a record that may change at any time: a guess, certain only with the world stopped. */
    char *sp = g->ctx.sp;
    if (gort__load(&g->state, RELAXED) == GORT_G_WAITING &&
        (lowest + RED_ZONE >= sp || !gort__stack_holds(s, sp)))
        return true; /* it needs all of it, or stands elsewhere */
    job.skipped = true;
    if (gort__load(&g->state, RELAXED) != GORT_G_WAITING)
        return true;
    uint8_t sight = gort__load(&s->sight, RELAXED);
    unsigned seen = (sight & 15) + 1u, times = sight >> 4;
    if ((seen >= 2u << times || job.urgent) && job.n < BATCH)
        job.ripe[job.n++] = s;
    else
        gort__store(&s->sight, (uint8_t)(times << 4 | (seen < 15 ? seen : 15)), RELAXED);
    return job.n < BATCH;
}

/* Marks one, if it is parked. The world is stopped. */
static bool hold(struct gort__stack *s, struct gort__os_range *range)
{
    struct gort__g *g = gort__stack_owner(s);
    if (!g || g->stack != s || !g->ctx.pc || gort__load(&g->state, RELAXED) != GORT_G_WAITING ||
        (gort__load(&g->flags, RELAXED) & (GORT_G_BOUND | GORT_G_THREAD | GORT_G_SHRINKING)))
        return false;
    if (!gort__stack_holds(s, g->ctx.sp))
        return false;
    char *lo = gort__stack_lo(s);
    uintptr_t end = ((uintptr_t)g->ctx.sp - RED_ZONE) & ~(gort__os_page() - 1);
    if (end <= (uintptr_t)lo)
        return false;
    *range = (struct gort__os_range){lo, end - (uintptr_t)lo};
    gort__g_flag_on(g, GORT_G_SHRINKING);
    return true;
}

static void let_go(struct gort__stack *s)
{
    struct gort__g *g = gort__stack_owner(s);
    unsigned times = gort__load(&s->sight, RELAXED) >> 4;
    gort__store(&s->sight, (uint8_t)((times < 2 ? times + 1 : 2) << 4), RELAXED);
    gort__store(&g->flags, (uint16_t)(g->flags & ~GORT_G_SHRINKING), RELEASE); /* pairs with who resumes it */
}

/* Trims the ripe ones. */
static void trim_ripe(void)
{
    struct gort__os_range ranges[BATCH];
    int n = 0;
    if (!job.n || !gort__world_stop(NULL))
        return;
    for (int i = 0; i < job.n; i++)
        if (hold(job.ripe[i], &ranges[n]))
            job.ripe[n++] = job.ripe[i];
    gort__world_start();
    gort__os_vm_discard_many(ranges, n);
    for (int i = 0; i < n; i++)
        let_go(job.ripe[i]);
    job.trimmed += n;
}

/* Goes on with the scan. */
static void scan_some(int64_t now)
{
    job.n = 0;
    bool done = gort__scavenge_scan(&job.at, now + SLICE / 2, on_deep, NULL);
    trim_ripe();
    int64_t ended = gort__os_now();
    job.spent += ended - now;
    if (!done)
        return;
    job.scanning = false;
    job.wait = job.trimmed || !job.wait ? TICK : job.wait < WAIT_MAX ? job.wait * 2 : WAIT_MAX;
    job.scan_at = ended + (job.spent * SHARE > job.wait ? job.spent * SHARE : job.wait);
    job.floor = gort__os_rss();
    if (job.skipped && job.wait < WAIT_MAX)
        job.quiet = 0;
}

/* Every TICK: is there anything to do? */
static void tick(int64_t now)
{
    uint64_t switches = count_switches();
    size_t rss = gort__os_rss();
    if (rss < job.floor) /* a burst is over: what grows from here on has not been looked at */
        job.floor = rss;
    bool grown = rss > job.floor + (job.floor / 50 > 262144 ? job.floor / 50 : 262144);
    job.quiet = switches != job.switches || grown ? 0 : job.quiet + 1;
    job.switches = switches;
    job.urgent = gort__os_memory_pressure();
    flush_idle();
    if (gort__scavenge_age(now, job.urgent))
        job.quiet = 0;
    job.trimming = true;
    job.records = gort__scavenge_g_tick();
    if (job.records)
        job.quiet = 0;
    if (!job.scanning && (grown || job.skipped || job.urgent) && now >= job.scan_at) {
        job.scanning = true;
        job.skipped = false;
        job.trimmed = job.spent = 0;
        memset(&job.at, 0, sizeof job.at);
    }
    job.due = now + TICK;
}

int64_t gort__scavenge_stack(int64_t now)
{
    uint64_t run = gort__load(&gort__sched.run, RELAXED);
    if (job.run != run) {
        memset(&job, 0, sizeof job);
        gort__scavenge_g_reset();
        job.run = run;
        job.due = now + TICK;
        gort__store(&asleep, false, RELAXED);
    }
    if (gort__load(&asleep, RELAXED))
        return INT64_MAX;
    if (job.due == INT64_MAX) { /* stirred: a few ticks, else it would fall asleep before the first one */
        job.due = now + TICK;
        job.quiet = 0;
    }
    if (now >= job.due)
        tick(now);
    if (job.trimming)
        job.trimming = !gort__scavenge_trim(now + SLICE);
    else if (job.records)
        job.records = gort__scavenge_g(now + SLICE);
    else if (job.scanning)
        scan_some(now);
    if (job.trimming || job.records || job.scanning)
        return now;
    if (job.quiet > 2) { /* what was given back last has aged and is gone */
        job.due = INT64_MAX;
        gort__store(&asleep, true, RELAXED);
    }
    return job.due;
}

/* SPDX-License-Identifier: MIT */
/*
 * turn.c - who runs next on a P when goroutines compete for it: the policy. docs/design/0015 tells why.
 *
 * Time is shared, not turns. A time slice belongs to a goroutine and to those that it hands its P to through
 * `next`. sysmon sees when it has lasted for 10 ms while others wait, and asks for its end: the next pick
 * passes `next` over (OVER) and takes a goroutine of the ring, or a preempted one, in turns.
 *
 * What an event has woken (a timer, an fd, a plain thread) waits in a ring of its own, `events`, or in
 * sched.woken if whoever woke it has no P. It goes before the ring and before the preempted ones. If all Ps
 * compute, sysmon asks one to stop; the goroutine that was preempted for it is the first of the preempted
 * ones, keeps what is left of its slice, and gets the P back (OWES) as soon as the woken ones have parked. A
 * woken goroutine that runs for more than 1 ms is preempted like any other.
 *
 * Woken goroutines do not starve the others: they take turns by equal time. A phase of theirs lasts for
 * WOKEN_MOST at most while others wait, and after one that took T the others have the P for T before the next
 * one begins.
 *
 *     others --pick, or preempted for them--> WOKEN --none left, or WOKEN_MOST is over--> others: the one that P OWES its
 *                                                                                   turn to, else as ever
 *
 * tests/model/events.c explores that none of them is lost, handoff.c there that who is preempted for them
 * goes on.
 * Threads: each by the M that holds the P, inside; gort__turn_may_stop by sysmon, a hint.
 */
#include "sched/core/core.h"

#define WOKEN_MOST ticks_of(5)  /* half of 100 ms is in many small parts */
#define SLICE      ticks_of(10) /* GORT_SLICE */
/* Of the processor's counter, ticks in a millisecond; 0: not known yet; atomic, written by sysmon. */
static uint64_t rate;
static struct {
    int64_t ns;
    uint64_t ticks;
    bool known; /* the rate, from before */
} rate_from;    /* the look since which it counts; owned by sysmon */

/* Before the first look 2.5 GHz is as good a guess as any on x86; elsewhere the processor says how fast it
 * counts. */
static uint64_t ticks_of(uint64_t ms)
{
    uint64_t a_ms = gort__load(&rate, RELAXED);
    return ms * (a_ms ? a_ms : 50 * GORT_ARCH_TICKS_BRIEF);
}

int64_t gort__turn_ns(uint64_t ticks)
{
    uint64_t a_ms = ticks_of(1);
    return (int64_t)(ticks / a_ms * 1000000 + ticks % a_ms * 1000000 / a_ms);
}

void gort__turn_rate(int64_t now, bool begin)
{
    uint64_t counter = gort__arch_ticks();
    int64_t ns = now - rate_from.ns;
    bool anew = begin || counter < rate_from.ticks;
    if (!anew && ns >= (rate_from.known ? GORT_TICKS_RATE_ANEW : GORT_TICKS_RATE_AFTER))
        gort__store(&rate, (counter - rate_from.ticks) / (uint64_t)(ns / 1000000), RELAXED);
    if (anew || ns >= GORT_TICKS_RATE_ANEW) {
        rate_from.ns = now;
        rate_from.ticks = counter;
        rate_from.known = !anew;
    }
}

/*
 * sysmon sees when a time slice is over, but not if each is short, because the global queue always has a
 * goroutine between; and without preemption it asks nobody.
 */
void gort__turn_look(struct gort__p *p)
{
    uint64_t now = gort__arch_ticks();
    if (now - p->ring_at < SLICE || gort__runq_seems_empty(&p->runq))
        return;
    p->ring_at = now;
    gort__p_mode_on(p, GORT_MODE_OVER);
}

/* Somebody waits for p who was not woken by an event. */
static bool others_wait(const struct gort__p *p)
{
    const struct gort__sched *s = &gort__sched;
    return !gort__runq_seems_empty(&p->runq) || gort__load(&s->preempted.n, RELAXED) ||
           gort__load(&s->global.n, RELAXED);
}

static bool woken_may_run(const struct gort__p *p)
{
    if (!(p->mode & GORT_MODE_EVENTS) && !gort__load(&gort__sched.events.n, RELAXED))
        return false;
    if (!others_wait(p))
        return true;
    uint64_t now = gort__arch_ticks();
    if (p->mode & GORT_MODE_WOKEN)
        return now - p->woken_from < WOKEN_MOST;
    return now - p->others_from >= p->woken_took;
}

bool gort__turn_may_stop(const struct gort__p *p)
{
    return !(gort__load(&p->mode, RELAXED) & GORT_MODE_WOKEN) &&
           gort__arch_ticks() - gort__load(&p->others_from, RELAXED) >= gort__load(&p->woken_took, RELAXED);
}

struct gort__g *gort__turn_begin_woken(struct gort__p *p, struct gort__g *g)
{
    p->woken_g = g;
    if (g && !(p->mode & GORT_MODE_WOKEN)) {
        gort__p_mode_on(p, GORT_MODE_WOKEN);
        gort__store(&p->woken_from, gort__arch_ticks(), RELAXED);
        gort__p_new_slice(p);
    }
    return g;
}

static struct gort__g *take_woken(struct gort__p *p)
{
    struct gort__g *g = gort__runq_get(&p->events);
    if (!g) {
        gort__p_mode_off(p, GORT_MODE_EVENTS);
        if (gort__load(&gort__sched.events.n, RELAXED))
            g = gort__queue_take_woken(p);
    }
    return gort__turn_begin_woken(p, g);
}

struct gort__g *gort__turn_woken(struct gort__p *p)
{
    return woken_may_run(p) ? take_woken(p) : NULL;
}

/* Whoever they let go first may be gone when p's M comes to take it: another one has been faster. */
struct gort__g *gort__turn_last(struct gort__p *p)
{
    return p->mode & GORT_MODE_EVENTS ? take_woken(p) : NULL;
}

/* A phase that nobody else wanted to end may have been long; nobody is counted_no_p more than a contested one
 * may take. */
static void end_woken(struct gort__p *p)
{
    uint64_t now = gort__arch_ticks(), took = now - p->woken_from;
    gort__store(&p->woken_took, took < WOKEN_MOST ? took : WOKEN_MOST, RELAXED);
    gort__store(&p->others_from, now, RELAXED);
    gort__p_mode_off(p, GORT_MODE_WOKEN);
}

void gort__turn_others(struct gort__p *p, const struct gort__g *g)
{
    if ((p->mode & GORT_MODE_WOKEN) && g != p->woken_g)
        end_woken(p);
}

static struct gort__g *take_preempted(struct gort__p *p)
{
    p->preempted_at = gort__arch_ticks();
    return gort__preempted_take();
}

/* What was to run next has had its time with those before it: it waits in the ring. */
static void put_back_next(struct gort__p *p)
{
    struct gort__g *g = gort__runq_get_next(&p->runq);
    if (!g)
        return;
    gort__local_put(p, g);
    gort__fence(SEQ_CST); /* pairs with idle.c: for a moment it was in no queue */
    gort__wake_idle();
}

struct gort__g *gort__turn_pick(struct gort__p *p)
{
    const struct gort__sched *s = &gort__sched;
    bool over = p->mode & GORT_MODE_OVER;
    gort__p_mode_off(p, GORT_MODE_OVER);
    if (over) {
        p->ring_at = gort__arch_ticks();
        put_back_next(p);
    }
    struct gort__g *g = gort__turn_woken(p);
    if (g)
        return g;
    if (p->mode & GORT_MODE_WOKEN)
        end_woken(p);
    gort__p_new_slice(p);
    if (p->mode & GORT_MODE_OWES) {
        gort__p_mode_off(p, GORT_MODE_OWES);
        g = gort__preempted_take_first();
        if (g) {
            gort__hooks.monitor.sysmon_calm();
            return g;
        }
    }
    if (over && gort__load(&s->preempted.n, RELAXED)) {
        p->preempted_first = !p->preempted_first;
        g = p->preempted_first ? take_preempted(p) : NULL;
    }
    if (!g)
        g = gort__runq_get(&p->runq);
    if (!g && over && gort__load(&s->global.n, RELAXED))
        g = gort__queue_take(p, 1);
    if (!g && over && gort__load(&s->preempted.n, RELAXED))
        g = take_preempted(p);
    return g ? g : gort__runq_get_next(&p->runq);
}

struct gort__g *gort__turn_preempted(struct gort__p *p)
{
    if (gort__arch_ticks() - p->preempted_at < SLICE)
        return NULL;
    p->preempted_first = false;
    gort__p_mode_on(p, GORT_MODE_OVER);
    return gort__turn_pick(p);
}

/* SPDX-License-Identifier: MIT */
/*
 * latency.c - how long goroutines wait between runnable and running, of a few of them.
 *
 * Why: a clock at each wake-up and each switch would cost more than the switch. Go looks at one of 8
 * goroutines, and counts for each at every stop. Here nothing is added to the ways that are taken a million
 * times a second: a goroutine is chosen where something slow happens anyway, and what chooses it is a flag
 * (GORT_G_TRACKED) among those that waking and resuming test together in any case.
 *
 *     chosen: at every 4th fair pick of a P (1 of 244) the one that yields or parks; of those that an M finds after a search 1 of 8,
 *             for their next wait; when numbers are drawn 1 of 256 new ones; 1 of 8 that plain threads start
 *
 * So a program that does little has 1 of 8 followed, one that does much enough of them.
 * The times since when they are runnable lie in a small table, by a hash of the record's address: a record
 * has no room for one. Two that want the same place, or a record that is used again meanwhile, lose a sample;
 * 16 bits of the hash beside the time see to it that none is taken for another one.
 * Invariants: (1) the flag is changed by who owns the record only, as all flags, or by its M while it is
 * still on its stack: the scavenger, which changes flags of parked goroutines, begins while no M is inside;
 * (2) whoever runs one with the flag clears it.
 * Threads: any, inside; end, fair and found by the M that holds p.
 */
#include "sched/core/latency.h"

#include "sched/core/core.h"

#define FAIR_PICKS 4                         /* powers of two */
#define TICKS      ((UINT64_C(1) << 48) - 1) /* of an entry; above them the tag */

static uint64_t hash(const struct gort__g *g)
{
    return ((uintptr_t)g / GORT_LINE) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t *place(uint64_t hashed)
{
    return &gort__sched.counts.latency[hashed >> 48 & (GORT_LATENCY_PLACES - 1)];
}

static uint64_t tag(uint64_t hashed)
{
    return hashed << 16 & ~TICKS; /* not the bits that place takes */
}

void gort__latency_begin(struct gort__g *g)
{
    uint64_t h = hash(g);
    gort__store(place(h), tag(h) | (gort__arch_ticks() & TICKS), RELAXED);
}

void gort__latency_end(struct gort__p *p, struct gort__g *g)
{
    uint64_t h = hash(g), *at = place(h), was = gort__load(at, RELAXED);
    gort__g_flag_off(g, GORT_G_TRACKED);
    if (!was || (was & ~TICKS) != tag(h))
        return;
    gort__store(at, 0, RELAXED);
    uint64_t ticks = (gort__arch_ticks() - was) & TICKS;
    if (ticks <= TICKS / 2) /* else another processor's counter is a little behind */
        gort__hist_add(&p->counts.latency, gort__turn_ns(ticks));
}

/* It can be resumed from any stack, but for that flag. */
static bool may_follow(const struct gort__g *g)
{
    return !(gort__load(&g->flags, RELAXED) & (GORT_G_SPECIAL | GORT_G_THREAD));
}

void gort__latency_fair(struct gort__p *p, const struct gort__g *next)
{
    if (GORT_LIKELY(++p->counts.latency_fair % FAIR_PICKS))
        return;
    struct gort__g *stops = gort__m_self()->g;
    enum gort__gstate state = gort__load(&stops->state, RELAXED);
    bool yields = state == GORT_G_RUNNING && next;
    if ((!yields && state != GORT_G_WAITING) || !may_follow(stops))
        return;
    gort__g_flag_on(stops, GORT_G_TRACKED);
    if (yields)
        gort__latency_begin(stops);
}

void gort__latency_follow(struct gort__p *p, struct gort__g *g)
{
    if (g->flags & GORT_G_TRACKED)
        gort__latency_end(p, g);
    if (p->counts.latency_found % GORT_LATENCY_FOUND == 0 && may_follow(g))
        gort__g_flag_on(g, GORT_G_TRACKED);
}

void gort__latency_mutex(struct gort__m *m, int64_t ns)
{
    struct gort__p *p = m->p;
    if (p)
        gort__count(&p->counts.mutex_ns, (uint64_t)ns);
    else
        gort__add(&gort__sched.counts.mutex_ns, (uint64_t)ns, RELAXED);
}

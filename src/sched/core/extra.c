/* SPDX-License-Identifier: MIT */
/*
 * extra.c - what few goroutines have: a name, exit handlers, values of keys, an inherited context.
 *
 * Why: a million goroutines that wait to run are a million records, and every line of one counts. So these
 * things have a record of their own, made when the first of them is needed; who has none of them pays one
 * pointer. GORT_G_CLEANUP tells the end of a goroutine that there may be one, which is all that it asks.
 * Dumps follow the pointer at any time, so extras come from a slab of their own: what was one is one for the
 * whole run, and its name a string that ends. They are not given back to the system before the run ends, as
 * little as blocks.
 * Invariants: (1) a free or fresh G has none; (2) who has one has GORT_G_CLEANUP.
 * Threads: the owner of the G, inside; gort__extra_name by anybody, signal handlers included.
 */
#include "sched/core/core.h"

_Static_assert(sizeof(struct gort__extra) == GORT_LINE, "a name costs one line");

struct gort__extra *gort__extra_get(struct gort__g *g)
{
    if (g->extra)
        return g->extra;
    struct gort__extra *extra = gort__slab_get(&gort__sched.extras);
    if (!extra)
        return NULL;
    extra->handlers = NULL;
    extra->keys = NULL;
    extra->inherited = NULL;
    gort__store(&extra->name[0], '\0', RELAXED); /* an old dump may still read it */
    gort__store(&g->extra, extra, RELEASE);      /* pairs with gort__extra_name */
    gort__g_flag_on(g, GORT_G_CLEANUP);
    return extra;
}

void gort__extra_put(struct gort__g *g)
{
    struct gort__extra *extra = g->extra;
    gort__store(&g->extra, NULL, RELAXED);
    gort__slab_put(&gort__sched.extras, extra);
}

bool gort__extra_set_name(struct gort__g *g, const char *name)
{
    struct gort__extra *extra = gort__extra_get(g);
    size_t n = 0;
    if (!extra)
        return false;
    for (; name && name[n] && n < GORT_NAME_SIZE - 1; n++)
        gort__store(&extra->name[n], name[n], RELAXED);
    gort__store(&extra->name[n], '\0', RELAXED);
    gort__g_flag_on(g, GORT_G_NAMED);
    return true;
}

GORT_NO_TSAN const char *gort__extra_name(const struct gort__g *g)
{
    uint16_t flags = gort__load(&g->flags, RELAXED);
    if (!(flags & GORT_G_NAMED))
        return flags & GORT_G_MAIN ? "main" : "";
    const struct gort__extra *extra = gort__load(&g->extra, ACQUIRE); /* pairs with gort__extra_get */
    return extra ? extra->name : "";
}

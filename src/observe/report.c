/* SPDX-License-Identifier: MIT */
/*
 * report.c - all goroutines with their calls: for gort_dump, SIGQUIT, every fatal error, deadlocks.
 *
 * Why groups: ten thousand goroutines that wait at the same place say no more than one of them, and hide the
 * one that does not. So those in the same state with the same calls, started with the same function, are
 * shown together, their calls once. The main goroutine comes first, then the rare ones: of what is wrong
 * there is usually little. Nothing is left out: what is not listed is counted.
 *
 *     goroutine 7 (worker) [waiting: mutex] created by goroutine 1, ...      each one's line, if the group is small
 *     goroutine 9 (worker) [waiting: mutex] created by goroutine 1, ...
 *         wait_for_lock+0x1f (program+0x12ab)                                their calls, innermost first
 *
 *     9996 goroutines [waiting: chan receive], runs consume+0x0 (program+0x1234): 12-4000, 4003-10007
 *         ...
 *
 * Two passes: the first looks at each record and its stack (stacks.c), the second prints. In between they are
 * kept in memory that comes straight from the kernel; when there is none, a goroutine is printed at once, by
 * itself.
 * Threads: any, signal handlers included; takes no lock. Records are type-stable, so a goroutine that has
 * ended meanwhile leaves a line that is out of date, and no more.
 */
#include <string.h>

#include "base/fmt.h"
#include "observe/arena.h"
#include "observe/object.h"
#include "observe/stacks.h"
#include "os/source.h"

#define LISTED 10    /* goroutines of a group that have a line each */
#define RANGES 40    /* of numbers of a larger group that are listed; the rest is counted */
#define TABLE  4096u /* lists of groups */
#define CALLS  4096u /* lists of names */
#define WHERE  1024  /* bytes for the text of a call, with all functions that were inlined there */

struct member {
    struct member *next;
    const struct gort__g *g;
    uint64_t id;
    int64_t since;      /* it waits; 0: unknown */
    const void *object; /* that it waits for */
};

struct group {
    struct group *next; /* with the same hash, or all */
    struct member *first, **last;
    uint64_t hash, n;
    void (*fn)(void);
    const void *site; /* where they were started */
    uint8_t state, reason, said, end;
    bool main;
    uint32_t calls, elided;
    uintptr_t pc[];
};

/* The text for a call: a line for each function, the innermost first. */
struct name {
    struct name *next;
    uintptr_t pc;
    bool inner; /* a function of gort's own that nobody calls from outside */
    char text[];
};

struct report {
    int fd;
    int64_t now;
    struct gort__arena arena;
    struct gort__stacks stacks;
    struct group **table;           /* TABLE lists; NULL: no memory */
    struct name **names;            /* CALLS lists; NULL: no memory */
    struct gort__os_source *source; /* NULL: no memory */
    uint64_t groups;
    size_t filled;
    char text[2048]; /* to be written */
};

/* --- writing ------------------------------------------------------------------------------------ */

static void flush(struct report *r)
{
    gort__fmt_write(r->fd, r->text, r->filled);
    r->filled = 0;
}

static void put(struct report *r, const char *text)
{
    for (; *text; text++) {
        if (r->filled == sizeof r->text)
            flush(r);
        r->text[r->filled++] = *text;
    }
}

GORT_PRINTF(2, 3) static void print(struct report *r, const char *fmt, ...)
{
    va_list args;
    if (sizeof r->text - r->filled < 640)
        flush(r);
    va_start(args, fmt);
    r->filled += gort__fmt_v(r->text + r->filled, sizeof r->text - r->filled, fmt, args);
    va_end(args);
}

/* --- names of calls ------------------------------------------------------------------------------ */

static bool starts(const char *text, const char *with)
{
    while (*with && *text == *with) {
        text++;
        with++;
    }
    return !*with;
}

/* A function by which goroutines wait or begin: of no interest to those who do not work on gort. */
static bool is_ours(const struct gort__os_source_call *c)
{
    static const char *const others[] = {"die", "main_start"};
    bool ours = c->function && starts(c->function, "gort__");
    for (size_t i = 0; i < sizeof others / sizeof *others && c->function && !ours; i++)
        ours = strlen(others[i]) == c->length && strncmp(c->function, others[i], c->length) == 0 &&
               (!c->file || strstr(c->file, "src/") || (c->dir && strstr(c->dir, "src/")));
    return ours;
}

/* "    f at dir/file.c:12", or "    f+0x1f", without a line's end. */
static size_t describe_one(const struct gort__os_source_place *p, int i, char *to, size_t size)
{
    const struct gort__os_source_call *c = &p->call[i];
    char name[160];
    size_t n = c->length < sizeof name ? c->length + 1 : sizeof name;
    /* What a macro of the public headers stands for has the name that the program calls. */
    bool priv = c->function && starts(c->function, "gort_priv_");
    gort__fmt(name, n, "%s%s", priv ? "gort_" : "", c->function ? c->function + (priv ? 10 : 0) : "?");
    if (!c->file)
        return gort__fmt(to, size, "    %s+0x%lx", name, (unsigned long)p->offset);
    bool absolute = c->file[0] == '/' || !c->dir;
    return gort__fmt(to, size, "    %s at %s%s%s:%u", name, absolute ? "" : c->dir, absolute ? "" : "/",
                     c->file, c->line);
}

/* Returns whether the outermost function is one of gort's own. */
static bool describe(struct gort__os_source *source, uintptr_t pc, char *to, size_t size)
{
    struct gort__os_source_place p;
    size_t n = 0;
    if (!source) { /* no memory */
        n = gort__fmt(to, size, "    ");
        n += gort__os_symbol(pc, to + n, size - n);
        gort__fmt(to + n, size - n, "\n");
        return starts(to, "    gort__");
    }
    gort__os_source_find(source, pc, &p);
    for (int i = 0; i < p.n; i++) {
        if (i < p.n - 1 && is_ours(&p.call[i]))
            continue;
        n += describe_one(&p, i, to + n, size - n);
        n += gort__fmt(to + n, size - n, i < p.n - 1 ? " (inlined)\n" : " ");
    }
    gort__fmt(to + n, size - n, p.n ? "(%s+0x%lx)\n" : "    %s+0x%lx\n", p.module ? p.module : "?",
              (unsigned long)(p.module ? p.address : pc));
    return p.n && is_ours(&p.call[p.n - 1]);
}

static const struct name *name_of(struct report *r, uintptr_t pc)
{
    char text[WHERE];
    struct name **list = r->names ? &r->names[pc * UINT64_C(0x9e3779b97f4a7c15) >> 52] : NULL;
    for (struct name *n = list ? *list : NULL; n; n = n->next)
        if (n->pc == pc)
            return n;
    if (!list)
        return NULL;
    bool inner = describe(r->source, pc, text, sizeof text);
    size_t size = strlen(text) + 1;
    struct name *n = gort__arena_get(&r->arena, sizeof *n + size);
    if (n) {
        memcpy(n->text, text, size);
        n->pc = pc;
        n->inner = inner;
        n->next = *list;
        *list = n;
    }
    return n;
}

static void print_call(struct report *r, uintptr_t pc)
{
    const struct name *n = name_of(r, pc);
    char text[WHERE];
    if (!n)
        describe(r->source, pc, text, sizeof text);
    put(r, n ? n->text : text);
}

static bool is_inner(struct report *r, uintptr_t pc)
{
    const struct name *n = name_of(r, pc);
    return n && n->inner;
}

static void print_calls(struct report *r, const struct group *g)
{
    uint32_t from = 0, to = g->calls;
    while (from + 1 < to && is_inner(r, g->pc[from]))
        from++;
    while (to > from + 1 && is_inner(r, g->pc[to - 1]))
        to--;
    for (uint32_t i = from; i < to; i++) {
        if (i == GORT__STACK_INNER && g->elided)
            print(r, "    ... %u more calls ...\n", g->elided);
        print_call(r, g->pc[i]);
    }
    if (g->said == GORT__STACKS_FRESH)
        print(r, "    (has not run yet)\n");
    else if (g->said == GORT__STACKS_MOVED)
        print(r, "    (went on meanwhile)\n");
    else if (g->said == GORT__STACKS_SILENT)
        print(r, "    (its thread runs and does not answer the signal)\n");
    else if (g->end == GORT__STACK_LOST)
        print(r, "    (its callers are not known: code without unwind tables)\n");
    else if (g->end == GORT__STACK_DEEP)
        print(r, "    (and more)\n");
    if (g->site) {
        print(r, "  created by\n");
        print_call(r, (uintptr_t)g->site - 1);
    }
}

/* --- goroutines ---------------------------------------------------------------------------------- */

/* ", waits for 3.2 s to 14 s for mutex 0x5581e0" */
static void print_wait(struct report *r, const struct group *group, int64_t first, int64_t last,
                       const void *object)
{
    char text[128], time[32], until[32];
    if (group->state != GORT_G_WAITING)
        return;
    size_t n = gort__object_describe((enum gort__reason)group->reason, object, text, sizeof text);
    if (first) {
        gort__object_time(r->now - first, time, sizeof time);
        gort__object_time(r->now - last, until, sizeof until);
        bool range = strcmp(time, until) != 0;
        print(r, ", waits for %s%s%s", range ? until : time, range ? " to " : "", range ? time : "");
    }
    if (n)
        print(r, ", %s", text);
}

static void print_one(struct report *r, const struct group *group, const struct gort__g *g, int64_t since,
                      const void *object)
{
    char line[352];
    gort__dump_line(g, group->state, group->reason, line, sizeof line);
    print(r, "%s", line);
    print_wait(r, group, since, since, object);
    print(r, "\n");
}

/* "12-4000, 4003" */
static void print_numbers(struct report *r, const struct group *g)
{
    uint64_t ranges = 0, listed = 0;
    for (const struct member *m = g->first; m && ranges < RANGES; ranges++) {
        uint64_t from = m->id, to = from;
        for (m = m->next, listed++; m && m->id == to + 1; m = m->next, listed++)
            to++;
        print(r, "%s%lu", ranges ? ", " : " ", (unsigned long)from);
        if (to > from)
            print(r, "-%lu", (unsigned long)to);
    }
    if (listed < g->n)
        print(r, " and %lu more", (unsigned long)(g->n - listed));
}

/* What is true of all of a group. */
static void print_waits(struct report *r, const struct group *g)
{
    int64_t first = g->first->since, last = first;
    const void *object = g->first->object;
    for (const struct member *m = g->first; m; m = m->next) {
        first = !m->since || m->since < first ? m->since : first;
        last = m->since > last ? m->since : last;
        object = m->object == object ? object : NULL;
    }
    print_wait(r, g, first, last, object);
}

static void print_group(struct report *r, const struct group *g)
{
    char text[WHERE];
    if (g->n <= LISTED) {
        for (const struct member *m = g->first; m; m = m->next)
            print_one(r, g, m->g, m->since, m->object);
    } else {
        print(r, "%lu goroutines [%s", (unsigned long)g->n, gort__state_name((enum gort__gstate)g->state));
        if (g->state == GORT_G_WAITING && g->reason)
            print(r, ": %s", gort__state_reason_name((enum gort__reason)g->reason));
        gort__os_symbol((uintptr_t)g->fn, text, sizeof text);
        print(r, "], runs %s", text);
        print_waits(r, g);
        print(r, ":");
        print_numbers(r, g);
        print(r, "\n");
    }
    print_calls(r, g);
    print(r, "\n");
}

/* --- the first pass ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

static bool same(const struct group *a, const struct group *b, const struct gort__stack_calls *calls)
{
    if (a->hash != b->hash || a->state != b->state || a->reason != b->reason || a->said != b->said ||
        a->fn != b->fn || a->site != b->site || a->main != b->main || a->calls != calls->n ||
        a->elided != calls->elided)
        return false;
    for (uint32_t i = 0; i < calls->n; i++)
        if (a->pc[i] != calls->pc[i])
            return false;
    return true;
}

/* The group that is described by `like` and calls; made if there is none. NULL: no memory. */
static struct group *group_of(struct report *r, const struct group *like,
                              const struct gort__stack_calls *calls)
{
    struct group **list = r->table ? &r->table[like->hash % TABLE] : NULL;
    for (struct group *g = list ? *list : NULL; g; g = g->next)
        if (same(g, like, calls))
            return g;
    struct group *g = list ? gort__arena_get(&r->arena, sizeof *g + calls->n * sizeof g->pc[0]) : NULL;
    if (!g)
        return NULL;
    *g = *like;
    g->calls = calls->n;
    g->elided = calls->elided;
    g->end = calls->end;
    g->last = &g->first;
    for (uint32_t i = 0; i < calls->n; i++)
        g->pc[i] = calls->pc[i];
    g->next = *list;
    *list = g;
    r->groups++;
    return g;
}

/* A plain read, because ThreadSanitizer looks at atomic ones in here too. */
static GORT_NO_TSAN void (*function_of(const struct gort__g *g))(void)
{
    return ((const volatile struct gort__g *)g)->fn;
}

static void see(struct report *r, const struct gort__g *g)
{
    struct gort__stack_calls calls;
    struct group like = {.state = gort__load(&g->state, RELAXED), .reason = gort__load(&g->reason, RELAXED)};
    if (like.state == GORT_G_IDLE || like.state == GORT_G_DEAD)
        return;
    bool waits = like.state == GORT_G_WAITING;
    int64_t since = waits ? gort__object_since(g) : 0;
    const void *object = waits ? gort__object_of(g) : NULL;
    calls.n = calls.elided = calls.end = 0;
    like.said = (uint8_t)gort__stacks_take(&r->stacks, g, &calls);
    if (like.said != GORT__STACKS_KNOWN)
        calls.n = calls.elided = 0;
    if (like.state != GORT_G_WAITING)
        like.reason = 0;
    like.fn = function_of(g);
    like.site = gort__stacks_site(g);
    like.main = gort__load(&g->flags, RELAXED) & GORT_G_MAIN;
    like.hash = mix(mix(mix(1, like.state * 256u + like.reason), (uintptr_t)like.fn),
                    like.said + (uintptr_t)like.site);
    for (uint32_t i = 0; i < calls.n; i++)
        like.hash = mix(like.hash, calls.pc[i]);
    struct group *group = group_of(r, &like, &calls);
    struct member *m = group ? gort__arena_get(&r->arena, sizeof *m) : NULL;
    if (m) {
        m->g = g;
        m->id = gort__load(&g->id, RELAXED);
        m->since = since;
        m->object = object;
        *group->last = m;
        group->last = &m->next;
        group->n++;
        return;
    }
    print_one(r, &like, g, since, object); /* no memory to remember it */
    for (uint32_t i = 0; i < calls.n; i++)
        print_call(r, calls.pc[i]);
    if (like.site)
        print_call(r, (uintptr_t)like.site - 1);
}

static void see_all(struct report *r)
{
    /* Pairs with slab.c: chunks and what was carved from them. */
    for (struct gort__chunk *c = gort__load(&gort__sched.gs.chunks, ACQUIRE); c; c = c->next) {
        char *end = gort__load(&c->carved, ACQUIRE);
        for (char *at = c->first; at < end; at += sizeof(struct gort__g))
            see(r, (const struct gort__g *)(const void *)at);
    }
}

/* --- the second pass ----------------------------------------------------------------------------- */

/* a is shown before b. */
static bool before(const struct group *a, const struct group *b)
{
    if (a->main != b->main)
        return a->main;
    return a->n != b->n ? a->n < b->n : a->first->id < b->first->id;
}

/* Puts the part of a heap whose root `at` may be out of place in its place; the last group to be shown is on
 * top. */
static void sift(struct group **heap, uint64_t n, uint64_t at)
{
    struct group *one = heap[at];
    for (uint64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && before(heap[child], heap[child + 1]);
        if (!before(one, heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = one;
}

static void sort(struct group **list, uint64_t n)
{
    for (uint64_t i = n / 2; i-- > 0;)
        sift(list, n, i);
    for (uint64_t i = n; i-- > 1;) {
        struct group *last = list[i];
        list[i] = list[0];
        list[0] = last;
        sift(list, i, 0);
    }
}

static void show(struct report *r)
{
    struct group **all = r->groups ? gort__arena_get(&r->arena, r->groups * sizeof *all) : NULL;
    uint64_t n = 0;
    for (size_t i = 0; r->table && i < TABLE; i++)
        for (struct group *g = r->table[i]; g; g = g->next) {
            if (!g->n)
                continue;
            if (all)
                all[n++] = g;
            else
                print_group(r, g);
        }
    sort(all, n);
    for (uint64_t i = 0; i < n; i++)
        print_group(r, all[i]);
}

static void begin(struct report *r, int fd)
{
    r->fd = fd;
    r->now = gort__os_now();
    r->arena = (struct gort__arena){0};
    r->filled = 0;
    r->groups = 0;
    r->table = gort__arena_get(&r->arena, TABLE * sizeof *r->table);
    r->names = gort__arena_get(&r->arena, CALLS * sizeof *r->names);
    r->source = gort__arena_get(&r->arena, gort__os_source_size());
}

static void end(struct report *r)
{
    flush(r);
    if (r->source)
        gort__os_source_end(r->source);
    gort__arena_end(&r->arena);
}

void gort__report_calls(int fd, const struct gort__stack_calls *calls, const void *site)
{
    struct report r;
    struct group like = {.said = GORT__STACKS_KNOWN, .site = site};
    begin(&r, fd);
    struct group *g = group_of(&r, &like, calls);
    if (g)
        print_calls(&r, g);
    for (uint32_t i = 0; !g && i < calls->n; i++)
        print_call(&r, calls->pc[i]);
    end(&r);
}

void gort__report_goroutines(int fd, const void *caller)
{
    struct gort__stack_calls here;
    struct report r;
    begin(&r, fd);
    gort__stacks_begin(&r.stacks, &here, caller);
    print(&r, "\n");
    see_all(&r);
    show(&r);
    end(&r);
}

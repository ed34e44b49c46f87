/* SPDX-License-Identifier: MIT */
/*
 * dump.c - one line a goroutine: for gort_dump, SIGQUIT, and every fatal error.
 *
 * Why: it is called at the worst moments, so it takes no lock and allocates nothing. Records are
 * type-stable, so walking the slabs is safe while goroutines start and end; a line may be out of
 * date by the time it is written, but it is never garbage.
 * Threads: anybody, signal handlers included.
 */
#include "base/fatal.h"
#include "base/fmt.h"
#include "observe/observe.h"

static GORT_NO_TSAN size_t copy_name(const struct gort__g *g, char *buf)
{
    const char *name = gort__extra_name(g);
    size_t n = 0;
    for (char c; n < GORT_NAME_SIZE - 1 && (c = gort__load(&name[n], RELAXED)) != '\0'; n++)
        buf[n] = c < ' ' ? '?' : c;
    buf[n] = '\0';
    return n;
}

/*
 * Names of functions that goroutines were started with. To find one means opening files, so those of the
 * first few functions are kept for good: an entry belongs to whoever put its function there, who stores
 * `ready` last. Whoever finds an entry that is not ready (a signal handler may have interrupted its owner)
 * looks for itself.
 */
#define NAMES 64u
static struct {
    void (*fn)(void); /* atomic; NULL: free; changes once */
    bool ready;       /* atomic */
    char text[96];
} names[NAMES];

static const char *function_name(void (*fn)(void), char *buf, size_t size)
{
    size_t at = ((uintptr_t)fn >> 4) * 31 % NAMES;
    for (size_t tries = 0; tries < 8; tries++, at = (at + 1) % NAMES) {
        void (*free_entry)(void) = NULL;
        void (*owner)(void) = gort__load(&names[at].fn, RELAXED);
        if (owner == fn && gort__load(&names[at].ready, ACQUIRE)) /* pairs with the store below */
            return names[at].text;
        if (!owner && gort__cas(&names[at].fn, &free_entry, fn, RELAXED)) {
            gort__os_symbol((uintptr_t)fn, names[at].text, sizeof names[at].text);
            gort__store(&names[at].ready, true, RELEASE); /* pairs with the load above */
            return names[at].text;
        }
    }
    gort__os_symbol((uintptr_t)fn, buf, size);
    return buf;
}

/* What g was started with; NULL for main, whose is one of ours. The record may be reused meanwhile: then it
 * is the next one's. A plain read, because ThreadSanitizer looks at atomic ones in here too. */
static GORT_NO_TSAN void (*function_of(const struct gort__g *g))(void)
{
    const volatile struct gort__g *now = g;
    return now->id == 1 ? NULL : now->fn;
}

static void print_g(int fd, const struct gort__g *g)
{
    char line[352], name[96];
    enum gort__gstate state = (enum gort__gstate)gort__load(&g->state, RELAXED);
    enum gort__reason reason = (enum gort__reason)gort__load(&g->reason, RELAXED);
    if (state == GORT_G_IDLE || state == GORT_G_DEAD)
        return;
    size_t n = gort__dump_name(g, line, sizeof line);
    n += gort__fmt(line + n, sizeof line - n, " [%s", gort__state_name(state));
    if (state == GORT_G_WAITING && reason)
        n += gort__fmt(line + n, sizeof line - n, ": %s", gort__state_reason_name(reason));
    struct gort__m *m = gort__load(&g->m,
                                   ACQUIRE); /* pairs with schedule.c; records stay for the whole run */
    if (state == GORT_G_RUNNING && m)
        n += gort__fmt(line + n, sizeof line - n, ", thread %d", gort__load(&m->tid, RELAXED));
    if (gort__load(&g->lock_depth, RELAXED)) /* GORT_G_BOUND: also while it is preempted */
        n += gort__fmt(line + n, sizeof line - n, ", locked to thread");
    uint64_t parent = gort__load(&g->parent, RELAXED);
    n += gort__fmt(line + n, sizeof line - n, "]");
    if (parent)
        n += gort__fmt(line + n, sizeof line - n, " created by goroutine %lu", (unsigned long)parent);
    /* The page tables say how deep it ever went, or whoever had the stack before it. */
    const struct gort__stack *stack = gort__load(&g->stack, ACQUIRE); /* pairs with whoever gave it one */
    size_t used = stack ? gort__stack_depth(stack) : 0;
    if (used)
        n += gort__fmt(line + n, sizeof line - n, ", stack %zuK of %zuK", used >> 10,
                       ((size_t)1 << stack->log2) >> 10);
    void (*fn)(void) = function_of(g);
    const char *function = fn ? function_name(fn, name, sizeof name) : "";
    if (function[0])
        n += gort__fmt(line + n, sizeof line - n, ", runs %s", function);
    n += gort__fmt(line + n, sizeof line - n, "\n");
    gort__fmt_write(fd, line, n);
}

void gort_dump(int fd)
{
    struct gort__sched *s = &gort__sched;
    unsigned long shown = 0;
    gort__add(&s->dumpers, 1, SEQ_CST);                    /* pairs with run.c:wait_for_dumpers */
    if (gort__load(&s->phase, SEQ_CST) != GORT_PHASE_ON) { /* pairs with run.c:wait_for_dumpers */
        gort__fmt_print(fd, "gort: no run is on\n");
        gort__sub(&s->dumpers, 1, RELEASE); /* pairs with run.c:wait_for_dumpers */
        return;
    }
    gort__fmt_print(
        fd,
        "gort: %lu goroutines, maxprocs %d, %u Ps idle, %u threads looking for work, %u goroutines in the global "
        "queue\n",
        (unsigned long)gort__g_count(), gort__load(&s->procs, RELAXED), gort__load(&s->idle_count, RELAXED),
        gort__load(&s->spinning, RELAXED),
        gort__load(&s->global.n, RELAXED) + gort__load(&s->events.n, RELAXED));
    unsigned waiting = gort__load(&s->line.n, RELAXED);
    unsigned left = gort__load(&s->limit.no_m, RELAXED) ? gort__load(&s->idle_count, RELAXED) : 0;
    gort__fmt_print(fd, "gort: %d threads of at most %d, %u goroutines and %u Ps wait for a thread\n",
                    gort__load(&s->ms.n, RELAXED), s->conf.max_threads, waiting, left);
    /* Pairs with slab.c: chunks and what was carved from them. */
    for (struct gort__chunk *c = gort__load(&s->gs.chunks, ACQUIRE); c; c = c->next) {
        char *end = gort__load(&c->carved, ACQUIRE);
        for (char *at = c->first; at < end; at += sizeof(struct gort__g)) {
            const struct gort__g *g = (const struct gort__g *)(const void *)at;
            uint8_t state = gort__load(&g->state, RELAXED);
            if (state == GORT_G_IDLE || state == GORT_G_DEAD)
                continue;
            if (++shown <= 1000)
                print_g(fd, g);
        }
    }
    if (shown > 1000)
        gort__fmt_print(fd, "... and %lu more\n", shown - 1000);
    gort__sub(&s->dumpers, 1, RELEASE); /* pairs with run.c:wait_for_dumpers */
}

size_t gort__dump_name(const struct gort__g *g, char *buf, size_t size)
{
    char name[GORT_NAME_SIZE];
    size_t n = gort__fmt(buf, size, "goroutine %lu", (unsigned long)gort__load(&g->id, RELAXED));
    if (copy_name(g, name))
        n += gort__fmt(buf + n, size - n, " (%s)", name);
    return n;
}

size_t gort__dump_who(char *buf, size_t size)
{
    struct gort__m *m = gort__m_self();
    return !m || (m->g->flags & GORT_G_THREAD) ? 0 : gort__dump_name(m->g, buf, size);
}

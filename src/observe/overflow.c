/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - a goroutine, a thread of ours or a signal handler has run over the end of its stack: says so.
 *
 * Why so much care: a stack overflow looks like any other crash, at a place that is innocent. The report
 * names who, how large the stack was, where it stood and who called whom, and what to change.
 * What counts as ours: memory above the stack pointer is in use and so has to be there. If the address that
 * faulted lies at or above it (or a little below, for what a call is about to push), the stack pointer itself
 * has left its stack. A wild pointer into a guard does not look like that, and is passed on as any other
 * fault.
 *
 *     guard of the goroutine's slot     it used up its stack
 *     elsewhere among our slots         one frame was larger than the guard and went past it
 *     guard of the alternate stack      a signal handler used up that one
 *     near the end of the thread's own stack, on which the function of gort_block or the scheduler runs
 *                                       that one is used up
 *
 * A goroutine may also stand on a stack that is not ours (a coroutine of the program), above or below its
 * own. Faults there, the guard of that stack included, are passed on.
 *
 * A frame that is larger than the guard, in code compiled without -fstack-clash-protection, may land in the
 * next slot without touching a guard; nothing can be seen of that (docs/GUIDE.md, "Stacks").
 * Threads: the handler on any thread of ours; the first one reports, the others wait for the end.
 */
#include "base/fatal.h"
#include "base/fmt.h"
#include "observe/observe.h"

#define BELOW 1024 /* a call, or the first store of a frame, may be that far below the stack pointer */
#define ABOVE ((uintptr_t)64 << 10)
#define FIRST 24 /* runs of frames that are shown from the inside, */
#define LAST  8  /* and from the outside */
#define MOST  200000

static int reporter; /* the thread that reports; atomic, 0: none */

/* Frames at the same place in a row, as recursion makes them. */
struct run {
    uintptr_t pc;
    size_t first, n;
};

struct trace {
    size_t frames, runs; /* seen so far */
    struct run now;      /* the run that may go on */
    struct run last[LAST];
};

static void print_run(const struct run *r)
{
    char symbol[256];
    gort__os_symbol(r->pc, symbol, sizeof symbol);
    gort__fmt_print(2, "    #%zu %p %s\n", r->first, (void *)r->pc, symbol);
    if (r->n > 1)
        gort__fmt_print(2, "    ... and %zu more times\n", r->n - 1);
}

static void end_run(struct trace *t)
{
    if (t->runs < FIRST)
        print_run(&t->now);
    else
        t->last[t->runs % LAST] = t->now;
    t->runs++;
}

static bool on_frame(uintptr_t pc, void *arg)
{
    struct trace *t = arg;
    if (t->frames && pc == t->now.pc) {
        t->now.n++;
    } else {
        if (t->frames)
            end_run(t);
        t->now = (struct run){pc, t->frames, 1};
    }
    return ++t->frames < MOST;
}

static void print_trace(const struct gort__os_fault *f)
{
    struct trace t = {0};
    gort__fmt_print(2, "calls, the innermost first:\n");
    gort__os_backtrace(f, on_frame, &t);
    end_run(&t);
    size_t at = t.runs > FIRST + LAST ? t.runs - LAST : FIRST;
    if (at > FIRST)
        gort__fmt_print(2, "    ...\n");
    for (; at < t.runs; at++)
        print_run(&t.last[at % LAST]);
}

/* "goroutine 7 (worker)" */
static void print_head(struct gort__g *g)
{
    char who[96];
    gort__dump_name(g, who, sizeof who);
    gort__fmt_print(2, "gort: fatal: stack overflow in %s\n", who);
}

static void print_size(struct gort__g *g, const char *what)
{
    struct gort__stack *s = g->stack;
    size_t usable = (size_t)(gort__stack_hi(s) - gort__stack_lo(s));
    gort__fmt_print(2, "%s: %zu KiB, of which %zu are the guard\n", what, ((size_t)1 << s->log2) >> 10,
                    (((size_t)1 << s->log2) - usable) >> 10);
}

static void print_advice(struct gort__g *g)
{
    if (g->flags & GORT_G_MAIN)
        gort__fmt_print(
            2, "what to change: run the deep part in a goroutine with a larger gort_attr.stack_size (up to "
               "1 GiB), or set GORT_STACK to more than 8M\n");
    else
        gort__fmt_print(
            2,
            "what to change: start it with a larger gort_attr.stack_size (up to 1 GiB), or set "
            "gort_config.stack_size or GORT_STACK=%zuK for all; memory is used only as it is touched\n",
            ((size_t)2 << g->stack->log2) >> 10);
}

static void report_goroutine(struct gort__g *g, const struct gort__os_fault *f)
{
    struct gort__stack *s = g->stack;
    char *lo = gort__stack_lo(s), *sp = (char *)f->sp;
    bool jumped = sp < s->base || sp >= gort__stack_hi(s);
    print_head(g);
    print_size(g, jumped ? "the frame of one function went past the guard of its stack"
                         : "it used up its stack");
    gort__fmt_print(2, "stack %p to %p, stack pointer %p, address %p\n", (void *)lo,
                    (void *)gort__stack_hi(s), (void *)sp, (void *)f->addr);
    print_advice(g);
}

/* The goroutine on whose behalf the thread's own stack or a handler runs; NULL: none. */
static struct gort__g *goroutine_of(struct gort__m *m)
{
    struct gort__g *g = gort__load(&m->g, RELAXED);
    return g != &m->g0 ? g : m->block_g;
}

static void report_thread(struct gort__m *m, const struct gort__os_fault *f, const char *what,
                          const char *advice)
{
    struct gort__g *g = goroutine_of(m);
    char who[96] = "the scheduler";
    if (g)
        gort__dump_name(g, who, sizeof who);
    gort__fmt_print(2, "gort: fatal: stack overflow in %s of thread %d, which ran %s\n", what,
                    gort__load(&m->tid, RELAXED), who);
    gort__fmt_print(2, "stack pointer %p, address %p\nwhat to change: %s\n", (void *)f->sp, (void *)f->addr,
                    advice);
}

/*
 * Whether the stack pointer has left g's stack downwards. Then it lies in a slot of ours; or below all of
 * them, if the slot is the lowest one. Anywhere else it is on a stack of the program's, and the address comes
 * from a wild pointer.
 */
static bool has_left(const struct gort__g *g, const struct gort__os_fault *f)
{
    const struct gort__stack *s = gort__stack_at((void *)f->addr);
    if (!s || (s == g->stack && f->addr >= (uintptr_t)gort__stack_lo(s)))
        return false;
    return gort__stack_at((void *)f->sp) || (s == g->stack && f->sp < (uintptr_t)s->base);
}

/* One of several threads goes on; the others, and a fault in the report itself, do not come back. */
static void begin(const struct gort__os_fault *f)
{
    int nobody = 0, me = gort__os_thread_id();
    if (gort__cas(&reporter, &nobody, me, RELAXED))
        return;
    if (nobody == me) {
        gort__fmt_print(2, "    ... (the rest cannot be read)\n");
        gort__os_fault_die(f);
    }
    for (;;)
        gort__os_nap(INT64_C(1000000000));
}

static void finish(const struct gort__os_fault *f)
{
    print_trace(f);
    gort__os_fault_die(f);
}

static void on_fault(const struct gort__os_fault *f)
{
    struct gort__m *m = gort__m_home();
    if (!m)
        return;
    if (gort__load(&reporter, RELAXED) == gort__os_thread_id())
        begin(f);
    if (f->addr + BELOW < f->sp)
        return;
    size_t size, guard;
    uintptr_t alt = (uintptr_t)gort__m_altstack(m, &size, &guard);
    if (f->addr < alt && f->addr >= alt - guard) {
        begin(f);
        report_thread(
            m, f, "a signal handler",
            "handlers on the alternate stack have 64 KiB; do less in them, or install the handler without SA_ONSTACK");
        finish(f);
    }
    struct gort__g *g = goroutine_of(m);
    if (g && g->stack && has_left(g, f)) {
        begin(f);
        report_goroutine(g, f);
        finish(f);
    }
    bool own = m->g == &m->g0 && (!m->block_g || m->block.on_g0) && !m->plain;
    if (own && gort__m_own_stack(m, f->sp) && f->addr < f->sp + ABOVE) {
        begin(f);
        report_thread(
            m, f, "the own stack",
            "code in gort_block runs on the thread's stack: raise ulimit -s before the program starts");
        finish(f);
    }
}

void gort__overflow_check(struct gort__g *g)
{
    if (!g->stack || gort__stack_intact(g->stack))
        return;
    print_head(g);
    print_size(g, "it wrote past the end of its stack, which has no guard to stop it");
    print_advice(g);
    gort__fatal("this overflow may have overwritten the memory of another goroutine");
}

void gort__overflow_init(void)
{
    gort__os_fault_take(on_fault);
}

void gort__overflow_end(void)
{
    gort__os_fault_give_back();
}

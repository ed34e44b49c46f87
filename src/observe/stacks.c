/* SPDX-License-Identifier: MIT */
/*
 * stacks.c - the calls of a goroutine, whatever it does.
 *
 * Where it stands depends on who has it:
 *     parked, runnable        in its record: the switch has left stack pointer, frame pointer and program counter there
 *     preempted               in the handler that it waits in, which has the registers of what the signal met
 *     runs, here              the callers of whoever asks; if that is a signal handler, what it met
 *     in a system call        its thread sleeps: /proc tells where. Nothing is sent to it: that would cut some calls short
 *     runs, elsewhere         its thread is asked by our signal, from the timer on its CPU clock, and walks its own stack
 *     gort_block              the function on the thread's own stack, and below it the goroutine's record
 * Nothing is locked or stopped for that, because a report is wanted when locks are taken and nobody moves. So
 * a goroutine may go on while its stack is read: that is in no danger, and it is seen in its record
 * afterwards. A thread that does not answer in time is left alone; all of a report waits for a third of a
 * second at most.
 * Invariants: one thread is asked at a time (`question`); who answers writes `answer` between ANSWERING and
 * ANSWERED only, and the one who asks reads it after that.
 * Threads: any, signal handlers included. Takes no lock, allocates nothing.
 */
#include "observe/stacks.h"

#define PATIENCE INT64_C(300000000) /* ns, for a whole report */
#define EACH     INT64_C(60000000)  /* ns, for a thread: its clock may tick each 10 ms only */
#define SPIN_NAP INT64_C(50000)

enum { FREE, ASKING, ASKED, ANSWERING, ANSWERED };
static struct {
    uint32_t state;                  /* atomic */
    struct gort__m *whom;            /* written in ASKING */
    struct gort__stack_calls answer; /* written in ANSWERING */
} question;

static uintptr_t top_of(uintptr_t sp)
{
    const struct gort__stack *s = gort__stack_at((void *)sp);
    if (!s)
        return gort__os_walk_readable(sp);
    return gort__stack_holds(s, (void *)sp) ? (uintptr_t)gort__stack_hi(s) : 0;
}

/* --- a suspended one --------------------------------------------------------------------------- */

/* TSan looks at no hints. */
static GORT_NO_TSAN void read_context(const struct gort__g *g, struct gort__ctx *ctx)
{
    const volatile struct gort__ctx *now = &g->ctx;
    ctx->sp = now->sp;
    ctx->pc = now->pc;
    ctx->fp = now->fp;
}

static enum gort__stacks_said from_record(const struct gort__g *g, struct gort__stack_calls *out)
{
    struct gort__ctx ctx, after;
    uint64_t id = gort__load(&g->id, RELAXED);
    const struct gort__stack *stack = gort__load(&g->stack, ACQUIRE); /* pairs with whoever gave it one */
    read_context(g, &ctx);
    if (!stack || !ctx.pc)
        return GORT__STACKS_FRESH;
    uintptr_t hi = gort__stack_holds(stack, ctx.sp) ? (uintptr_t)gort__stack_hi(stack) : 0;
    gort__os_walk_at((uintptr_t)ctx.pc, (uintptr_t)ctx.sp, (uintptr_t)ctx.fp, hi, top_of, out);
    read_context(g, &after);
    bool same = ctx.sp == after.sp && ctx.pc == after.pc && id == gort__load(&g->id, RELAXED);
    return same ? GORT__STACKS_KNOWN : GORT__STACKS_MOVED;
}

/* Not looked at by ASan either: a goroutine that has ended may have left anything there. */
static GORT_NO_TSAN __attribute__((no_sanitize("address"))) const void *word_at(const char *at)
{
    return *(void *const volatile *)(const void *)at;
}

/* In its record before it runs; then on top of its stack, where arch_make has put it. */
const void *gort__stacks_site(const struct gort__g *g)
{
    struct gort__ctx ctx;
    const struct gort__stack *stack = gort__load(&g->stack, ACQUIRE); /* pairs with whoever gave it one */
    read_context(g, &ctx);
    return !ctx.pc ? ctx.fp : stack ? word_at(gort__stack_top(stack) - sizeof(void *)) : NULL;
}

/* --- a running one ------------------------------------------------------------------------------ */

/* In our signal's handler. */
static void answer(struct gort__m *m, const struct gort__os_signal *s)
{
    uint32_t asked = ASKED;
    if (gort__load(&question.state, ACQUIRE) != ASKED || question.whom != m) /* pairs with ask */
        return;
    if (!gort__cas(&question.state, &asked, ANSWERING, ACQUIRE)) /* pairs with ask */
        return;
    gort__os_walk_signal(s->context, top_of, &question.answer);
    gort__store(&question.state, ANSWERED, RELEASE); /* pairs with ask */
}

/* The goroutine whose code the thread runs, also on the thread's own stack. */
static struct gort__g *runs_on(struct gort__m *m)
{
    struct gort__g *g = gort__load(&m->g, ACQUIRE); /* pairs with schedule.c */
    if (!g || g == &m->g0)
        g = gort__load(&m->block_g, RELAXED);
    return g;
}

/* A goroutine that was seen on a thread, and how often its P had switched then. */
struct sight {
    struct gort__m *m;
    const struct gort__g *g;
    const struct gort__p *p;
    uint64_t id, switches;
};

static struct sight look(struct gort__m *m, const struct gort__g *g)
{
    const struct gort__p *p = gort__load(&m->p, RELAXED);
    return (struct sight){m, g, p, gort__load(&g->id, RELAXED), p ? gort__load(&p->switches, RELAXED) : 0};
}

/* It has not left the thread since. Who comes and goes need not be asked: there is always another one. */
static bool still(const struct sight *then)
{
    struct sight now = look(then->m, then->g);
    return runs_on(then->m) == then->g && now.id == then->id && now.p == then->p &&
           now.switches == then->switches;
}

/* Until the question is in that state. False: it is late, or the goroutine has gone on. */
static bool wait_for(uint32_t state, int64_t until, const struct sight *s)
{
    while (gort__load(&question.state, ACQUIRE) != state) { /* pairs with answer */
        if (gort__os_now() > until || (s && !still(s)))
            return false;
        gort__os_nap(SPIN_NAP);
    }
    return true;
}

static bool ask(struct gort__stacks *s, const struct sight *sight, struct gort__stack_calls *out)
{
    int64_t from = gort__os_now(), until = from + (s->budget < EACH ? s->budget : EACH);
    uint32_t state = FREE;
    bool answered = false;
    if (GORT_TSAN || s->budget <= 0) /* TSan keeps signals back */
        return false;
    bool mine = false;
    while (still(sight) && gort__os_now() < until) {
        state = FREE;
        mine = gort__cas(&question.state, &state, ASKING, ACQUIRE); /* pairs with whoever asked before */
        if (mine)
            break;
        gort__os_nap(SPIN_NAP);
    }
    if (mine) {
        question.whom = sight->m;
        gort__store(&gort__preempt_look, answer, RELAXED);
        gort__store(&question.state, ASKED, RELEASE); /* pairs with answer */
        gort__preempt_poke(sight->m);
        answered = wait_for(ANSWERED, until, sight);
        state = ASKED;
        if (!answered && !gort__cas(&question.state, &state, FREE, RELAXED))
            answered = wait_for(ANSWERED, until + EACH,
                                NULL); /* it is at it; else the question stays taken */
        if (answered) {
            *out = question.answer;
            gort__store(&question.state, FREE, RELEASE); /* pairs with the next one to ask */
        }
    }
    s->budget -= gort__os_now() - from;
    return answered;
}

/* What m's thread does. */
static enum gort__stacks_said from_thread(struct gort__stacks *s, struct gort__m *m, const struct gort__g *g,
                                          struct gort__stack_calls *out)
{
    int tid = gort__load(&m->tid, RELAXED);
    struct sight sight = look(m, g);
    /* Pairs with preempt.c. */
    const void *met = gort__load(&m->preempt.in_handler, ACQUIRE) ? gort__load(&m->preempt.met, RELAXED)
                                                                  : NULL;
    if (met) {
        gort__os_walk_signal(met, top_of, out);
        return gort__load(&m->preempt.in_handler, ACQUIRE) ? GORT__STACKS_KNOWN /* pairs with preempt.c */
                                                           : GORT__STACKS_MOVED;
    }
    if (tid && gort__os_walk_task(tid, top_of, out))
        return GORT__STACKS_KNOWN;
    if (tid && still(&sight))
        gort__os_nap(SPIN_NAP);
    if (!still(&sight))
        return GORT__STACKS_MOVED;
    if (tid && ask(s, &sight, out))
        return GORT__STACKS_KNOWN;
    return still(&sight) ? GORT__STACKS_SILENT : GORT__STACKS_MOVED;
}

/* Puts what it did before it called gort_block below the function that it gave. */
static void append(struct gort__stack_calls *out, const struct gort__stack_calls *more)
{
    for (uint32_t i = 0; i < out->n && !out->elided; i++)
        if (gort__os_walk_in(out->pc[i], (uintptr_t)gort__block_call_run))
            out->n = i;
    for (uint32_t i = more->n > 1; i < more->n && out->n < GORT__STACK_MOST; i++) /* 0: the switch */
        out->pc[out->n++] = more->pc[i];
    out->end = more->end;
}

void gort__stacks_begin(struct gort__stacks *s, struct gort__stack_calls *here, const void *caller)
{
    struct gort__m *m = gort__m_home();
    const struct gort__g *g = m && !m->plain ? runs_on(m) : NULL;
    *s = (struct gort__stacks){.self = g, .here = here, .budget = PATIENCE};
    gort__os_walk_prepare();
    if (!g)
        return;
    gort__os_walk_here(top_of, here);
    for (uint32_t i = 0; i < here->n && i < 16; i++)
        if (here->pc[i] == (uintptr_t)caller - 1) {
            for (uint32_t k = i; k < here->n; k++)
                here->pc[k - i] = here->pc[k];
            here->n -= i;
            break;
        }
}

const struct gort__g *gort__stacks_signal(struct gort__m *m, const void *context,
                                          struct gort__stack_calls *out)
{
    const struct gort__g *g = runs_on(m);
    struct gort__stack_calls below;
    if (!g)
        return NULL;
    gort__os_walk_prepare();
    gort__os_walk_signal(context, top_of, out);
    if (gort__load(&m->block.on_g0, RELAXED) && from_record(g, &below) == GORT__STACKS_KNOWN)
        append(out, &below);
    return g;
}

enum gort__stacks_said gort__stacks_take(struct gort__stacks *s, const struct gort__g *g,
                                         struct gort__stack_calls *out)
{
    struct gort__m *m = gort__load(&g->m,
                                   ACQUIRE); /* pairs with schedule.c; records stay for the whole run */
    enum gort__stacks_said said;
    struct gort__stack_calls below;
    if (!m || runs_on(m) != g)
        return from_record(g, out);
    bool on_g0 = gort__load(&m->block.on_g0, RELAXED) && gort__load(&m->block_g, RELAXED) == g;
    if (g == s->self) {
        *out = *s->here;
        said = GORT__STACKS_KNOWN;
    } else {
        out->n = out->elided = 0;
        said = from_thread(s, m, g, out);
        if (said != GORT__STACKS_SILENT && runs_on(m) != g)
            said = GORT__STACKS_MOVED;
    }
    if (on_g0 && from_record(g, &below) == GORT__STACKS_KNOWN) {
        out->n = said == GORT__STACKS_KNOWN ? out->n : 0;
        append(out, &below);
        said = GORT__STACKS_KNOWN;
    }
    return said;
}

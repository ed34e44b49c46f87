/* SPDX-License-Identifier: MIT */
/*
 * explore.c - the search through all interleavings of a model.
 *
 * How: a thread stops before each of its atomic operations. Between steps the explorer lists the choices (let
 * thread t do its operation, let a pending store of t become visible), takes the first and goes deeper; at
 * the end, or where a state is known, it goes back to the last choice with an alternative. Going back is
 * copying the state back that was saved there; running again from the start up to there would do too, ten
 * times slower. A state is all announced memory, the threads' stacks and registers, and their pending stores.
 * Two paths that meet in one state (by its fingerprint, 64 bits) have the same future, so the second stops
 * there; that makes all interleavings of some hundred steps affordable, and ends loops that wait for
 * somebody.
 * With a bound on preemptions the future also depends on whose turn it is and on how many are spent. That is
 * kept beside the fingerprint: a known state is searched again only on a turn that allows more than those
 * before (covered). In eager models a step that is its thread's own (a store into its buffer, a fence with
 * nothing pending, a choice) is made at once: it commutes with all that others do, so who goes first there
 * makes no difference (is_own). A mutation is searched for with one preemption, then two, and so on: most
 * need few, and few make a small search.
 * Rejected: sleep sets and other partial-order reductions; they do not end loops, and need independence to be
 * right.
 *
 *     a stopped thread's stack:   frame ... | step | model_load | real code ... | thread_body | base
 *
 * Invariants: (1) an execution depends on its choices only: nothing else than what is saved may change it;
 * (2) while a thread is stopped its live registers are in `at` and on its stack above `frame` (it stands in a
 * call of step).
 */
#include "model/engine/explore.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define STACK     (64 << 10)
#define DEPTH_MAX 4
#define REGIONS   64
#define STEPS_MAX 20000
#define CHOICES   16
#define GONE      4

/* What a thread is about to do. */
struct op {
    const void *p;
    uint64_t v, expected;
    unsigned size;
    enum model_op_kind kind;
    enum model_order order;
    enum model_mutation_kind mutation;
    bool timed;
};

/* A pending store. */
struct entry {
    void *p;
    uint64_t old, v;
    unsigned size;
    bool release, rmw;
};

struct thread {
    struct op op;
    int pending;
    bool woken;
    bool signalled, masked; /* a signal is on its way; it is in the handler */
    uint32_t barrier;       /* threads that it waits for in a barrier: bits */
    struct entry buffer[DEPTH_MAX];
    jmp_buf at;    /* where it stopped */
    char *frame;   /* the part of its stack in use: from here ... */
    char *base;    /* ... to here; the rest is the same in all executions */
    jmp_buf start; /* where it begins */
    void (*fn)(void);
    ucontext_t first; /* used once */
    char *stack;
};

struct region {
    char *p, *initial;
    size_t size;
};

struct choice {
    uint8_t thread;
    int8_t
        flush; /* the pending store that becomes visible, or STEP, SIGNAL: the handler runs, OWN: a step that is
                     nobody else's business */
    uint8_t variant;
};

struct node {
    struct choice choices[CHOICES];
    uint8_t n, taken;
    int last, preempted; /* the turn, to go back to */
    char *copy;          /* the state, if there is more than one choice */
    size_t room;
};

enum { NO_TURN = MODEL_THREADS };

/* A state that was met, and with how few preemptions so far, by whose turn it was: a bound minus that is what
 * its future may still spend. */
struct known {
    uint64_t fingerprint; /* 0: free */
    uint8_t least[NO_TURN + 1];
};

static struct {
    const struct model *model;
    struct thread threads[MODEL_THREADS];
    struct thread *current; /* NULL: setup, final, or the explorer itself */
    int n, depth;
    struct {
        int timeouts; /* that may still happen */
        int gone_n;
        struct {
            const char *p;
            size_t size;
        } gone[GONE]; /* memory that was given back */
    } now;
    struct {
        int last; /* the thread that made the last step, NO_TURN once it sleeps or has ended */
        int preempted;
    } turn;           /* for the bound on preemptions; not part of the fingerprint */
    uint32_t variant; /* of the step being made */
    jmp_buf home;
    struct region regions[REGIONS], quiet[REGIONS];
    int count, quiets;
    struct node *path;
    int length; /* of path */
    bool tracing;
    bool mutated;       /* the operation to spoil was met */
    struct known *seen; /* open addressing */
    size_t seen_size, seen_count;
    struct model_result result;
} x;

enum { BACK = 1, FAILED, CUT };            /* how home is reached */
enum { STEP = -1, SIGNAL = -2, OWN = -3 }; /* choices that are no pending store */
#define SIGNALLED UINT32_MAX               /* a variant */

static uint32_t step(const struct op *o);
static void trace(const char *fmt, ...) GORT_PRINTF(1, 2);

#include "model/engine/memory.c"

/* --- threads ---------------------------------------------------------------------------------- */

static void trace(const char *fmt, ...)
{
    if (!x.tracing || !x.current)
        return;
    char line[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    fprintf(stderr, "  %4d  T%d %*s%s\n", x.length, (int)(x.current - x.threads),
            4 * (int)(x.current - x.threads), "", line);
}

void model_fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(x.result.why, sizeof x.result.why, fmt, args);
    va_end(args);
    x.result.failed = true;
    _longjmp(x.home, FAILED);
}

void model_cut(void)
{
    x.result.cut++;
    _longjmp(x.home, CUT);
}

/* The real code's own ways to give up. */
#define REPORT(kind)                                                                                         \
    do {                                                                                                     \
        char text[160];                                                                                      \
        va_list args;                                                                                        \
        va_start(args, fmt);                                                                                 \
        vsnprintf(text, sizeof text, fmt, args);                                                             \
        va_end(args);                                                                                        \
        model_fail(kind ": %s", text);                                                                       \
    } while (0)
void gort__throw(const char *fmt, ...)
{
    REPORT("throw");
}
void gort__fatal(const char *fmt, ...)
{
    REPORT("fatal");
}

/* An address below everything that its caller has on the stack. */
static GORT_NOINLINE char *stack_here(void)
{
    return __builtin_frame_address(0);
}

/* The running thread stops before an operation; returns when it may do it, with the variant to take. */
static GORT_NOINLINE uint32_t thread_stop(const struct op *o)
{
    struct thread *t = x.current;
    t->op = *o;
    t->frame = stack_here();
    if (_setjmp(t->at) == 0)
        _longjmp(x.home, BACK);
    return x.variant;
}

/* The same, with the signals that come first. */
static uint32_t step(const struct op *o)
{
    for (;;) {
        uint32_t variant = thread_stop(o);
        if (variant != SIGNALLED)
            return variant;
        struct thread *t = x.current;
        t->signalled = false;
        t->masked = true;
        trace("signal");
        x.model->handler();
        t->masked = false;
    }
}

static GORT_NOINLINE void thread_body(void)
{
    struct thread *t = x.current;
    t->base = __builtin_frame_address(0);
    t->fn();
    step(&(struct op){.kind = MODEL_OP_DONE});
}

static void thread_main(void)
{
    if (_setjmp(x.current->start) == 0)
        _longjmp(x.home, BACK);
    thread_body();
}

/* Lets t run up to its next step. False: the execution ends here, with a violation or cut. */
static bool thread_run(struct thread *t, jmp_buf at, uint32_t variant)
{
    x.current = t;
    x.variant = variant;
    buffer_apply(t);
    int how = _setjmp(x.home);
    if (how == 0)
        _longjmp(at, 1);
    t = x.current;
    x.current = NULL;
    if (!buffer_unapply(t) && how == BACK) {
        snprintf(x.result.why, sizeof x.result.why, "a plain store hit a word with a pending atomic store");
        x.result.failed = true;
        return false;
    }
    return how == BACK;
}

static void threads_make(void)
{
    for (x.n = 0; x.n < MODEL_THREADS && x.model->threads[x.n]; x.n++) {
        struct thread *t = &x.threads[x.n];
        memset(t, 0, sizeof *t);
        t->fn = x.model->threads[x.n];
        t->stack = calloc(1, STACK);
        getcontext(&t->first);
        t->first.uc_stack.ss_sp = t->stack;
        t->first.uc_stack.ss_size = STACK;
        makecontext(&t->first, thread_main, 0);
        x.current = t;
        if (_setjmp(x.home) == 0)
            setcontext(&t->first);
        x.current = NULL;
    }
}

/* Everything as setup left it; each thread up to its first step. */
static bool restart(void)
{
    for (int i = 0; i < x.count; i++)
        memcpy(x.regions[i].p, x.regions[i].initial, x.regions[i].size);
    memset(&x.now, 0, sizeof x.now);
    x.now.timeouts = x.model->timeouts;
    x.turn.last = x.turn.preempted = 0;
    for (int i = 0; i < x.n; i++)
        memset(&x.threads[i], 0, offsetof(struct thread, frame));
    for (int i = 0; i < x.n; i++)
        if (!thread_run(&x.threads[i], x.threads[i].start, 0))
            return false;
    return true;
}

/* --- states ----------------------------------------------------------------------------------- */

static uint64_t word_at(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* Both halves of the product of two words. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#define FOLD(h, p, k) fold(word_at(p) ^ (k), word_at((p) + 8) ^ (h))

/* Most of the explorer's time is spent here: four chains, so that the processor multiplies them side by side.
 * Written out, because -O2 would keep them in memory in a loop. */
static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    const uint64_t k = UINT64_C(0x9e3779b97f4a7c15), l = UINT64_C(0xbf58476d1ce4e5b9);
    const char *p = data;
    uint64_t a = h ^ size, b = h + k, c = h + l, d = h ^ k;
    for (; size >= 64; p += 64, size -= 64) {
        a = FOLD(a, p, k);
        b = FOLD(b, p + 16, l);
        c = FOLD(c, p + 32, ~k);
        d = FOLD(d, p + 48, ~l);
    }
    h = fold(a ^ k, b) ^ fold(c ^ l, d);
    for (; size >= 16; p += 16, size -= 16)
        h = FOLD(h, p, k);
    char rest[16] = {0};
    memcpy(rest, p, size);
    return FOLD(h, rest, l);
}

/* Calls fn for each piece of the state. */
static void state_pieces(void (*fn)(void *piece, size_t size, void *arg), void *arg)
{
    for (int i = 0; i < x.count; i++)
        fn(x.regions[i].p, x.regions[i].size, arg);
    for (int i = 0; i < x.n; i++) {
        struct thread *t = &x.threads[i];
        fn(t, offsetof(struct thread, base), arg); /* first: it says where the stack is */
        if (t->op.kind != MODEL_OP_DONE)
            fn(t->frame, (size_t)(t->base - t->frame), arg);
    }
    fn(&x.now, sizeof x.now, arg);
}

static void piece_size(void *piece, size_t size, void *total)
{
    (void)piece;
    *(size_t *)total += size;
}

static void piece_save(void *piece, size_t size, void *to)
{
    memcpy(*(char **)to, piece, size);
    *(char **)to += size;
}

static void piece_restore(void *piece, size_t size, void *from)
{
    memcpy(piece, *(char **)from, size);
    *(char **)from += size;
}

static void piece_mix(void *piece, size_t size, void *h)
{
    *(uint64_t *)h = mix(*(uint64_t *)h, piece, size);
}

static void state_save(struct node *d)
{
    size_t size = 0;
    state_pieces(piece_size, &size);
    if (size > d->room) {
        free(d->copy);
        d->copy = malloc(d->room = 2 * size);
    }
    char *to = d->copy;
    state_pieces(piece_save, &to);
    d->last = x.turn.last;
    d->preempted = x.turn.preempted;
}

static void state_restore(struct node *d)
{
    char *from = d->copy;
    state_pieces(piece_restore, &from);
    x.turn.last = d->last;
    x.turn.preempted = d->preempted;
}

static uint64_t fingerprint(void)
{
    uint64_t h = 1;
    state_pieces(piece_mix, &h);
    return h ? h : 1;
}

static struct known *seen_find(uint64_t h)
{
    size_t i = h & (x.seen_size - 1);
    while (x.seen[i].fingerprint && x.seen[i].fingerprint != h)
        i = (i + 1) & (x.seen_size - 1);
    return &x.seen[i];
}

static void seen_grow(void)
{
    struct known *old = x.seen;
    size_t n = x.seen_size;
    x.seen_size = n ? 2 * n : 1 << 16;
    x.seen = calloc(x.seen_size, sizeof *x.seen);
    for (size_t i = 0; i < n; i++)
        if (old[i].fingerprint)
            *seen_find(old[i].fingerprint) = old[i];
    free(old);
}

/* It has something left to do: to let another one go first is a preemption. */
static bool goes_on(const struct thread *t)
{
    if (variants(t) > 0)
        return true;
    for (int e = 0; e < t->pending; e++)
        if (may_flush(t, e))
            return true;
    return false;
}

static bool turn_goes_on(void)
{
    return x.turn.last != NO_TURN && goes_on(&x.threads[x.turn.last]);
}

static bool others_pending(int thread)
{
    for (int i = 0; i < x.n; i++)
        if (i != thread && x.threads[i].pending)
            return true;
    return false;
}

/* Has all that can follow on this turn followed on an earlier one, in the same state? Yes, if that was the
 * same one's turn or nobody's (a switch is free then), with no more preemptions. Yes, if it was b's with
 * fewer, because one more makes it anybody's turn. But with one more each, b's turn lets stores of others
 * become visible, and stays b's: so there must not be any that are free now. */
static bool covered(const struct known *k)
{
    int last = x.turn.last, spent = x.turn.preempted;
    if (k->least[last] <= spent || k->least[NO_TURN] <= spent)
        return true;
    bool going = turn_goes_on();
    for (int b = 0; b < x.n; b++)
        if (k->least[b] < spent && (going ? !x.threads[last].pending : !others_pending(b)))
            return true;
    return false;
}

/* True when the state, on this turn, was not known; it is from now on. */
static bool state_is_new(void)
{
    if (x.model->tree)
        return true;
    if (x.seen_count * 2 >= x.seen_size)
        seen_grow();
    uint64_t h = fingerprint();
    struct known *k = seen_find(h);
    if (!k->fingerprint) {
        k->fingerprint = h;
        memset(k->least, UINT8_MAX, sizeof k->least);
        x.seen_count++;
    } else if (!x.model->preemptions || covered(k)) {
        return false;
    }
    k->least[x.turn.last] = (uint8_t)x.turn.preempted;
    return true;
}

/* --- the search ------------------------------------------------------------------------------- */

static void choice_add(struct node *d, int thread, int flush_index, uint32_t variant)
{
    if (d->n == CHOICES) {
        fprintf(stderr, "model: more than %d choices in a state\n", CHOICES);
        abort();
    }
    d->choices[d->n++] = (struct choice){(uint8_t)thread, (int8_t)flush_index, (uint8_t)variant};
}

static bool may_be_signalled(const struct thread *t)
{
    return t->signalled && !t->masked && t->op.kind != MODEL_OP_ASLEEP && t->op.kind != MODEL_OP_DONE;
}

/* What t is about to do takes place in its own buffer and registers: it can be done before or after whatever
 * others do, and before or after its stores become visible. So it is done at once. */
static bool is_own(const struct thread *t)
{
    if (!x.model->eager || x.model->timeouts)
        return false;
    switch (t->op.kind) {
    case MODEL_OP_STORE:
        return x.model->memory != MODEL_SC && t->op.order != MODEL_SEQ_CST && store_enabled(t);
    case MODEL_OP_FENCE:
        return t->pending == 0;
    default:
        return t->op.kind == MODEL_OP_CHOOSE;
    }
}

/* It makes no step before another one made one. */
static bool is_over(const struct thread *t)
{
    return (t->op.kind == MODEL_OP_DONE || t->op.kind == MODEL_OP_ASLEEP) && !goes_on(t);
}

static void choices_list(struct node *d)
{
    d->n = d->taken = 0;
    if (x.turn.last != NO_TURN && is_over(&x.threads[x.turn.last]))
        x.turn.last = NO_TURN;
    for (int i = 0; i < x.n; i++)
        if (is_own(&x.threads[i])) {
            for (uint32_t v = 0; v < variants(&x.threads[i]); v++)
                choice_add(d, i, OWN, v);
            return;
        }
    bool only_last = x.model->preemptions && x.turn.preempted >= x.model->preemptions && turn_goes_on();
    int first = x.turn.last == NO_TURN ? 0 : x.turn.last; /* few switches in what is found first */
    for (int k = 0; k < (only_last ? 1 : x.n); k++) {
        int i = (first + k) % x.n;
        uint32_t n = variants(&x.threads[i]);
        for (uint32_t v = 0; v < n; v++)
            choice_add(d, i, STEP, v);
        if (may_be_signalled(&x.threads[i]))
            choice_add(d, i, SIGNAL, 0);
        for (int e = 0; e < x.threads[i].pending; e++)
            if (may_flush(&x.threads[i], e))
                choice_add(d, i, e, 0);
    }
}

static bool choice_take(const struct choice *c)
{
    struct thread *t = &x.threads[c->thread];
    x.result.steps++;
    if (c->flush == OWN)
        return thread_run(t, t->at, c->variant);
    x.turn.preempted += c->thread != x.turn.last && turn_goes_on();
    if (c->flush >= 0) {
        if (x.tracing)
            fprintf(stderr, "  %4d  T%d %*s(its store of %" PRIx64 " is visible now)\n", x.length, c->thread,
                    4 * c->thread, "", t->buffer[(int)c->flush].v);
        flush(t, c->flush);
        return true;
    }
    x.turn.last = c->thread;
    return thread_run(t, t->at, c->flush == SIGNAL ? SIGNALLED : c->variant);
}

/* Nobody can go on: does the model agree? */
static void finish(void)
{
    if (_setjmp(x.home) == 0)
        x.model->final();
}

/* From the current state to the end, or to a known state. */
static void execute(void)
{
    for (;;) {
        struct node *d = &x.path[x.length];
        choices_list(d);
        if (d->n == 0)
            finish();
        if (d->n == 0 || (d->choices[0].flush != OWN && !state_is_new()))
            return;
        if (d->n > 1)
            state_save(d);
        if (++x.length == STEPS_MAX) {
            snprintf(x.result.why, sizeof x.result.why, "no end after %d steps", STEPS_MAX);
            x.result.failed = true;
            return;
        }
        if (!choice_take(&d->choices[0]))
            return;
    }
}

/* Back to the last choice with an alternative, and takes that. False: there is none. */
static bool backtrack(void)
{
    while (x.length > 0) {
        struct node *d = &x.path[x.length - 1];
        if (++d->taken < d->n) {
            state_restore(d);
            if (choice_take(&d->choices[d->taken]))
                return true;
            if (x.result.failed)
                return false;
        } else {
            x.length--;
        }
    }
    return false;
}

/* Runs the failed path again, with a line for each step. */
static void explain(void)
{
    struct model_result keep = x.result;
    int length = x.length;
    x.tracing = true;
    x.length = 0;
    x.result.failed = false;
    if (restart())
        while (x.length < length) {
            x.length++;
            if (!choice_take(&x.path[x.length - 1].choices[x.path[x.length - 1].taken]))
                break;
        }
    x.tracing = false;
    x.result = keep;
}

static void forget(void)
{
    for (int i = 0; i < x.n; i++)
        free(x.threads[i].stack);
    for (int i = 0; i < x.count; i++)
        free(x.regions[i].initial);
    for (int i = 0; i < STEPS_MAX; i++)
        free(x.path[i].copy);
    free(x.path);
    free(x.seen);
    memset(&x, 0, sizeof x);
}

static struct model_result explore(const struct model *m, bool explained)
{
    x.model = m;
    x.depth = m->depth ? m->depth : 2;
    x.path = calloc(STEPS_MAX, sizeof *x.path);
    if (x.depth > DEPTH_MAX || !x.path)
        test_fail(__FILE__, __LINE__, "a store buffer has at most %d entries", DEPTH_MAX);
    m->setup();
    for (int i = 0; i < x.count; i++) {
        x.regions[i].initial = malloc(x.regions[i].size);
        memcpy(x.regions[i].initial, x.regions[i].p, x.regions[i].size);
    }
    threads_make();
    if (restart())
        do {
            x.result.executions++;
            execute();
        } while (!x.result.failed && backtrack());
    x.result.states = x.seen_count;
    x.result.mutated = x.mutated;
    if (x.result.failed && explained)
        explain();
    struct model_result result = x.result;
    for (int i = 0; i < x.count; i++)
        memcpy(x.regions[i].p, x.regions[i].initial, x.regions[i].size);
    forget();
    return result;
}

/* --- what models call ------------------------------------------------------------------------- */

void model_memory(void *p, size_t size)
{
    if (x.count == REGIONS)
        test_fail(__FILE__, __LINE__, "more than %d regions", REGIONS);
    x.regions[x.count++] = (struct region){p, NULL, size};
}

void model_quiet(const void *p, size_t size)
{
    if (x.quiets == REGIONS)
        test_fail(__FILE__, __LINE__, "more than %d regions", REGIONS);
    x.quiet[x.quiets++] = (struct region){(char *)(uintptr_t)p, NULL, size};
}

struct model_result model_explore(const struct model *m)
{
    return explore(m, false);
}

static const char *const memory_names[] = {"tso", "weak", "sc"};

static struct model_result timed(const struct model *m, const char *name, bool explained)
{
    if (GORT_ASAN || GORT_TSAN)
        SKIP("only without sanitizers: the explorer changes stacks behind their back");
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct model_result r = explore(m, explained);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    char bound[64] = "";
    if (m->preemptions || r.cut)
        snprintf(bound, sizeof bound, " (preemptions <= %d, %" PRIu64 " cut)", m->preemptions, r.cut);
    test_log("%s, %s: %" PRIu64 " executions, %" PRIu64 " states, %" PRIu64 " steps, %.2f s%s%s%s", name,
             memory_names[m->memory], r.executions, r.states, r.steps, seconds, bound, r.failed ? ": " : "",
             r.why);
    return r;
}

void model_check(const struct model *m, const char *name)
{
    struct model_result r = timed(m, name, true);
    CHECK_MSG(!r.failed, "%s: %s", name, r.why);
}

void model_check_both(struct model m, const char *name, int tso, int weak)
{
    m.preemptions = tso;
    m.memory = MODEL_TSO;
    model_check(&m, name);
    m.preemptions = weak;
    m.memory = MODEL_WEAK;
    model_check(&m, name);
}

void model_catch(const struct model *m, const char *name, const char *func, enum model_op_kind op,
                 enum model_mutation_kind kind)
{
    model_catch_at(m, name, (struct model_mutation){.func = func, .op = op, .kind = kind});
}

void model_catch_kept(const struct model *m, const char *name, const char *func, enum model_op_kind op,
                      uint64_t bits)
{
    model_catch_at(m, name,
                   (struct model_mutation){.func = func, .op = op, .kind = MODEL_KEPT, .bits = bits});
}

/* Most bugs need few preemptions, and where these are few there are few executions: so that is tried
 * first. */
void model_catch_at(const struct model *m, const char *name, struct model_mutation mutation)
{
    struct model mutant = *m;
    mutant.mutation = mutation;
    struct model_result r = {0};
    int most = m->preemptions ? m->preemptions : 3;
    for (int n = 1; n <= most; n++) {
        mutant.preemptions = n < most ? n : m->preemptions;
        r = timed(&mutant, name, false);
        if (r.failed)
            break;
    }
    CHECK_MSG(r.mutated, "%s: no such operation is made in %s any more", name, mutation.func);
    CHECK_MSG(r.failed, "%s: the mutation was not noticed", name);
}

/* SPDX-License-Identifier: MIT */
/*
 * memory.c - atomic operations as steps, and what threads see of each other's stores: store buffers.
 *
 * Why: the real code also reads shared words without an atomic operation where it is their only writer (a
 * queue's tail). So a thread's pending stores are really in memory while it runs, and are taken out again
 * when it stops: memory between steps is what everybody agrees on.
 *
 *     between steps     memory = globally visible
 *     thread t runs     memory = globally visible + t's pending stores, oldest first
 *
 * Invariants: (1) an entry's `old` is what it covers while its thread runs; (2) a plain store never hits a
 * word with a pending store (checked); (3) a pending read-modify-write has the word to itself: no other store
 * to it becomes visible before, so it stays atomic.
 * Plain stores are visible at once. That is no loss for data that is private or guarded by a lock.
 */

static uint64_t word_read(const void *p, unsigned size)
{
    uint64_t v = 0;
    memcpy(&v, p, size); /* little-endian, as both architectures are */
    return v;
}

static void word_write(void *p, unsigned size, uint64_t v)
{
    memcpy(p, &v, size);
}

static uint64_t word_mask(unsigned size, uint64_t v)
{
    return size == 8 ? v : v & ((UINT64_C(1) << (8 * size)) - 1);
}

static void buffer_apply(struct thread *t)
{
    for (int i = 0; i < t->pending; i++) {
        struct entry *e = &t->buffer[i];
        e->old = word_read(e->p, e->size);
        word_write(e->p, e->size, e->v);
    }
}

static bool buffer_unapply(struct thread *t)
{
    bool intact = true;
    for (int i = t->pending - 1; i >= 0; i--) {
        struct entry *e = &t->buffer[i];
        intact &= word_read(e->p, e->size) == e->v;
        word_write(e->p, e->size, e->old);
        e->old = 0; /* not part of the state */
    }
    return intact;
}

static bool has_pending(const struct thread *t, const void *p, bool rmw_only)
{
    for (int i = 0; i < t->pending; i++)
        if (t->buffer[i].p == p && (t->buffer[i].rmw || !rmw_only))
            return true;
    return false;
}

static bool held_by_other(const struct thread *t, const void *p)
{
    for (int i = 0; i < x.n; i++)
        if (&x.threads[i] != t && has_pending(&x.threads[i], p, true))
            return true;
    return false;
}

/* What t would read: a word, or its first byte. */
static uint64_t seen_by(const struct thread *t, const void *p, unsigned size)
{
    uint64_t v = word_read(p, size);
    for (int i = 0; i < t->pending; i++)
        if (t->buffer[i].p == p) {
            uint64_t covered_bits = word_mask(t->buffer[i].size, UINT64_MAX);
            v = word_mask(size, (v & ~covered_bits) | t->buffer[i].v);
        }
    return v;
}

/* May the i-th pending store of t become visible now? */
static bool may_flush(const struct thread *t, int i)
{
    const struct entry *e = &t->buffer[i];
    if (held_by_other(t, e->p))
        return false;
    if (i > 0 && (x.model->memory == MODEL_TSO || e->release))
        return false;
    for (int k = 0; k < i; k++)
        if (t->buffer[k].p == e->p)
            return false;
    return true;
}

static void flush(struct thread *t, int i)
{
    word_write(t->buffer[i].p, t->buffer[i].size, t->buffer[i].v);
    t->pending--;
    memmove(&t->buffer[i], &t->buffer[i + 1], (size_t)(t->pending - i) * sizeof t->buffer[0]);
    memset(&t->buffer[t->pending], 0, sizeof t->buffer[0]);
    if (t->pending == 0) /* whoever waits for that in a barrier need not see it at this very moment */
        for (int k = 0; k < x.n; k++)
            x.threads[k].barrier &= ~(1u << (t - x.threads));
}

static void buffer_add(struct thread *t, void *p, unsigned size, uint64_t v, bool release, bool rmw)
{
    t->buffer[t->pending++] = (struct entry){p, word_read(p, size), v, size, release, rmw};
    word_write(p, size, v);
}

/* --- when an operation may happen ------------------------------------------------------------- */

static bool releases(enum model_order order)
{
    return order == MODEL_RELEASE || order == MODEL_ACQ_REL || order == MODEL_SEQ_CST;
}

/* Its store may be seen later than the loads that follow. */
static bool late_rmw(const struct op *o)
{
    return x.model->memory == MODEL_WEAK || o->mutation == MODEL_NOT_A_FENCE;
}

static bool store_enabled(const struct thread *t)
{
    return t->op.order == MODEL_SEQ_CST ? t->pending == 0 : t->pending < x.depth;
}

static bool rmw_enabled(const struct thread *t)
{
    const struct op *o = &t->op;
    if (o->kind == MODEL_OP_CAS && late_rmw(o) && seen_by(t, o->p, o->size) != o->expected)
        return true; /* it will fail, and is a load */
    if (held_by_other(t, o->p))
        return false;
    if (x.model->memory == MODEL_WEAK && !releases(o->order))
        return t->pending < x.depth && !has_pending(t, o->p, false);
    /* So a pending one never waits for an older store, and nobody waits in a circle. */
    return t->pending == 0;
}

/* In how many ways t can go on now; 0: not at all. */
static uint32_t variants(const struct thread *t)
{
    const struct op *o = &t->op;
    switch (o->kind) {
    case MODEL_OP_NONE:
    case MODEL_OP_LOAD:
        return 1;
    case MODEL_OP_STORE:
        return store_enabled(t);
    case MODEL_OP_RMW:
    case MODEL_OP_CAS:
        return rmw_enabled(t);
    case MODEL_OP_AWAIT:
        return seen_by(t, o->p, o->size) == o->v;
    case MODEL_OP_CHOOSE:
        return (uint32_t)o->v;
    case MODEL_OP_FENCE: /* the kernel's entry is a fence too */
    case MODEL_OP_FUTEX_WAIT:
    case MODEL_OP_FUTEX_WAKE:
        return t->pending == 0;
    case MODEL_OP_ASLEEP:
        return t->woken || (o->timed && x.now.timeouts > 0);
    case MODEL_OP_BARRIER:
        return t->pending == 0 && t->barrier == 0;
    case MODEL_OP_XCHG:
    case MODEL_OP_ADD:
    case MODEL_OP_SUB:
    case MODEL_OP_OR:
    case MODEL_OP_AND:
    case MODEL_OP_DONE:
        break;
    }
    return 0;
}

/* --- the operations --------------------------------------------------------------------------- */

static bool is_quiet(const void *p)
{
    if (!x.current)
        return true; /* setup and final are alone */
    for (int i = 0; i < x.quiets; i++)
        if ((const char *)p >= x.quiet[i].p && (const char *)p < x.quiet[i].p + x.quiet[i].size)
            return true;
    return false;
}

/* The operation happens now. */
static void touch(const void *p, const char *func, const char *text)
{
    for (int i = 0; x.current && i < x.now.gone_n; i++)
        if ((const char *)p >= x.now.gone[i].p && (const char *)p < x.now.gone[i].p + x.now.gone[i].size)
            model_fail("%s touches what was given back: %s", func, text);
}

static enum model_mutation_kind mutation_of(enum model_op_kind kind, const char *func, const char *text)
{
    const struct model_mutation *m = &x.model->mutation;
    if (!m->kind || m->op != kind || strcmp(m->func, func) != 0 || (m->word && strcmp(m->word, text) != 0))
        return MODEL_INTACT;
    x.mutated = true;
    return m->kind;
}

uint64_t model_load(const void *p, unsigned size, enum model_order order, const char *func, const char *text)
{
    if (!is_quiet(p)) {
        if (mutation_of(MODEL_OP_LOAD, func, text) == MODEL_SKIPPED)
            return 0;
        step(&(struct op){.kind = MODEL_OP_LOAD, .p = p, .size = size, .order = order});
        trace("%-34s load  %s is %" PRIx64, func, text, word_read(p, size));
    }
    touch(p, func, text);
    return word_read(p, size);
}

/* What is written instead of v. */
static uint64_t kept_in(uint64_t v, uint64_t old, enum model_mutation_kind mutation)
{
    uint64_t bits = mutation == MODEL_KEPT ? x.model->mutation.bits : 0;
    return (v & ~bits) | (old & bits);
}

static bool on_own_stack(const void *p)
{
    const char *at = p, *here = __builtin_frame_address(0);
    return x.model->own_stack && at > here && at < x.current->base;
}

void model_store(void *p, unsigned size, uint64_t v, enum model_order order, const char *func,
                 const char *text)
{
    v = word_mask(size, v);
    if (is_quiet(p) || on_own_stack(p)) {
        touch(p, func, text);
        word_write(p, size, v);
        return;
    }
    enum model_mutation_kind mutation = mutation_of(MODEL_OP_STORE, func, text);
    if (mutation == MODEL_SKIPPED)
        return;
    if (mutation == MODEL_UNORDERED)
        order = MODEL_RELAXED;
    step(&(struct op){.kind = MODEL_OP_STORE, .p = p, .size = size, .order = order, .v = v});
    v = kept_in(v, word_read(p, size), mutation);
    trace("%-34s store %s = %" PRIx64, func, text, v);
    touch(p, func, text);
    if (x.model->memory == MODEL_SC || order == MODEL_SEQ_CST)
        word_write(p, size, v);
    else
        buffer_add(x.current, p, size, v, releases(order), false);
}

static enum model_mutation_kind mutation_of_rmw(enum model_rmw kind, const char *func, const char *text)
{
    static const enum model_op_kind ops[] = {MODEL_OP_XCHG, MODEL_OP_ADD, MODEL_OP_SUB, MODEL_OP_OR,
                                             MODEL_OP_AND};
    enum model_mutation_kind mutation = mutation_of(ops[kind], func, text);
    return mutation ? mutation : mutation_of(MODEL_OP_RMW, func, text);
}

static uint64_t rmw_value(enum model_rmw kind, uint64_t old, uint64_t v)
{
    switch (kind) {
    case MODEL_XCHG:
        return v;
    case MODEL_ADD:
        return old + v;
    case MODEL_SUB:
        return old - v;
    case MODEL_OR:
        return old | v;
    case MODEL_AND:
        return old & v;
    }
    return 0;
}

/* The writing half of a read-modify-write, in the same step as the reading one. */
static void rmw_write(void *p, unsigned size, uint64_t v, const struct op *o)
{
    if (late_rmw(o))
        buffer_add(x.current, p, size, v, false, true);
    else
        word_write(p, size, v);
}

uint64_t model_rmw(enum model_rmw kind, void *p, unsigned size, uint64_t v, enum model_order order,
                   const char *func, const char *text)
{
    bool quiet = is_quiet(p);
    struct op o = {.kind = MODEL_OP_RMW, .p = p, .size = size, .order = order, .v = v};
    o.mutation = quiet ? MODEL_INTACT : mutation_of_rmw(kind, func, text);
    if (o.mutation == MODEL_UNORDERED)
        o.order = MODEL_RELAXED;
    if (o.mutation == MODEL_SKIPPED)
        return model_load(p, size, order, func, text);
    if (o.mutation == MODEL_TORN) {
        uint64_t was = model_load(p, size, order, func, text);
        model_store(p, size, rmw_value(kind, was, v), order, func, text);
        return was;
    }
    if (!quiet)
        step(&o);
    touch(p, func, text);
    uint64_t old = word_read(p, size);
    uint64_t new = kept_in(word_mask(size, rmw_value(kind, old, v)), old, o.mutation);
    if (quiet) {
        word_write(p, size, new);
    } else {
        trace("%-34s rmw   %s: %" PRIx64 " -> %" PRIx64, func, text, old, new);
        rmw_write(p, size, new, &o);
    }
    return old;
}

bool model_cas(void *p, unsigned size, void *expected, uint64_t v, enum model_order order, const char *func,
               const char *text)
{
    bool quiet = is_quiet(p);
    uint64_t want = word_read(expected, size);
    struct op o = {.kind = MODEL_OP_CAS, .p = p, .size = size, .order = order, .v = v, .expected = want};
    o.mutation = quiet ? MODEL_INTACT : mutation_of(MODEL_OP_CAS, func, text);
    if (o.mutation == MODEL_UNORDERED)
        o.order = MODEL_RELAXED;
    if (o.mutation == MODEL_TORN)
        model_load(p, size, order, func, text);
    else if (!quiet)
        step(&o);
    touch(p, func, text);
    uint64_t old = word_read(p, size);
    v = kept_in(v, old, o.mutation);
    if (o.mutation != MODEL_TORN && !quiet)
        trace("%-34s cas   %s is %" PRIx64 ", %" PRIx64 " -> %" PRIx64, func, text, old, want,
              word_mask(size, v));
    if (old != want && o.mutation != MODEL_SKIPPED) {
        word_write(expected, size, old);
        return false;
    }
    if (o.mutation == MODEL_TORN)
        model_store(p, size, v, order, func, text);
    else if (quiet)
        word_write(p, size, v);
    else
        rmw_write(p, size, word_mask(size, v), &o);
    return true;
}

void model_fence(enum model_order order, const char *func, const char *text)
{
    /* A weaker one than SEQ_CST would need a model of its own; nobody uses one. */
    if (order != MODEL_SEQ_CST)
        model_fail("a fence that the model does not know: %s in %s", text, func);
    if (!x.current || mutation_of(MODEL_OP_FENCE, func, text) == MODEL_SKIPPED)
        return;
    step(&(struct op){.kind = MODEL_OP_FENCE});
    trace("%-34s fence", func);
}

void model_fence_after_rmw(const char *func)
{
    if (x.model->memory == MODEL_WEAK)
        model_fence(MODEL_SEQ_CST, func, "after rmw");
}

uint32_t model_choose(uint32_t n)
{
    uint32_t v = n > 1 && x.current ? step(&(struct op){.kind = MODEL_OP_CHOOSE, .v = n}) : 0;
    if (n > 1)
        trace("%-34s %u of %u", "chooses", v, n);
    return v;
}

uint32_t model_random(uint32_t n)
{
    return x.model->random ? model_choose(n) : 0;
}

void model_await(const uint32_t *p, uint32_t v)
{
    step(&(struct op){.kind = MODEL_OP_AWAIT, .p = p, .size = sizeof *p, .v = v});
    trace("%-34s the word is %x", "waited", v);
}

int model_futex_wait(uint32_t *p, uint32_t v, bool timed, bool *timed_out)
{
    struct thread *t = x.current;
    *timed_out = false;
    step(&(struct op){.kind = MODEL_OP_FUTEX_WAIT, .p = p, .size = sizeof *p});
    if (*p != v) {
        trace("%-34s word is %x, not %x", "futex_wait", *p, v);
        return -1;
    }
    trace("%-34s sleeps", "futex_wait");
    t->woken = false;
    step(&(struct op){.kind = MODEL_OP_ASLEEP, .p = p, .size = sizeof *p, .timed = timed});
    if (t->woken) {
        t->woken = false;
        trace("%-34s woken", "futex_wait");
        return 0;
    }
    trace("%-34s timed out", "futex_wait");
    x.now.timeouts--;
    *timed_out = true;
    return -1;
}

static void futex_wake(uint32_t *p, int most)
{
    step(&(struct op){.kind = MODEL_OP_FUTEX_WAKE, .p = p, .size = sizeof *p});
    trace("%-34s", "futex_wake");
    for (int i = 0; i < x.n && most > 0; i++)
        if (x.threads[i].op.kind == MODEL_OP_ASLEEP && x.threads[i].op.p == p && !x.threads[i].woken) {
            x.threads[i].woken = true;
            most--;
        }
}

void model_futex_wake(uint32_t *p)
{
    futex_wake(p, 1);
}

void model_futex_wake_all(uint32_t *p)
{
    futex_wake(p, MODEL_THREADS);
}

/* Such things see when a thread does what is_own says nobody sees. */
static void not_eager(void)
{
    if (x.model->eager)
        model_fail("signals, barriers and memory given back are not for eager models");
}

void model_barrier(const char *func)
{
    not_eager();
    if (!x.current || mutation_of(MODEL_OP_BARRIER, func, "") == MODEL_SKIPPED)
        return;
    struct thread *t = x.current;
    step(&(struct op){.kind = MODEL_OP_FENCE}); /* from here on */
    trace("%-34s barrier begins", func);
    for (int i = 0; i < x.n; i++)
        if (x.threads[i].pending)
            t->barrier |= 1u << i;
    step(&(struct op){.kind = MODEL_OP_BARRIER});
    trace("%-34s barrier ends", func);
}

void model_signal(int thread)
{
    not_eager();
    x.threads[thread].signalled = true;
    trace("%-34s to T%d", "sends a signal", thread);
}

void model_unmask(void)
{
    x.current->masked = false;
}

void model_gone(const void *p, size_t size)
{
    not_eager();
    if (x.now.gone_n == GONE)
        model_fail("too much was given back for this model");
    x.now.gone[x.now.gone_n].p = p;
    x.now.gone[x.now.gone_n++].size = size;
    trace("%-34s %p, %zu bytes", "gives back", p, size);
}

int model_self(void)
{
    return x.current ? (int)(x.current - x.threads) : -1;
}

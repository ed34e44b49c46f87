/* SPDX-License-Identifier: MIT */
/*
 * runq.c - the real run queue, with a ring of 4: its owner against thieves and lookers, all interleavings.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sched/core/runq.c
 *
 * Verified: each goroutine that was put is taken once or still queued once; gort__runq_empty is not true
 * while something is queued all along; the checks inside runq.c. The counters start just below their wrap.
 */
#include "model/engine/explore.c"

#include "sched/core/runq.c"

#define NEAR_WRAP (UINT32_MAX - 1)
#define GS        7

static struct gort__runq q, q1, q2; /* the owner's, the thieves' */
static struct gort__g gs[GS];
static struct {
    uint32_t put, taken[GS];
} book; /* what the threads did; each writes only about goroutines it holds */

static void took(struct gort__g *g)
{
    MODEL_ASSERT(g >= gs && g < gs + GS);
    book.taken[g - gs]++;
    MODEL_ASSERT(book.taken[g - gs] == 1);
}

static void put(int i)
{
    struct gort__glist overflow;
    book.put |= 1u << i;
    gort__runq_put(&q, &gs[i], &overflow);
    struct gort__g *g = overflow.first;
    for (uint32_t n = 0; n < overflow.n; n++, g = g->link)
        took(g);
}

static void put_next(int i)
{
    book.put |= 1u << i;
    struct gort__g *old = gort__runq_put_next(&q, &gs[i]);
    if (old) { /* as gort__local_put_next does */
        struct gort__glist overflow;
        gort__runq_put(&q, old, &overflow);
        MODEL_ASSERT(overflow.n == 0);
    }
}

static bool get(struct gort__runq *from)
{
    struct gort__g *g = gort__runq_get(from);
    if (g)
        took(g);
    return g != NULL;
}

static bool get_next(void)
{
    struct gort__g *g = gort__runq_get_next(&q);
    if (g)
        took(g);
    return g != NULL;
}

static void steal(struct gort__runq *to, struct gort__runq *from)
{
    struct gort__g *g = gort__runq_steal(to, from);
    if (g)
        took(g);
}

static void steal_next(void)
{
    struct gort__g *seen = gort__load(&q.next, RELAXED);
    if (seen && gort__runq_steal_next(&q, seen))
        took(seen);
}

static void setup_queue(struct gort__runq *a)
{
    memset(a, 0, sizeof *a);
    a->head = a->tail = NEAR_WRAP;
    model_memory(a, sizeof *a);
}

static void setup(void)
{
    setup_queue(&q);
    setup_queue(&q1);
    setup_queue(&q2);
    memset(gs, 0, sizeof gs);
    memset(&book, 0, sizeof book);
    model_memory(gs, sizeof gs);
    model_memory(&book, sizeof book);
}

static void setup_filled(uint32_t n)
{
    setup();
    for (uint32_t i = 0; i < n; i++) {
        q.ring[(NEAR_WRAP + i) % GORT_RUNQ_SIZE] = &gs[i];
        book.put |= 1u << i;
    }
    q.tail += n;
}
static void setup_3(void)
{
    setup_filled(3);
}
static void setup_full(void)
{
    setup_filled(GORT_RUNQ_SIZE);
}
static void setup_next(void)
{
    setup();
    q.next = &gs[0];
    book.put = 1;
}

static uint32_t still_in(const struct gort__runq *a, const struct gort__g *g)
{
    uint32_t n = a->next == g;
    for (uint32_t i = a->head; i != a->tail; i++)
        n += a->ring[i % GORT_RUNQ_SIZE] == g;
    return n;
}

static void each_once(void)
{
    for (int i = 0; i < GS; i++) {
        uint32_t n = book.taken[i] + still_in(&q, &gs[i]) + still_in(&q1, &gs[i]) + still_in(&q2, &gs[i]);
        if (n != (book.put >> i & 1))
            model_fail("goroutine %d was put %u times and is there %u times", i, book.put >> i & 1, n);
    }
}

static void nothing_left(void)
{
    each_once();
    MODEL_ASSERT(gort__runq_empty(&q));
}

/* --- threads ---------------------------------------------------------------------------------- */

static void owner_fills_and_drains(void)
{
    for (int i = 0; i < 3; i++)
        put(i);
    while (get(&q))
        ;
}

static void owner_cycles(void) /* around the ring, over the wrap, with reused slots */
{
    get(&q);
    put(3);
    put(4);
    get(&q);
    put(5);
    while (get(&q))
        ;
}

static void owner_overflows(void)
{
    put(4);
    get(&q);
    put(5);
    put(6);
}

/* Shorter ones, for two thieves. */
static void owner_cycles_once(void)
{
    put(3);
    put(4);
    get(&q);
    get(&q);
}

static void owner_overflows_once(void)
{
    put(4);
    get(&q);
}

static void owner_next(void)
{
    put_next(1);
    put_next(2);
    get_next();
    put_next(3);
    while (get_next() || get(&q))
        ;
}

static void thief(void)
{
    steal(&q1, &q);
}

static void thief_two(void)
{
    steal(&q2, &q);
}

static void thief_twice(void)
{
    steal(&q1, &q);
    while (get(&q1))
        ;
    steal(&q1, &q);
}

static void owner_takes(void)
{
    get(&q);
    put(4);
}

static void thief_drains(void)
{
    steal(&q1, &q);
    while (get(&q1))
        ;
}

static void thief_of_thief(void)
{
    steal(&q2, &q1);
}

static void thief_next(void)
{
    steal_next();
    steal(&q1, &q);
}

/* --- cases ------------------------------------------------------------------------------------ */

static const struct model fill = {
    .setup = setup, .threads = {owner_fills_and_drains, thief}, .final = nothing_left};
static const struct model cycle = {
    .setup = setup_3, .threads = {owner_cycles, thief_twice}, .final = nothing_left};
static const struct model overflow = {
    .setup = setup_full, .threads = {owner_overflows, thief_twice}, .final = each_once};
static const struct model chain = {
    .setup = setup_full, .threads = {owner_takes, thief_drains, thief_of_thief}, .final = each_once};
static const struct model next = {
    .setup = setup_next, .threads = {owner_next, thief_next}, .final = nothing_left};

TEST(fill_and_drain)
{
    model_check_both(fill, "fill", 0, 0);
}
TEST(cycle)
{
    model_check_both(cycle, "cycle", 0, 0);
}
TEST(overflow)
{
    model_check_both(overflow, "overflow", 0, 0);
}
TEST(next)
{
    model_check_both(next, "next", 0, 0);
}
TEST(fill_two_thieves)
{
    struct model m = fill;
    m.threads[2] = thief_two;
    model_check_both(m, "fill, two thieves", 0, 0);
}
TEST(cycle_two_thieves)
{
    struct model m = {.setup = setup_3, .threads = {owner_cycles_once, thief, thief_two}, .final = each_once};
    model_check_both(m, "cycle, two thieves", 0, 0);
}
TEST(overflow_two_thieves)
{
    struct model m = {
        .setup = setup_full, .threads = {owner_overflows_once, thief, thief_two}, .final = each_once};
    model_check_both(m, "overflow, two thieves", 0, 0);
}
TEST(next_two_thieves)
{
    struct model m = next;
    m.threads[2] = thief_two;
    model_check_both(m, "next, two thieves", 0, 0);
}
TEST(thief_of_thief)
{
    model_check_both(chain, "thief of thief", 0, 0);
}

/* Something is queued from the first step to the last: next, then also the ring, then only the ring. */
static void owner_never_empty(void)
{
    put_next(1);
    get_next();
    put_next(2);
    get(&q);
}
static void owner_never_empty_ring(void)
{
    put(1);
    get_next();
    put(2);
    get(&q);
    put_next(3);
    get(&q);
}
static void looker(void)
{
    MODEL_ASSERT(!gort__runq_empty(&q));
}
TEST(empty)
{
    struct model m = {.setup = setup_next, .threads = {owner_never_empty, looker}, .final = each_once};
    model_check_both(m, "empty: next moves on", 0, 0);
    m.threads[0] = owner_never_empty_ring;
    model_check_both(m, "empty: ring", 0, 0);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_get_torn)
{
    model_catch(&fill, "torn cas in get", "gort__runq_get", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_steal_torn)
{
    model_catch(&fill, "torn cas in steal", "gort__runq_steal", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_overflow_torn)
{
    model_catch(&overflow, "torn cas in put_slow", "gort__runq_put_slow", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_get_next_torn)
{
    model_catch(&next, "torn xchg in get_next", "gort__runq_get_next", MODEL_OP_RMW, MODEL_TORN);
}
TEST(mutation_put_next_torn)
{
    model_catch(&next, "torn xchg in put_next", "gort__runq_put_next", MODEL_OP_RMW, MODEL_TORN);
}
TEST(mutation_steal_next_torn)
{
    model_catch(&next, "torn cas in steal_next", "gort__runq_steal_next", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_put_unordered)
{
    struct model m = fill;
    m.memory = MODEL_WEAK;
    model_catch(&m, "tail before slot in put", "gort__runq_put", MODEL_OP_STORE, MODEL_UNORDERED);
}

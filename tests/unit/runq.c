/* SPDX-License-Identifier: MIT */
/*
 * runq.c - a P's queue by itself: order, stealing half, overflow, indices that wrap, and threads that
 * look while others take. The model checker has the interleavings; this has the sizes and the volume.
 * Covers: src/sched/core/runq.c
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "sched/core/g.h"
#include "sched/core/runq.h"
#include "test.h"

#define SIZE    GORT_RUNQ_SIZE
#define THIEVES 3

static struct gort__g pool[2 * SIZE + 2];

/* Where the counters start: the beginning, and places from which they wrap early, midway and late. */
static const uint32_t starts[] = {0,
                                  1,
                                  UINT32_MAX,
                                  UINT32_MAX - 1,
                                  UINT32_MAX - 100,
                                  UINT32_MAX - SIZE / 2,
                                  UINT32_MAX - SIZE + 1,
                                  UINT32_MAX - SIZE};
#define STARTS (sizeof starts / sizeof *starts)

static void reset(struct gort__runq *q, uint32_t at)
{
    memset(q, 0, sizeof *q);
    q->head = q->tail = at;
}

static void put(struct gort__runq *q, struct gort__g *g)
{
    struct gort__glist overflow = {NULL, NULL, 4711};
    gort__runq_put(q, g, &overflow);
    CHECK_EQ(overflow.n, 0);
}

static void fill(struct gort__runq *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        put(q, &pool[i]);
}

/* --- one thread ------------------------------------------------------------------------------- */

static void check_fifo(uint32_t at, bool alone)
{
    struct gort__runq q;
    reset(&q, at);
    for (uint32_t n = 0; n <= SIZE; n++) {
        CHECK(gort__runq_empty(&q));
        CHECK_EQ(gort__runq_length(&q), 0);
        fill(&q, n);
        CHECK_EQ(gort__runq_empty(&q), n == 0);
        CHECK_EQ(gort__runq_length(&q), n);
        for (uint32_t i = 0; i < n; i++)
            CHECK_EQ(alone ? gort__runq_get_alone(&q) : gort__runq_get(&q), &pool[i]);
        CHECK_EQ(alone ? gort__runq_get_alone(&q) : gort__runq_get(&q), NULL);
    }
}

TEST(first_in_first_out_at_every_level)
{
    for (size_t i = 0; i < STARTS; i++) {
        check_fifo(starts[i], false);
        check_fifo(starts[i], true);
    }
}

TEST(next_is_beside_the_ring)
{
    struct gort__runq q;
    reset(&q, 0);
    CHECK_EQ(gort__runq_get_next(&q), NULL);
    CHECK_EQ(gort__runq_get_next_alone(&q), NULL);
    CHECK_EQ(gort__runq_put_next(&q, &pool[0]), NULL);
    CHECK(!gort__runq_empty(&q));
    CHECK_EQ(gort__runq_length(&q), 1);
    CHECK_EQ(gort__runq_put_next(&q, &pool[1]), &pool[0]);
    CHECK_EQ(gort__runq_put_next_alone(&q, &pool[2]), &pool[1]);
    CHECK_EQ(gort__runq_get(&q), NULL);
    CHECK(!gort__runq_steal_next(&q, &pool[1]));
    CHECK(gort__runq_steal_next(&q, &pool[2]));
    CHECK(!gort__runq_steal_next(&q, &pool[2]));
    CHECK(gort__runq_empty(&q));
    CHECK_EQ(gort__runq_put_next_alone(&q, &pool[3]), NULL);
    CHECK_EQ(gort__runq_get_next_alone(&q), &pool[3]);
    CHECK_EQ(gort__runq_put_next(&q, &pool[4]), NULL);
    CHECK_EQ(gort__runq_get_next(&q), &pool[4]);
    CHECK(gort__runq_empty(&q));
}

/* Empties q and counts each goroutine that was in it. */
static uint32_t drain(struct gort__runq *q, uint8_t *seen)
{
    uint32_t n = 0;
    for (struct gort__g *g; (g = gort__runq_get(q)) != NULL; n++)
        seen[g - pool]++;
    return n;
}

static void check_steal(uint32_t at, uint32_t n)
{
    struct gort__runq victim, thief;
    uint8_t seen[SIZE] = {0};
    reset(&victim, at);
    reset(&thief, at + 77);
    fill(&victim, n);
    struct gort__g *got = gort__runq_steal(&thief, &victim);
    if (n == 0) {
        CHECK_EQ(got, NULL);
        CHECK(gort__runq_empty(&thief));
        return;
    }
    CHECK(got);
    seen[got - pool]++;
    uint32_t taken = drain(&thief, seen) + 1, left = drain(&victim, seen);
    CHECK_EQ(taken + left, n);
    CHECK(taken == n / 2 || taken == n / 2 + 1);
    for (uint32_t i = 0; i < n; i++)
        CHECK_MSG(seen[i] == 1, "of %u from %u: number %u was seen %d times", n, at, i, seen[i]);
}

TEST(a_thief_takes_half)
{
    for (size_t s = 0; s < STARTS; s++)
        for (uint32_t n = 0; n <= SIZE; n++)
            check_steal(starts[s], n);
}

TEST(of_four_a_thief_takes_the_two_oldest)
{
    struct gort__runq victim, thief;
    reset(&victim, 0);
    reset(&thief, 0);
    fill(&victim, 4);
    CHECK_EQ(gort__runq_steal(&thief, &victim), &pool[1]);
    CHECK_EQ(gort__runq_get(&thief), &pool[0]);
    CHECK_EQ(gort__runq_get(&thief), NULL);
    CHECK_EQ(gort__runq_get(&victim), &pool[2]);
    CHECK_EQ(gort__runq_get(&victim), &pool[3]);
    CHECK_EQ(gort__runq_get(&victim), NULL);
}

TEST(a_thief_leaves_next_alone)
{
    struct gort__runq victim, thief;
    reset(&victim, 0);
    reset(&thief, 0);
    CHECK_EQ(gort__runq_put_next(&victim, &pool[0]), NULL);
    CHECK_EQ(gort__runq_steal(&thief, &victim), NULL);
    CHECK_EQ(gort__runq_get_next(&victim), &pool[0]);
}

TEST(one_too_many_overflows_half)
{
    for (size_t s = 0; s < STARTS; s++) {
        struct gort__runq q;
        struct gort__glist over;
        reset(&q, starts[s]);
        fill(&q, SIZE);
        gort__runq_put(&q, &pool[SIZE], &over);
        CHECK_EQ(over.n, SIZE / 2 + 1);
        uint32_t n = 0;
        for (struct gort__g *g = over.first; g; g = g->link, n++) {
            CHECK_EQ(g, n < SIZE / 2 ? &pool[n] : &pool[SIZE]);
            if (!g->link)
                CHECK_EQ(g, over.last);
        }
        CHECK_EQ(n, over.n);
        CHECK_EQ(gort__runq_length(&q), SIZE / 2);
        for (uint32_t i = SIZE / 2; i < SIZE; i++)
            CHECK_EQ(gort__runq_get(&q), &pool[i]);
        CHECK_EQ(gort__runq_get(&q), NULL);
    }
}

/* --- several threads -------------------------------------------------------------------------- */

static struct gort__runq shared;
static bool stop;
static uint32_t ready;

static void wait_for_others(uint32_t n)
{
    gort__add(&ready, 1, RELAXED);
    while (gort__load(&ready, RELAXED) < n)
        sched_yield();
}

static void *watch_empty(void *unused)
{
    (void)unused;
    wait_for_others(2);
    while (!gort__load(&stop, RELAXED))
        CHECK_MSG(!gort__runq_empty(&shared), "reported empty, but it always held one at least");
    return NULL;
}

static struct gort__g *get_any(bool alone)
{
    if (alone) {
        struct gort__g *next = gort__runq_get_next_alone(&shared);
        return next ? next : gort__runq_get_alone(&shared);
    }
    struct gort__g *next = gort__runq_get_next(&shared);
    return next ? next : gort__runq_get(&shared);
}

static void put_any(struct gort__g *g, bool next, bool alone)
{
    struct gort__g *old = NULL;
    if (next)
        old = alone ? gort__runq_put_next_alone(&shared, g) : gort__runq_put_next(&shared, g);
    else
        put(&shared, g);
    if (old)
        put(&shared, old);
}

/* One goroutine stays in the queue at any time; every mix of next and ring comes by. */
static void check_never_empty(bool alone)
{
    pthread_t watcher;
    uint64_t random = test_seed();
    reset(&shared, UINT32_MAX - 1000);
    put_any(&pool[0], true, alone);
    CHECK_EQ(pthread_create(&watcher, NULL, watch_empty, NULL), 0);
    wait_for_others(2);
    for (long i = test_scaled(3000000, 100000); i; i--) {
        unsigned dice = (unsigned)test_random(&random);
        put_any(&pool[1], dice & 1, alone);
        struct gort__g *g = get_any(alone);
        CHECK(g);
        if (g == &pool[0]) { /* keep using the other one */
            put_any(g, dice & 2, alone);
            CHECK(get_any(alone));
        }
        while (gort__runq_length(&shared) > 1)
            CHECK(get_any(alone));
        if (dice & 4) { /* which one stays alternates */
            put_any(&pool[2], dice & 8, alone);
            CHECK(get_any(alone));
        }
    }
    gort__store(&stop, true, RELAXED);
    pthread_join(watcher, NULL);
}

TEST(never_empty_while_it_holds_one)
{
    check_never_empty(false);
}

TEST(never_empty_while_it_holds_one_alone)
{
    check_never_empty(true);
}

static struct gort__g *many; /* one record an id, so that none is queued twice at a time */
static uint8_t *taken;
static long total;

static void take(struct gort__g *g)
{
    CHECK_MSG(gort__add(&taken[g - many], 1, RELAXED) == 0, "number %ld was taken twice", (long)(g - many));
}

static void *thief_main(void *arg)
{
    struct gort__runq mine;
    uint64_t random = test_seed() + (uint64_t)(uintptr_t)arg;
    reset(&mine, UINT32_MAX - 300);
    wait_for_others(THIEVES + 1);
    bool last = false;
    for (;;) {
        struct gort__g *next = gort__load(&shared.next, RELAXED);
        if ((test_random(&random) & 3) == 0 && next && gort__runq_steal_next(&shared, next))
            take(next);
        struct gort__g *g = gort__runq_steal(&mine, &shared);
        if (!g) {
            if (last)
                return NULL;
            last = gort__load(&stop, ACQUIRE);
            continue;
        }
        take(g);
        while ((g = gort__runq_get(&mine)) != NULL)
            take(g);
    }
}

static void put_counted(struct gort__g *g)
{
    struct gort__glist over;
    gort__runq_put(&shared, g, &over);
    uint32_t n = 0;
    for (struct gort__g *o = over.n ? over.first : NULL; o; o = o->link, n++)
        take(o);
    CHECK_EQ(n, over.n);
}

TEST(each_is_taken_once)
{
    pthread_t thieves[THIEVES];
    uint64_t random = test_seed();
    total = test_scaled(1000000, 100000);
    many = calloc((size_t)total, sizeof *many);
    taken = calloc((size_t)total, 1);
    CHECK(many && taken);
    reset(&shared, UINT32_MAX - (uint32_t)total / 2);
    for (uintptr_t i = 0; i < THIEVES; i++)
        CHECK_EQ(pthread_create(&thieves[i], NULL, thief_main, (void *)(i + 1)), 0);
    wait_for_others(THIEVES + 1);
    for (long i = 0; i < total;) {
        for (uint64_t burst = test_random(&random) % (2 * SIZE); burst && i < total; burst--, i++) {
            struct gort__g *old = &many[i];
            if (burst & 1)
                old = gort__runq_put_next(&shared, old);
            if (old)
                put_counted(old);
        }
        struct gort__g *g = NULL;
        for (uint64_t n = test_random(&random) % SIZE; n; n--)
            if ((g = get_any(false)) != NULL)
                take(g);
    }
    for (struct gort__g *g; (g = get_any(false)) != NULL;)
        take(g);
    gort__store(&stop, true, RELEASE);
    for (int i = 0; i < THIEVES; i++)
        pthread_join(thieves[i], NULL);
    for (long i = 0; i < total; i++)
        CHECK_MSG(taken[i] == 1, "number %ld was taken %d times", i, taken[i]);
}

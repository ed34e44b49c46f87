/* SPDX-License-Identifier: MIT */
/*
 * queue.c - the global run queue against a plain array: what goes in comes out, in order, also out of the
 * middle.
 * Covers: src/sched/core/queue.c src/sched/core/local.c
 */
#include "sched/life/life.h"

#include <string.h>

#include "test.h"

#define GS          1500 /* several segments, and a part of one */
#define SEGMENT_MAX (GORT_RUNQ_SIZE / 2 + 1)

static struct gort__g gs[GS], *expected[GS];
static int free_gs[GS], free_n, expected_n;
static struct gort__p p;

static void start(void)
{
    gort__sched.procs = 1;
    for (free_n = 0; free_n < GS; free_n++)
        free_gs[free_n] = free_n;
}

static void put(bool bound)
{
    struct gort__g *g = &gs[free_gs[--free_n]];
    g->flags = bound ? GORT_G_BOUND : 0;
    expected[expected_n++] = g;
    gort__queue_put(g);
}

/* The one at place i of the queue is what came out of it. */
static void taken(const struct gort__g *g, int i)
{
    CHECK(i < expected_n ? g == expected[i] : !g);
    if (!g)
        return;
    free_gs[free_n++] = (int)(g - gs);
    memmove(&expected[i], &expected[i + 1], (size_t)(--expected_n - i) * sizeof *expected);
}

static int first_bound(void)
{
    int i = 0;
    while (i < expected_n && !(expected[i]->flags & GORT_G_BOUND))
        i++;
    return i;
}

static void take_bound(void)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    struct gort__g *g = gort__queue_take_bound_locked();
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    taken(g, first_bound());
}

TEST(bound_ones_come_first_if_asked_for)
{
    uint64_t random = test_seed();
    start();
    for (int step = 0; step < 200000; step++) {
        /* Sometimes it grows, sometimes it shrinks; sometimes many are bound, sometimes hardly any. */
        bool grows = step / 1000 % 2 == 0;
        uint64_t rarely = step / 2000 % 2 ? 3 : 100;
        if (free_n && test_random(&random) % 3 >= (grows ? 1 : 2))
            put(test_random(&random) % rarely == 0);
        else if (test_random(&random) % 2)
            take_bound();
        else
            taken(gort__queue_take(&p, 1), 0);
        CHECK_EQ(gort__sched.global.list.n, expected_n);
        CHECK_EQ(gort__sched.global.n, expected_n);
    }
    while (expected_n)
        taken(gort__queue_take(&p, 1), 0);
    CHECK(!gort__sched.global.list.first && !gort__sched.global.list.last);
    take_bound();
}

TEST(a_ring_is_emptied_in_order)
{
    struct gort__glist overflow;
    start();
    put(false);
    for (int i = 0; i < 100; i++) {
        gort__runq_put(&p.runq, &gs[i], &overflow);
        CHECK_EQ(overflow.n, 0);
    }
    gort__runq_put_next(&p.runq, &gs[100]);
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__local_drain_locked(&p);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    CHECK(gort__runq_empty(&p.runq));
    taken(gort__queue_take(&p, 1), 0);
    CHECK_EQ(gort__queue_take(&p, 1), &gs[100]); /* it was to run next */
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort__queue_take(&p, 1), &gs[i]);
    CHECK_EQ(gort__sched.global.list.n, 0);
}

/* --- segments of several Ps --------------------------------------------------------------------------- */

static struct gort__p ps[3];
static int in_queue;

/* How many there were. */
static int empty_ring(struct gort__p *of)
{
    struct gort__g *g;
    int n = 0;
    for (; (g = gort__runq_get(&of->runq)) != NULL; n++)
        free_gs[free_n++] = (int)(g - gs);
    return n;
}

/* What one overflow of a ring makes, if there are enough for one. */
static void put_piece(struct gort__p *of)
{
    while (free_n && (int)gort__sched.global.list.n == in_queue) {
        struct gort__g *g = &gs[free_gs[--free_n]];
        g->flags = 0;
        gort__local_put(of, g);
    }
    in_queue = (int)gort__sched.global.list.n;
    empty_ring(of);
}

/* The queue as it is: so many Gs, none twice, and its ends. */
static void check_queue(void)
{
    static int seen[GS], round;
    struct gort__g *end = NULL, *last = NULL;
    int n = 0;
    round++;
    for (struct gort__g *first = gort__sched.global.list.first; first;
         last = first, first = first->segment.next) {
        CHECK(first->segment.n > 0 && first->segment.n <= SEGMENT_MAX);
        end = first;
        for (uint32_t i = 0; i < first->segment.n; i++, n++) {
            end = i ? end->link : first;
            CHECK_NE(seen[end - gs], round);
            seen[end - gs] = round;
        }
    }
    CHECK_EQ(n, in_queue);
    CHECK_EQ(gort__sched.global.list.n, in_queue);
    CHECK_EQ(gort__sched.global.list.last, last);
    CHECK(!gort__sched.global.end || gort__sched.global.end == end);
}

static void take_many(struct gort__p *by, uint32_t most)
{
    struct gort__g *g = gort__queue_take(by, most);
    CHECK_EQ(g != NULL, in_queue > 0);
    if (!g)
        return;
    free_gs[free_n++] = (int)(g - gs);
    uint32_t got = 1 + (uint32_t)empty_ring(by);
    CHECK(got <= most && got <= SEGMENT_MAX);
    in_queue -= (int)got;
}

TEST(pieces_of_several_ps)
{
    uint64_t random = test_seed();
    start();
    gort__sched.procs = 2;
    for (int i = 0; i < 3; i++)
        ps[i].id = i;
    for (int step = 0; step < 20000; step++) {
        struct gort__p *one = &ps[test_random(&random) % 3];
        switch (test_random(&random) % 6) {
        case 0:
            put_piece(one);
            break;
        case 1:
            take_many(one, UINT32_MAX);
            break;
        case 2:
            take_many(one, 1 + (uint32_t)(test_random(&random) % 20));
            break;
        case 3:
            gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
            struct gort__g *g = gort__queue_take_bound_locked();
            gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
            if (g) {
                g->flags = 0;
                free_gs[free_n++] = (int)(g - gs);
                in_queue--;
            }
            break;
        default:
            for (uint64_t n = test_random(&random) % 8; free_n && n; n--, in_queue++) {
                struct gort__g *single = &gs[free_gs[--free_n]];
                single->flags = test_random(&random) % 4 ? 0 : GORT_G_BOUND;
                gort__queue_put(single);
            }
        }
        check_queue();
    }
}

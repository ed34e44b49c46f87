/* SPDX-License-Identifier: MIT */
/*
 * sync_waiter.c - the queue of waiters that all objects share, and the sizes that users compile in.
 * Covers: src/sched/wait/wait.c include/gort/sync.h include/gort/group.h
 */
#include "sched/wait/wait.h"

#include <gort.h>

#include <string.h>

#include "test.h"

_Static_assert(sizeof(gort_mutex) == 8, "ABI");
_Static_assert(sizeof(gort_rwmutex) == 32 && sizeof(gort_cond) == 32 && sizeof(gort_wg) == 32, "ABI");
_Static_assert(sizeof(gort_once) == 32 && sizeof(gort_sem) == 32 && sizeof(gort_barrier) == 40, "ABI");
_Static_assert(sizeof(gort_case) == 24, "ABI");

#define N 8

/* The queue holds just these, in this order, from either end. */
static void check_queue(struct gort__waitq *q, struct gort__waiter *all, const char *order)
{
    struct gort__waiter *w = q->first, *before = NULL;
    for (; *order; order++, before = w, w = w->next) {
        CHECK(w == &all[*order - '0']);
        CHECK(w->prev == before);
        CHECK(w->queued);
    }
    CHECK(w == NULL);
    CHECK(q->last == before);
}

TEST(in_order_from_both_ends)
{
    struct gort__waitq q = {0};
    struct gort__waiter w[N] = {0};
    CHECK(gort__waitq_empty(&q));
    CHECK(gort__waitq_take(&q) == NULL);
    for (int i = 0; i < 5; i++)
        gort__waitq_push(&q, &w[i]);
    check_queue(&q, w, "01234");
    gort__waitq_push_front(&q, &w[5]);
    check_queue(&q, w, "501234");
    gort__waitq_remove(&q, &w[2]); /* in the middle */
    CHECK(!w[2].queued);
    check_queue(&q, w, "50134");
    gort__waitq_remove(&q, &w[5]); /* first */
    check_queue(&q, w, "0134");
    gort__waitq_remove(&q, &w[4]); /* last */
    check_queue(&q, w, "013");
    CHECK(gort__waitq_take(&q) == &w[0]);
    CHECK(gort__waitq_take(&q) == &w[1]);
    CHECK(!gort__waitq_empty(&q));
    CHECK(gort__waitq_take(&q) == &w[3]);
    CHECK(gort__waitq_empty(&q));
    gort__waitq_push_front(&q, &w[6]); /* into an empty one */
    check_queue(&q, w, "6");
    CHECK(gort__waitq_take(&q) == &w[6]);
    CHECK(q.first == NULL && q.last == NULL);
}

/* A record that somebody else has ended is dropped, not granted. */
TEST(claimed_elsewhere)
{
    struct gort__waitq q = {0};
    struct gort__waiter w[3] = {0};
    static struct gort__g g[3];
    for (int i = 0; i < 3; i++) {
        w[i].g = &g[i];
        w[i].needs_claim = true;
        g[i].wait_word = i == 1 ? GORT_CLAIM_ARMED : GORT_CLAIM_NONE;
        gort__waitq_push(&q, &w[i]);
    }
    CHECK(gort__waitq_take(&q) == &w[1]);
    CHECK(g[1].wait_slot == &w[1]);
    CHECK_EQ(g[1].wait_word, GORT_CLAIM_NONE);
    CHECK(!w[0].queued && !w[1].queued && w[2].queued);
    CHECK(gort__waitq_take(&q) == NULL);
    CHECK(!w[2].queued);
    CHECK(gort__waitq_empty(&q));
}

/* Those of an ended run are forgotten without a look at them: their memory is gone. */
TEST(another_run)
{
    struct gort__waitq q = {0};
    struct gort__waiter old = {0}, now = {0};
    gort__sched.run = 5;
    gort__waitq_push(&q, &old);
    CHECK(!gort__waitq_empty(&q));
    memset(&old, 0xee, sizeof old); /* a look at it would crash */
    gort__sched.run = 6;
    CHECK(gort__waitq_empty(&q));
    CHECK(gort__waitq_take(&q) == NULL);
    q.first = q.last = &old;
    q.run = 5;
    gort__waitq_push(&q, &now);
    CHECK(q.first == &now && q.last == &now && now.next == NULL && now.prev == NULL);
    q.first = q.last = &old;
    q.run = 5;
    gort__waitq_push_front(&q, &now);
    CHECK(q.first == &now && q.last == &now && now.next == NULL && now.prev == NULL);
    CHECK(gort__waitq_take(&q) == &now);
}

TEST(one_winner)
{
    static struct gort__g g;
    g.wait_word = GORT_CLAIM_ARMED;
    CHECK(gort__g_claim(&g));
    CHECK(!gort__g_claim(&g));
}

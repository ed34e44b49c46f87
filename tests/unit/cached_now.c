/* SPDX-License-Identifier: MIT */
/*
 * cached_now.c - roughly the time: never before now, and never far after it.
 * Covers: src/sched/core/cached_now.c
 */
#include <gort.h>

#include "sched/life/life.h"

#include "test.h"

#define CACHED_FOR INT64_C(100000)

static void look(struct gort__m *m)
{
    int64_t before = gort__os_now(), rough = gort__cached_now(m), after = gort__os_now();
    CHECK_GE(rough, before);
    CHECK_LE(rough, after + CACHED_FOR);
}

/* Looks after each other, and looks with time in between: less and more than the time for which an answer is
 * kept. */
TEST(between_now_and_soon)
{
    static struct gort__m m;
    gort__cached_now_init();
    for (int i = 0; i < 1000000; i++)
        look(&m);
    for (int64_t until = gort__os_now() + 200 * INT64_C(1000000), pause = 0; gort__os_now() < until;) {
        int64_t from = gort__os_now();
        pause = (pause + 7919) % 150000;
        while (gort__os_now() < from + pause)
            ;
        look(&m);
    }
}

/* A counter that has gone back, as after a suspend, is noticed. */
TEST(counter_that_went_back)
{
    static struct gort__m m;
    gort__cached_now_init();
    look(&m);
    m.cached.ticks += UINT64_C(1) << 40;
    m.cached.now -= 1000 * CACHED_FOR;
    look(&m);
}

static int in_a_run(void *arg)
{
    (void)arg;
    look(gort__m_self());
    return 0;
}

TEST(in_a_run)
{
    CHECK_EQ(gort_run(in_a_run, NULL), 0);
}

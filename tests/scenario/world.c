/* SPDX-License-Identifier: MIT */
/*
 * world.c - stopping the world: while it stands nobody else makes a step, and afterwards all go on; and the small calls
 * that tell things: errors in words, the version.
 */
#include "scenario/waiting.h"

#define HOGS 3

static atomic_long steps[HOGS];
static atomic_bool over;

static void hog(long i)
{
    while (!atomic_load(&over))
        atomic_fetch_add(&steps[i], 1);
}

static void talker(gort_chan *ch)
{
    long value = 0;
    while (gort_chan_send(ch, &value) == 0 && gort_chan_recv(ch, &value) == 1)
        atomic_fetch_add(&steps[HOGS - 1], 1);
}

static void sum(long *to)
{
    for (int i = 0; i < HOGS; i++)
        to[i] = atomic_load(&steps[i]);
}

TEST_GO(nobody_moves_while_it_stands, .procs = "1,2,4", .fuzz = true)
{
    gort_chan *ch = gort_chan_new(sizeof(long), 1);
    long before[HOGS], after[HOGS];
    for (long i = 0; i < HOGS - 1; i++)
        CHECK_EQ(GORT_GO(hog, i), 0);
    CHECK_EQ(GORT_GO(talker, ch), 0);
    for (int round = 0; round < 5; round++) {
        sum(before);
        do { /* all have moved since the last time */
            gort_sleep(GORT_MS);
            sum(after);
        } while (after[0] == before[0] || after[1] == before[1] || after[2] == before[2]);
        CHECK_EQ(gort_world_stop(), 0);
        CHECK_EQ(gort_world_stop(), -EBUSY);
        sum(before);
        for (int64_t end = gort_now() + 3 * GORT_MS; gort_now() < end;)
            ;
        sum(after);
        CHECK_EQ(gort_world_start(), 0);
        CHECK_EQ(gort_world_start(), -EPERM);
        for (int i = 0; i < HOGS; i++)
            CHECK_EQ(after[i], before[i]);
    }
    atomic_store(&over, true);
    gort_chan_close(ch);
    settle();
    gort_chan_unref(ch);
}

TEST(there_is_no_world_without_a_run)
{
    CHECK_EQ(gort_world_stop(), -ESRCH);
    CHECK_EQ(gort_world_start(), -EPERM);
}

TEST(errors_have_words)
{
    static const int known[] = {0, EBUSY, ESRCH, ECANCELED, ETIMEDOUT, EAGAIN, EPIPE, ENOENT};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CHECK_STR(gort_strerror(-known[i]), gort_strerror(known[i]));
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(gort_strerror(known[i]), gort_strerror(known[k])) != 0);
    }
    CHECK_STR(gort_strerror(99999), "unknown error");
    CHECK_STR(gort_strerror(INT32_MIN), "unknown error");
    CHECK(strlen(gort_version()) > 0);
}

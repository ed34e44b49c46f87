/* SPDX-License-Identifier: MIT */
/*
 * select_many.c - selects over thousands of channels: the time they take, who is chosen, nothing lost.
 * Covers: src/sync/select.c
 */
#include "waiting.h"

#define MOST 48000
#define FEW  100

enum { BOTH = 1000, ROUNDS = 300 };

static gort_chan *chans[BOTH];
static gort_case cases[MOST];

static void make_chans(size_t n)
{
    for (size_t i = 0; i < n; i++)
        CHECK((chans[i] = gort_chan_new(sizeof(long), 0)) != NULL);
}

static void drop_chans(size_t n)
{
    for (size_t i = 0; i < n; i++)
        gort_chan_unref(chans[i]);
}

/* The shortest of three tries in which nothing happens: of one select over n cases, or one receive after the
 * other. */
static int64_t time_of(size_t n, bool selects)
{
    int64_t best = INT64_MAX;
    for (size_t i = 0; i < n; i++)
        cases[i] = (gort_case){.ch = chans[i * 7919 % FEW], .op = GORT_RECV};
    for (int i = 0; i < 3; i++) {
        int64_t begun = gort_now();
        if (selects)
            CHECK_EQ(gort_select(cases, n, GORT_TRY), -EAGAIN);
        for (size_t k = 0; !selects && k < n; k++)
            CHECK_EQ(gort_chan_recv_until(cases[k].ch, NULL, GORT_TRY), -EAGAIN);
        int64_t took = gort_now() - begun;
        best = took < best ? took : best;
    }
    return best;
}

/* To sort by the square of their number would take thousands of times as long, with nobody else on that P. */
TEST_GO(the_time_grows_with_the_cases, .serial = true)
{
    make_chans(FEW);
    int64_t each = time_of(MOST, false), all = time_of(MOST, true);
    CHECK_MSG(all < 200 * each, "%ld us one by one, %ld us in a select", (long)(each / 1000),
              (long)(all / 1000));
    drop_chans(FEW);
}

/* A channel that is listed many times: whoever serves the waiting select serves a random one of its cases. */
static int choose_one_of_the_same(gort_chan *ch, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cases[i] = (gort_case){.ch = i % 3 ? ch : NULL, .op = GORT_RECV};
    int k = gort_select(cases, n, soon());
    CHECK_GE(k, 0);
    CHECK(cases[k].ch == ch && cases[k].result == 1);
    return k;
}

static void send_some(gort_chan *ch, int n)
{
    for (long i = 0; i < n; i++)
        CHECK_EQ(gort_chan_send_until(ch, &i, soon()), 0);
}

/* k of the cases have the channel, each of them as often as any other. */
static void choose_often(size_t n, int k)
{
    int seen[30] = {0}, mean = 200;
    gort_chan *ch = gort_chan_new(sizeof(long), 0);
    CHECK_EQ(GORT_GO(send_some, ch, k * mean), 0);
    for (int i = 0; i < k * mean; i++)
        seen[choose_one_of_the_same(ch, n)]++;
    for (size_t i = 0; i < n; i++) /* 8 sigma are 110 */
        CHECK_MSG(i % 3 ? abs(seen[i] - mean) < 110 : seen[i] == 0, "case %zu: %d times", i, seen[i]);
    settle();
    gort_chan_unref(ch);
}

TEST_GO(any_of_the_same_channel_may_be_chosen, .procs = "1,2")
{
    choose_often(30, 20);
    choose_often(15, 10); /* as many as need no memory */
}

/* Two goroutines over the same thousand channels, one lists them the other way round. */
static atomic_long sent, received;

static void send_to_any(gort_case *own)
{
    static const long value = 1;
    for (size_t i = 0; i < BOTH; i++)
        own[i] = (gort_case){.ch = chans[BOTH - 1 - i], .send = &value, .op = GORT_SEND};
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_GE(gort_select(own, BOTH, soon()), 0);
        atomic_fetch_add(&sent, 1);
    }
}

TEST_GO(many_against_many, .procs = "1,2,4,64", .fuzz = true)
{
    long value = 0;
    make_chans(BOTH);
    for (size_t i = 0; i < BOTH; i++)
        cases[i] = (gort_case){.ch = chans[i], .recv = &value, .op = GORT_RECV};
    CHECK_EQ(GORT_GO(send_to_any, cases + BOTH), 0);
    CHECK_EQ(GORT_GO(send_to_any, cases + 2 * BOTH), 0);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int k = gort_select(cases, BOTH, soon());
        CHECK_GE(k, 0);
        CHECK_EQ(cases[k].result, 1);
        atomic_fetch_add(&received, value);
        value = 0;
    }
    settle();
    CHECK_EQ(atomic_load(&received), 2 * ROUNDS);
    CHECK_EQ(atomic_load(&sent), 2 * ROUNDS);
    drop_chans(BOTH);
}

/* SPDX-License-Identifier: MIT */
/*
 * select_bodies.c - GORT_SELECT: the cases stand beside their bodies, and just one body runs.
 * Covers: include/gort/select.h src/sync/select.c
 */
#include "waiting.h"

/* Which body ran, and what it saw. */
static int choose(gort_chan *in, gort_chan *out, int64_t deadline, int *result)
{
    int got = -1, value = 7, evaluated = 0, ran = 0, which = -1;
    GORT_SELECT(deadline)
    {
        GORT_ON_RECV((evaluated++, in), &got)
        {
            ran++;
            which = 0;
            *result = GORT_SELECTED;
            CHECK(*result == 0 || got == 3);
        }
        GORT_ON_SEND((evaluated++, out), &value)
        {
            ran++;
            which = 1;
            *result = GORT_SELECTED;
        }
        GORT_ON_ERROR
        {
            ran++;
            which = 2;
            *result = GORT_SELECTED;
        }
    }
    CHECK_EQ(ran, 1);
    CHECK_EQ(evaluated, 2);
    return which;
}

TEST_GO(bodies_beside_their_cases, .procs = "1,2")
{
    gort_chan *in = gort_chan_new(sizeof(int), 1), *out = gort_chan_new(sizeof(int), 1);
    int v = 3, result = 99;
    CHECK_EQ(choose(in, NULL, GORT_TRY, &result), 2);
    CHECK_EQ(result, -EAGAIN);
    CHECK_EQ(choose(in, NULL, gort_in(GORT_MS), &result), 2);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_EQ(choose(in, out, GORT_FOREVER, &result), 1);
    CHECK_EQ(result, 0);
    CHECK_EQ(gort_chan_recv(out, &v), 1);
    CHECK_EQ(v, 7);
    v = 3;
    CHECK_EQ(gort_chan_send(in, &v), 0);
    CHECK_EQ(choose(in, NULL, GORT_FOREVER, &result), 0);
    CHECK_EQ(result, 1);
    CHECK_EQ(gort_chan_close(out), 0);
    CHECK_EQ(choose(in, out, GORT_FOREVER, &result), 1);
    CHECK_EQ(result, -EPIPE);
    CHECK_EQ(gort_chan_close(in), 0);
    CHECK_EQ(choose(in, NULL, GORT_FOREVER, &result), 0);
    CHECK_EQ(result, 0);
    gort_chan_unref(in);
    gort_chan_unref(out);
}

static void send_in_turns(void *pair)
{
    gort_chan **ch = pair;
    for (int i = 0; i < 200; i++)
        CHECK_EQ(gort_chan_send(ch[i % 2], &i), 0);
    CHECK_EQ(gort_chan_close(ch[0]), 0);
    CHECK_EQ(gort_chan_close(ch[1]), 0);
}

/* break and continue leave the select, not the loop around it; an empty one waits for its deadline. */
TEST_GO(a_loop_around_bodies, .procs = "1,2,4", .fuzz = true)
{
    gort_chan *ch[2] = {gort_chan_new(sizeof(int), 0), gort_chan_new(sizeof(int), 0)},
              *open[2] = {ch[0], ch[1]};
    CHECK_EQ(gort_go(send_in_turns, ch), 0);
    int v, total = 0, rounds = 0;
    for (; open[0] || open[1]; rounds++) {
        GORT_SELECT(GORT_FOREVER)
        {
            GORT_ON_RECV(open[0], &v)
            {
                if (GORT_SELECTED == 0) {
                    open[0] = NULL;
                    break;
                }
                CHECK_EQ(v % 2, 0);
                total += v;
            }
            GORT_ON_CASE(((gort_case){.ch = open[1], .recv = &v, .op = GORT_RECV}))
            {
                if (GORT_SELECTED == 0) {
                    open[1] = NULL;
                    continue;
                }
                CHECK_EQ(v % 2, 1);
                total += v;
            }
        }
    }
    CHECK_EQ(rounds, 202);
    CHECK_EQ(total, 199 * 100);
    GORT_SELECT(gort_in(GORT_MS))
    {
        GORT_ON_ERROR
        {
            CHECK_EQ(GORT_SELECTED, -ETIMEDOUT);
            rounds = 0;
        }
    }
    CHECK_EQ(rounds, 0);
    gort_chan_unref(ch[0]);
    gort_chan_unref(ch[1]);
}

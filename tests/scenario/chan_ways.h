/* SPDX-License-Identifier: MIT */
/* chan_ways.h - the ways to send and to receive one value: plain, timed, and by a select. */
#ifndef GORT_TEST_CHAN_WAYS_H
#define GORT_TEST_CHAN_WAYS_H

#include "waiting.h"

enum { PLAIN, UNTIL, SELECT, SELECT2, KINDS };

/* One receive, in one of the ways to do it. */
static UNUSED int receive(gort_chan *ch, void *value, int kind)
{
    gort_case cases[] = {{.op = GORT_RECV}, {.ch = ch, .recv = value, .op = GORT_RECV}, {.op = GORT_SEND}};
    switch (kind % KINDS) {
    case PLAIN:
        return gort_chan_recv(ch, value);
    case UNTIL:
        return gort_chan_recv_until(ch, value, soon());
    case SELECT:
        CHECK_EQ(gort_select(&cases[1], 1, GORT_FOREVER), 0);
        return cases[1].result;
    default:
        CHECK_EQ(gort_select(cases, 3, soon()), 1);
        return cases[1].result;
    }
}

static UNUSED int send(gort_chan *ch, const void *value, int kind)
{
    gort_case cases[] = {{.op = GORT_RECV}, {.ch = ch, .send = value, .op = GORT_SEND}, {.op = GORT_SEND}};
    switch (kind % KINDS) {
    case PLAIN:
        return gort_chan_send(ch, value);
    case UNTIL:
        return gort_chan_send_until(ch, value, soon());
    case SELECT:
        CHECK_EQ(gort_select(&cases[1], 1, GORT_FOREVER), 0);
        return cases[1].result;
    default:
        CHECK_EQ(gort_select(cases, 3, soon()), 1);
        return cases[1].result;
    }
}

#endif

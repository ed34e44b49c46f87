/* SPDX-License-Identifier: MIT */
/*
 * gort/select.h - GORT_SELECT: gort_select with a block of code for each case.
 *
 *     GORT_SELECT(gort_in(GORT_SEC)) {
 *         GORT_ON_RECV(jobs, &job) { run(job); }
 *         GORT_ON_SEND(results, &result) { sent++; }
 *         GORT_ON_CASE(ticks_case_recv(ticks, &tick)) { beats++; }
 *         GORT_ON_ERROR { return GORT_SELECTED; }
 *     }
 *
 * The argument of GORT_SELECT is a deadline. At most one block runs: that of the case that happened, or that
 * of GORT_ON_ERROR if the select ended with -ETIMEDOUT, -EAGAIN (the deadline GORT_TRY), -ECANCELED or
 * -ENOMEM. Without GORT_ON_ERROR no block runs then. In a block GORT_SELECTED is the result: what
 * gort_chan_recv (1 or 0) or gort_chan_send (0 or -EPIPE) would have returned, or the error.
 *
 * GORT_ON_CASE takes a gort_case, for typed channels (gort/typed.h). Channels and addresses are evaluated
 * once. Put nothing between the blocks: the body of the select is executed twice, to collect the cases and to
 * run one block. `break` and `continue` in a block leave the select. Up to 16 cases; more are fatal. May
 * park.
 */
#ifndef GORT_SELECT_H
#define GORT_SELECT_H

#include "base.h"
#include "chan.h"

#define GORT_PRIV_CASES 16

typedef struct gort_priv_select {
    int64_t deadline;
    int pass;  /* 0: not begun; 1: collects the cases; 2: runs the block of the case that happened */
    int n;     /* pass 1: number of cases collected; pass 2: number of cases gone past */
    int index; /* what gort_select returned */
    gort_case cases[GORT_PRIV_CASES];
} gort_priv_select;

GORT_BEGIN_DECLS
/* Begins the next pass; returns false after the last one. Calls gort_select between the two. */
GORT_API bool gort_priv_select_step(gort_priv_select *s);
/* Collects a case and returns false. More than 16 cases are fatal. */
GORT_API bool gort_priv_select_add(gort_priv_select *s, gort_case c);
GORT_END_DECLS

static inline gort_priv_select gort_priv_select_make(int64_t deadline)
{
    gort_priv_select s;
    s.deadline = deadline;
    s.pass = s.n = s.index = 0;
    return s;
}

static inline int gort_priv_select_result(const gort_priv_select *s)
{
    return s->index < 0 ? s->index : s->cases[s->index].result;
}

#define GORT_SELECT(deadline)                                                                                \
    for (gort_priv_select gort_priv_s = gort_priv_select_make(deadline); gort_priv_select_step(&gort_priv_s);)
#define GORT_ON_CASE(c)                                                                                      \
    if (gort_priv_s.pass == 1 ? gort_priv_select_add(&gort_priv_s, c) : gort_priv_s.n++ == gort_priv_s.index)
#define GORT_ON_RECV(ch, address) GORT_ON_CASE(gort_priv_case_recv(ch, address))
#define GORT_ON_SEND(ch, address) GORT_ON_CASE(gort_priv_case_send(ch, address))
#define GORT_ON_ERROR             if (gort_priv_s.pass == 2 && gort_priv_s.index < 0)
#define GORT_SELECTED             gort_priv_select_result(&gort_priv_s)

#endif

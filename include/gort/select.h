/* SPDX-License-Identifier: MIT */
/*
 * gort/select.h - a select whose cases stand beside their bodies.
 *
 *     GORT_SELECT(gort_in(GORT_SEC)) {
 *         GORT_ON_RECV(jobs, &job) { run(&job); }
 *         GORT_ON_SEND(results, &result) { sent++; }
 *         GORT_ON_CASE(ticks_case_recv(ticks, &tick)) { ... }        a typed channel (gort/typed.h)
 *         GORT_ON_ERROR { return GORT_SELECTED; }                    -ETIMEDOUT, -EAGAIN (GORT_TRY), -ECANCELED
 *     }
 *
 * Just one body runs; GORT_SELECTED in it is what the plain call would have returned (1 or 0 for a receive, 0 or
 * -EPIPE for a send). Channels and addresses are evaluated once. `break` and `continue` leave the select. Up to 16
 * cases.
 */
#ifndef GORT_SELECT_H
#define GORT_SELECT_H

#include "base.h"
#include "chan.h"

#define GORT_PRIV_CASES 16

typedef struct gort_priv_select {
    int64_t deadline;
    int pass;  /* 0: before; 1: cases are collected; 2: the body of the one that happened runs */
    int n;     /* cases collected, then: how many have been passed */
    int index; /* what gort_select returned */
    gort_case cases[GORT_PRIV_CASES];
} gort_priv_select;

GORT_BEGIN_DECLS
/* Goes to the next pass; false after the last one. */
GORT_API bool gort_priv_select_step(gort_priv_select *s);
/* Collects one case; false. More than 16 are fatal. */
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

/* SPDX-License-Identifier: MIT */
/*
 * ticker.c - a channel that gets the time in regular intervals.
 *
 * Why: a channel of one element and a send that does not wait: a receiver that is late finds the
 * newest tick that fitted, never a burst. The next tick is counted from the last one's due time, not
 * from when it came, so nothing accumulates.
 * Threads: any; tick by whoever runs the heap of timers; `_locked` functions with the ticker\'s lock held.
 */
#include <gort/ticker.h>

#include "base/fatal.h"
#include "mem/alloc.h"
#include "sched/timers/timer.h"
#include "sched/verbs.h"

struct gort_ticker {
    struct gort__lock lock; /* rank GORT_RANK_NONE: held around a send that does not wait; guards the rest */
    bool stopped;
    int64_t when, period;
    gort_chan *ch;
    struct gort__timer heap;
    struct gort__timer_reserve reserve;
};

static void tick(void *arg);

static void arm_locked(gort_ticker *t)
{
    gort__timer_set_sure(&t->heap, &t->reserve, t->when, NULL, tick, t);
}

static void tick(void *arg)
{
    gort_ticker *t = arg;
    int64_t now = gort__os_now();
    gort__lock_take(&t->lock, GORT_RANK_NONE);
    if (!t->stopped) {
        gort_chan_send_until(t->ch, &now, GORT_TRY); /* full: the tick is lost */
        int64_t missed = (now - t->when) / t->period;
        if (__builtin_add_overflow(t->when, (missed + 1) * t->period, &t->when))
            t->when = GORT_FOREVER;
        arm_locked(t);
    }
    gort__lock_release(&t->lock, GORT_RANK_NONE);
}

gort_ticker *gort_ticker_new(int64_t period)
{
    if (period <= 0)
        gort__fatal("gort_ticker_new: the period must be greater than 0");
    gort_ticker *t = gort__enter_light_alloc(sizeof *t);
    gort_chan *ch = gort_chan_new(sizeof(int64_t), 1);
    if (!t || !ch) {
        gort_chan_unref(ch);
        if (t)
            gort__enter_light_free(t, sizeof *t);
        return NULL;
    }
    struct gort__m *m = gort__enter();
    *t = (gort_ticker){.ch = ch, .stopped = !m, .period = period, .when = gort_in(period)};
    if (m) {                                       /* else there is no run to tick in */
        gort__lock_take(&t->lock, GORT_RANK_NONE); /* it may tick at once */
        arm_locked(t);
        gort__lock_release(&t->lock, GORT_RANK_NONE);
        gort__leave(m);
    }
    return t;
}

/* A freed ticker has no channel, as long as its memory is not used again. */
static void check(const gort_ticker *t, const char *call)
{
    GORT_NEED(call, "ticker", t);
    if (!t->ch)
        gort__fatal("%s: use of a freed ticker", call);
}

gort_chan *gort_ticker_chan(gort_ticker *t)
{
    check(t, "gort_ticker_chan");
    return t->ch;
}

/* No tick is under way afterwards, and none waits in the channel. */
static void stop(gort_ticker *t)
{
    int64_t old;
    struct gort__m *light = gort__enter_light();
    gort__lock_take(&t->lock, GORT_RANK_NONE);
    t->stopped = true;
    struct gort__timer last = t->heap; /* a copy: somebody else may start it again meanwhile */
    gort__lock_release(&t->lock, GORT_RANK_NONE);
    gort__timer_del(&last);
    gort__leave_light(&light);
    while (gort_chan_recv_until(t->ch, &old, GORT_TRY) == 1)
        ;
}

void gort_ticker_reset(gort_ticker *t, int64_t period)
{
    check(t, "gort_ticker_reset");
    if (period <= 0)
        gort__fatal("gort_ticker_reset: the period must be greater than 0");
    stop(t);
    struct gort__m *m = gort__enter();
    gort__lock_take(&t->lock, GORT_RANK_NONE);
    t->period = period;
    t->when = gort_in(period);
    if (m &&
        t->stopped) { /* else there is no run to tick in; or another reset came in between, whose timer then goes on */
        t->stopped = false;
        arm_locked(t);
    }
    gort__lock_release(&t->lock, GORT_RANK_NONE);
    if (m)
        gort__leave(m);
}

void gort_ticker_free(gort_ticker *t)
{
    if (!t)
        return;
    check(t, "gort_ticker_free");
    stop(t);
    gort_chan_unref(t->ch);
    t->ch = NULL;
    GORT_ENTER_LIGHT();
    gort__alloc_free(t, sizeof *t);
}

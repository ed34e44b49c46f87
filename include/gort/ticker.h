/* SPDX-License-Identifier: MIT */
/*
 * gort/ticker.h - a channel that gets the time in regular intervals.
 *
 * The channel holds one tick: a slow receiver loses ticks, it never gets a burst of old ones. Ticks come at multiples
 * of the period from the start, they do not drift.
 */
#ifndef GORT_TICKER_H
#define GORT_TICKER_H

#include "base.h"
#include "chan.h"

GORT_BEGIN_DECLS

typedef struct gort_ticker gort_ticker;

/* period > 0, else fatal. NULL: no memory. Never parks. */
GORT_API gort_ticker *gort_ticker_new(int64_t period);
/* Its channel of int64_t, each the time (gort_now) of the tick. Borrowed; never closed. */
GORT_API gort_chan *gort_ticker_chan(gort_ticker *ticker);
/* A new period from now on; an old tick that was not received is gone. Never parks. */
GORT_API void gort_ticker_reset(gort_ticker *ticker, int64_t period);
/* No tick comes after it, and one that was not received is gone. NULL is fine. Never parks. */
GORT_API void gort_ticker_free(gort_ticker *ticker);

GORT_END_DECLS
#endif

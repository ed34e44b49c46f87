/* SPDX-License-Identifier: MIT */
/*
 * gort/ticker.h - channels that receive the time at regular intervals.
 *
 * The channel holds one tick. A tick that comes while the channel is full is lost, so a slow receiver never
 * gets a burst of old ticks. Ticks come at multiples of the period from the start and do not drift. They stop
 * when the run ends; outside a run none come. None of these functions parks.
 */
#ifndef GORT_TICKER_H
#define GORT_TICKER_H

#include "base.h"
#include "chan.h"

GORT_BEGIN_DECLS

typedef struct gort_ticker gort_ticker;

/* Returns a new ticker; NULL if there is no memory. period <= 0 is fatal, as it is for gort_ticker_reset. */
GORT_API gort_ticker *gort_ticker_new(int64_t period);
/*
 * Returns the ticker's channel, of int64_t: each value is the time (gort_now) of a tick. The channel belongs
 * to the ticker and is never closed.
 */
GORT_API gort_chan *gort_ticker_chan(gort_ticker *ticker);
/* Starts a new period now. A tick that was not received is dropped. */
GORT_API void gort_ticker_reset(gort_ticker *ticker, int64_t period);
/*
 * Frees the ticker: no tick comes after it, and a tick that was not received is dropped. NULL does nothing.
 */
GORT_API void gort_ticker_free(gort_ticker *ticker);

GORT_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/* time.c - misuse of timers and tickers: one line that says what and who, the dump, abort; J2. */
#include "misuse.h"

MISUSE(a_timer_for_nothing, "gort_timer_new: NULL function")
{
    return gort_timer_new(GORT_SEC, 0, NULL, NULL) != NULL;
}

MISUSE(a_ticker_without_a_period, "gort_ticker_new: the period must be greater than 0")
{
    return gort_ticker_new(0) != NULL;
}

MISUSE(a_ticker_set_to_no_period, "gort_ticker_reset: the period must be greater than 0")
{
    gort_ticker *t = gort_ticker_new(GORT_SEC);
    CHECK(t);
    gort_ticker_reset(t, -1);
    return 0;
}

MISUSE(stop_no_timer, "gort_timer_stop: NULL timer")
{
    return gort_timer_stop(NULL);
}

MISUSE(reset_no_timer, "gort_timer_reset: NULL timer")
{
    return gort_timer_reset(NULL, GORT_SEC, 0);
}

MISUSE(wait_for_no_timer, "gort_timer_stop_wait: NULL timer")
{
    return gort_timer_stop_wait(NULL);
}

MISUSE(channel_of_no_ticker, "gort_ticker_chan: NULL ticker")
{
    return gort_ticker_chan(NULL) != NULL;
}

MISUSE(reset_no_ticker, "gort_ticker_reset: NULL ticker")
{
    gort_ticker_reset(NULL, GORT_SEC);
    return 0;
}

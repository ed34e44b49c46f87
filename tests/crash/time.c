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

/* SPDX-License-Identifier: MIT */
/*
 * time.c - misuse of timers and tickers: one line that says what and who, the dump, abort.
 * Covers: src/time/timer.c src/time/ticker.c
 */
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

/* --- what was freed, as long as its memory is not used again -------------------------------------------- */

static void nothing(void *unused)
{
    (void)unused;
}

static gort_timer *freed_timer(void)
{
    gort_timer *t = gort_timer_new(GORT_SEC, 0, nothing, NULL);
    gort_timer_free(t);
    return t;
}

FREED(stop_a_freed_timer, "use of a freed timer")
{
    return gort_timer_stop(freed_timer());
}

FREED(reset_a_freed_timer, "use of a freed timer")
{
    return gort_timer_reset(freed_timer(), 60 * GORT_SEC, 0);
}

FREED(free_a_timer_twice, "use of a freed timer")
{
    gort_timer_free(freed_timer());
    return 0;
}

FREED(free_a_timer_that_was_called_twice, "use of a freed timer")
{
    gort_timer *t = gort_timer_new(0, 0, nothing, NULL);
    gort_sleep(GORT_MS);
    gort_timer_stop_wait(t);
    gort_timer_free(t);
    gort_timer_free(t);
    return 0;
}

FREED(channel_of_a_freed_ticker, "gort_ticker_chan: use of a freed ticker")
{
    gort_ticker *t = gort_ticker_new(GORT_SEC);
    gort_ticker_free(t);
    return gort_ticker_chan(t) != NULL;
}

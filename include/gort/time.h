/* SPDX-License-Identifier: MIT */
/* gort/time.h - durations and deadlines: nanoseconds in an int64_t, on the monotonic clock. */
#ifndef GORT_TIME_H
#define GORT_TIME_H

#include "base.h"

GORT_BEGIN_DECLS

#define GORT_US  INT64_C(1000)
#define GORT_MS  INT64_C(1000000)
#define GORT_SEC INT64_C(1000000000)

/* Deadlines with a meaning of their own: never; and do not wait at all (-EAGAIN instead). Any call that waits until a deadline
 * may return -ENOMEM when there is no memory for one more alarm; nothing has happened then. */
#define GORT_FOREVER INT64_MAX
#define GORT_TRY     INT64_MIN

/* The monotonic clock. Never parks; callable from anywhere. */
GORT_API int64_t gort_now(void);
/* The deadline that lies ns from now; saturates at GORT_FOREVER. Never parks; callable from anywhere. */
GORT_API int64_t gort_in(int64_t ns);

/* Sleeps; zero, negative and passed: not at all. 0; -ECANCELED or -ETIMEDOUT when a context ends it early. May park. */
GORT_API int gort_sleep(int64_t ns);
GORT_API int gort_sleep_until(int64_t deadline);

/*
 * A timer calls fn(arg) in a goroutine of its own: once after `first`, and with period > 0 every `period` after that,
 * without drifting. A call of a periodic one that would begin while the one before still runs is left out. Timers of a
 * run end with it; without a run none is started. One for a second or more may come 100 us late, one for half a minute or more 50 ms.
 */
typedef struct gort_timer gort_timer;

/* NULL: no memory. Never parks. */
GORT_API gort_timer *gort_timer_new(int64_t first, int64_t period, void (*fn)(void *), void *arg);
/* True: it prevented a call that would have come. After it no call begins. Never parks; legal inside fn. */
GORT_API bool gort_timer_stop(gort_timer *timer);
/* Starts it anew, which needs no memory. True: it was active. Nothing of the former setting happens afterwards. Never
 * parks; legal inside fn. */
GORT_API bool gort_timer_reset(gort_timer *timer, int64_t first, int64_t period);
/* Stops it and waits until fn is not running. 0; -EDEADLK inside fn; -ECANCELED. May park. */
GORT_API int gort_timer_stop_wait(gort_timer *timer);
/* Stops it and frees it once fn has returned. Legal inside fn. NULL is fine. Never parks. */
GORT_API void gort_timer_free(gort_timer *timer);

GORT_END_DECLS
#endif

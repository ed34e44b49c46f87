/* SPDX-License-Identifier: MIT */
/* gort/time.h - durations and deadlines: nanoseconds in an int64_t, on the monotonic clock. */
#ifndef GORT_TIME_H
#define GORT_TIME_H

#include "base.h"

GORT_BEGIN_DECLS

#define GORT_US  INT64_C(1000)
#define GORT_MS  INT64_C(1000000)
#define GORT_SEC INT64_C(1000000000)

/*
 * A deadline is an absolute time of the monotonic clock. A call that waits until a deadline returns
 * -ETIMEDOUT when it has passed, but what can happen without waiting happens even if the deadline has passed.
 * Two deadlines are special: GORT_FOREVER never passes, and GORT_TRY means not to wait at all (-EAGAIN
 * instead). A call that has to wait until a deadline may also return -ENOMEM, if there is no memory for a
 * timer; then nothing has happened.
 */
#define GORT_FOREVER INT64_MAX
#define GORT_TRY     INT64_MIN

/* Returns the time of the monotonic clock. Never parks. Callable from anywhere. */
GORT_API int64_t gort_now(void);
/*
 * Returns the deadline ns from now, at most GORT_FOREVER and at least 0. ns may be negative: that deadline
 * has passed. (In debug builds a deadline more than a minute before the start of the run is fatal where it is
 * used: it is a duration passed by mistake.) Never parks. Callable from anywhere.
 */
GORT_API int64_t gort_in(int64_t ns);

/*
 * Sleeps for ns, or until deadline; returns at once if ns <= 0 or the deadline has passed. Returns 0;
 * -ECANCELED or -ETIMEDOUT if the context in use ends the sleep early; -ENOMEM as above. Also works outside a
 * run. May park.
 */
GORT_API int gort_sleep(int64_t ns);
GORT_API int gort_sleep_until(int64_t deadline);

/*
 * A timer. It calls fn(arg) after `first` nanoseconds, and if period > 0, every `period` nanoseconds after
 * that, without drifting. Each call runs in a goroutine of its own. A periodic call is left out if the one
 * before it still runs. Timers stop when their run ends, and none starts outside a run. A timer for a second
 * or more may be another 100 us late. To use a timer after
 * it was freed is fatal as long as its memory has not been used again.
 */
typedef struct gort_timer gort_timer;

/* Returns a new timer, started; NULL if there is no memory. Never parks. */
GORT_API gort_timer *gort_timer_new(int64_t first, int64_t period, void (*fn)(void *), void *arg);
/*
 * Stops the timer: no call begins after it. Returns true if it prevented a call that would have come. A call
 * that runs already goes on. Never parks. May be called in fn.
 */
GORT_API bool gort_timer_stop(gort_timer *timer);
/*
 * Starts the timer again with new times; needs no memory. No call of the old times begins after it. Returns
 * true if the timer was active. Never parks. May be called in fn.
 */
GORT_API bool gort_timer_reset(gort_timer *timer, int64_t first, int64_t period);
/*
 * Stops the timer and waits until no call of fn runs. No context ends this wait early. Returns 0; -EDEADLK in
 * fn; -ECANCELED in a plain thread, if the run ends. May park.
 */
GORT_API int gort_timer_stop_wait(gort_timer *timer);
/*
 * Stops the timer, and frees it when no call of fn runs any more. NULL does nothing. Never parks. May be
 * called in fn.
 */
GORT_API void gort_timer_free(gort_timer *timer);

GORT_END_DECLS
#endif

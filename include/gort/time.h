/* SPDX-License-Identifier: MIT */
/* gort/time.h - durations and deadlines: nanoseconds in an int64_t, on the monotonic clock. */
#ifndef GORT_TIME_H
#define GORT_TIME_H

#include "base.h"

GORT_BEGIN_DECLS

#define GORT_US  INT64_C(1000)
#define GORT_MS  INT64_C(1000000)
#define GORT_SEC INT64_C(1000000000)

/* Deadlines with a meaning of their own: never; and do not wait at all (-EAGAIN instead). */
#define GORT_FOREVER INT64_MAX
#define GORT_TRY     INT64_MIN

/* The monotonic clock. Never parks; callable from anywhere. */
GORT_API int64_t gort_now(void);
/* The deadline that lies ns from now; saturates at GORT_FOREVER. Never parks; callable from anywhere. */
GORT_API int64_t gort_in(int64_t ns);

GORT_END_DECLS
#endif

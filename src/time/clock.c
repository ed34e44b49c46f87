/* SPDX-License-Identifier: MIT */
/*
 * clock.c - the monotonic clock and deadlines on it.
 * Threads: any; also before, between and after runs.
 */
#include <gort/time.h>

#include "os/os.h"

int64_t gort_now(void)
{
    return gort__os_now();
}

int64_t gort_in(int64_t ns)
{
    int64_t now = gort__os_now(), at;
    if (__builtin_add_overflow(now, ns, &at))
        return GORT_FOREVER;
    return at < 0 ? 0 : at;
}

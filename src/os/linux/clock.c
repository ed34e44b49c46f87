/* SPDX-License-Identifier: MIT */
/*
 * clock.c - the time that the runtime lives by.
 *
 * Why: CLOCK_MONOTONIC never jumps, the kernel's timeouts (futex, epoll) count in it, and it is read
 * through the vDSO without a system call. It stands still while the machine is suspended, as Go's does.
 * Threads: any, signal handlers too. errno is never changed.
 */
#include <time.h>

#include "os/os.h"

#define SECOND INT64_C(1000000000)

int64_t gort__os_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

void gort__os_nap(int64_t ns)
{
    if (ns <= 0)
        return;
    struct timespec t = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL); /* returns its error, unlike nanosleep */
}

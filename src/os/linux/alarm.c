/* SPDX-License-Identifier: MIT */
/*
 * alarm.c - a thread that sleeps until a time that others may change while it does.
 *
 * Why: moving the end of a sleep that nobody reaches should not wake the sleeper: that takes 20 us of CPU time, setting a timer 0.3.
 * A timerfd is just that. Without one (no fd left) a futex does it, and an earlier end wakes the sleeper, who sleeps again.
 * Threads: any may set it, one at a time; one sleeps. errno is never changed.
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fatal.h"
#include "os/force.h"
#include "os/os.h"

#define SECOND INT64_C(1000000000)

void gort__os_alarm_open(struct gort__os_alarm *a)
{
    int saved = errno;
    *a = (struct gort__os_alarm){.fd = -1, .when = INT64_MAX};
    if (!gort__os_force.no_timerfd)
        a->fd = gort__os_fd_own(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    errno = saved;
}

void gort__os_alarm_close(struct gort__os_alarm *a)
{
    int saved = errno;
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    errno = saved;
}

void gort__os_alarm_set(struct gort__os_alarm *a, int64_t when)
{
    int saved = errno;
    struct itimerspec spec = {0}; /* never */
    if (a->fd < 0) {
        bool earlier = when < a->when;
        gort__store(&a->when, when, RELAXED);
        if (earlier) {
            gort__add(&a->word, 1, RELEASE); /* pairs with sleep_by_futex */
            gort__os_futex_wake(&a->word, 1);
        }
        return;
    }
    if (when != INT64_MAX) {
        when = when > 1 ? when : 1; /* 0 would be never */
        spec.it_value = (struct timespec){(time_t)(when / SECOND), (long)(when % SECOND)};
    }
    if (timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &spec, NULL) != 0)
        gort__throw("a timerfd cannot be set: errno %d", errno);
    errno = saved;
}

static void sleep_by_futex(struct gort__os_alarm *a)
{
    for (;;) {
        uint32_t seen = gort__load(&a->word, ACQUIRE); /* pairs with gort__os_alarm_set */
        int64_t when = gort__load(&a->when, RELAXED);
        if (when != INT64_MAX && when <= gort__os_now())
            return;
        gort__os_futex_wait(&a->word, seen, when);
    }
}

void gort__os_alarm_sleep(struct gort__os_alarm *a)
{
    uint64_t times;
    int saved = errno;
    if (a->fd < 0) {
        sleep_by_futex(a);
        return;
    }
    while (read(a->fd, &times, sizeof times) < 0)
        if (errno != EINTR)
            gort__throw("a timerfd cannot be read: errno %d", errno);
    errno = saved;
}

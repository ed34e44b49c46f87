/* SPDX-License-Identifier: MIT */
/*
 * alarm.c - a thread that sleeps until a time that others may change while it does.
 *
 * Why: moving the end of a sleep that nobody reaches should not wake the sleeper: that takes 20 us of CPU
 * time, setting a timer 0.3. A timerfd is just that. Without one (no fd left) a futex does it, and an earlier
 * end wakes the sleeper, who sleeps again. A sandbox that is closed during the run may refuse to set the
 * timerfd. Then the futex takes over for good: the setter stores the time and kicks the sleeper, which may
 * wait for a timer that never comes, by an eventfd that stays readable.
 * Threads: any may set it, one at a time; one sleeps. errno is never changed.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/force.h"
#include "os/os.h"

#define SECOND INT64_C(1000000000)

void gort__os_alarm_open(struct gort__os_alarm *a)
{
    int saved = errno;
    *a = (struct gort__os_alarm){.fd = -1, .kick = -1, .when = INT64_MAX};
    if (!gort__os_force.no_timerfd)
        a->fd = gort__os_fd_own(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (a->fd >= 0)
        a->kick = gort__os_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (a->fd >= 0 && a->kick < 0) {
        close(a->fd);
        a->fd = -1;
    }
    a->refused = a->by_futex = a->fd < 0;
    errno = saved;
}

void gort__os_alarm_close(struct gort__os_alarm *a)
{
    int saved = errno;
    if (a->fd >= 0)
        close(a->fd);
    if (a->kick >= 0)
        close(a->kick);
    a->fd = a->kick = -1;
    errno = saved;
}

static bool set_timerfd(const struct gort__os_alarm *a, int64_t when)
{
    struct itimerspec spec = {0}; /* never */
    if (when != INT64_MAX) {
        when = when > 1 ? when : 1; /* 0 would be never */
        spec.it_value = (struct timespec){(time_t)(when / SECOND), (long)(when % SECOND)};
    }
    return timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0;
}

void gort__os_alarm_set(struct gort__os_alarm *a, int64_t when)
{
    int saved = errno;
    uint64_t one = 1;
    if (a->refused) {
        bool earlier = when < a->when;
        gort__store(&a->when, when, RELAXED);
        if (earlier) {
            gort__add(&a->word, 1, RELEASE); /* pairs with sleep_by_futex */
            gort__os_futex_wake(&a->word, 1);
        }
    } else if (!set_timerfd(a, when)) {
        a->refused = true;
        gort__store(&a->when, when, RELAXED);
        gort__fence(SEQ_CST); /* the sleeper sees it when the kick has woken it, whatever the kernel does */
        if (write(a->kick, &one, sizeof one) < 0 && errno != EAGAIN)
            gort__os_needs("write to an eventfd", errno);
    }
    errno = saved;
}

#define LOOK_EVERY INT64_C(1000000) /* ns: at the fd that a futex does not know */

static void sleep_by_futex(struct gort__os_alarm *a, int fd)
{
    for (;;) {
        uint32_t seen = gort__load(&a->word, ACQUIRE); /* pairs with gort__os_alarm_set */
        int64_t when = gort__load(&a->when, RELAXED), now = gort__os_now();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if ((when != INT64_MAX && when <= now) || (fd >= 0 && poll(&p, 1, 0) > 0))
            return;
        if (fd >= 0 && when - now > LOOK_EVERY)
            when = now + LOOK_EVERY;
        gort__os_futex_wait(&a->word, seen, when);
    }
}

/* Until the timerfd has come; it stays so until it is set anew. Or there is a kick: by the futex from now on.
 * May return early: sysmon, which sleeps here, then just looks around. */
static void sleep_by_timerfd(struct gort__os_alarm *a, int fd)
{
    /* The kernel passes over negative fds. */
    struct pollfd p[3] = {
        {.fd = a->fd, .events = POLLIN}, {.fd = a->kick, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int n;
    do {
        n = ppoll(p, 3, NULL, NULL);
        if (n < 0 && gort__os_refused(errno))
            n = poll(p, 3, -1);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EINVAL) { /* RLIMIT_NOFILE is below 3 for the moment: then no poll works */
        gort__os_nap(1000000);
        return;
    }
    if (n < 0)
        gort__os_needs("poll", errno);
    a->by_futex = p[1].revents != 0;
}

void gort__os_alarm_sleep(struct gort__os_alarm *a, int fd)
{
    int saved = errno;
    if (!a->by_futex)
        sleep_by_timerfd(a, fd);
    if (a->by_futex)
        sleep_by_futex(a, fd);
    errno = saved;
}

/* SPDX-License-Identifier: MIT */
/*
 * beat.c - for a thread that sleeps again and again for some 275 us: the kernel's timers, set ahead.
 *
 * Why: setting the timer of a CPU is an instruction, but on a virtual machine one that the host carries out:
 * 6 to 8 us. A short sleep needs three: the thread sets it for its end; when that has come the kernel sets it
 * for what is next, which is the scheduler's tick of the idle CPU, far away; and it restarts the near tick as
 * the thread goes on. All of them are charged to the thread. If there is a timer already for the time at
 * which a sleep ends, and one for the sleep after it, only the second is left: the first and the third are
 * not earlier than what is set. 18 to 20 us of CPU time for a sleep become 9 to 10, and it ends 6 us sooner.
 * Nobody waits for these timers. They change nothing but when the hardware is set, so all that fails here is
 * left as it is, and at the end of such sleeps one of them comes in vain.
 * Threads: one at a time.
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "os/force.h"
#include "os/os.h"

#define SECOND INT64_C(1000000000)

/* Opened at the first beat, both or none: who has no fd left then keeps those that become free. */
static bool opened;
static struct {
    int fd; /* -1: refused */
    int64_t when;
} ahead[2];

static int open_one(void)
{
    return gort__os_force.no_timerfd
               ? -1
               : gort__os_fd_own(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

static void open_both(void)
{
    opened = true;
    ahead[0].when = ahead[1].when = 0;
    ahead[0].fd = open_one();
    ahead[1].fd = ahead[0].fd < 0 ? -1 : open_one();
    if (ahead[0].fd >= 0 && ahead[1].fd < 0) {
        close(ahead[0].fd);
        ahead[0].fd = -1;
    }
}

static void set(int64_t when)
{
    if (ahead[0].when == when || ahead[1].when == when)
        return;
    int i = ahead[0].when > ahead[1].when;
    struct itimerspec spec = {.it_value = {(time_t)(when / SECOND), (long)(when % SECOND)}};
    if (timerfd_settime(ahead[i].fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0)
        ahead[i].when = when;
}

void gort__os_beat(int64_t when, int64_t then)
{
    int saved = errno;
    if (!opened)
        open_both();
    if (ahead[0].fd >= 0) {
        set(when);
        set(then);
    }
    errno = saved;
}

void gort__os_beat_end(void)
{
    int saved = errno;
    for (int i = 0; i < 2; i++)
        if (opened && ahead[i].fd >= 0)
            close(ahead[i].fd);
    opened = false;
    errno = saved;
}

/* SPDX-License-Identifier: MIT */
/*
 * poll.c - looking for ready fds, and sleeping while there are none.
 *
 * Why: one poller a run, which watches both directions of an fd from its first futile read or write on,
 * edge-triggered: no system call to wait again. The event data carry number and generation of the fd, so that
 * an event that was under way while the fd was closed and its number reused wakes nobody.
 * Writing to a pipe that nobody reads raises SIGPIPE, which ends the process by default. While a run is on, a
 * handler that does nothing takes its place, unless the program has its own wish; handlers, unlike SIG_IGN,
 * do not survive exec, so children get the default again.
 * Threads: any; open and close by the supervisor, while no other thread is inside.
 */
#include "poll/poll.h"

#include <signal.h>

#include "os/os.h"
#include "poll/table.h"

#define BATCH 64

bool (*gort__poll_claim)(struct gort__poll_waiter *w);
void (*gort__poll_at_close)(void);

int gort__poll_fd = -1;
uint32_t gort__poll_epoch;
uint32_t gort__poll_waits;

static bool has_sigpipe; /* the handler is ours; written by open and close only */

static void on_pipe(int signo)
{
    (void)signo;
}

int gort__poll_open(void)
{
    int fd = gort__os_poll_open();
    if (fd < 0)
        return fd;
    gort__poll_fd = fd;
    gort__poll_epoch++;
    if (!gort__poll_epoch)
        gort__poll_epoch = 1;
    has_sigpipe = gort__os_signal_take(SIGPIPE, on_pipe);
    return 0;
}

void gort__poll_close(void)
{
    if (gort__poll_fd < 0)
        return;
    if (gort__poll_at_close)
        gort__poll_at_close();
    if (has_sigpipe)
        gort__os_signal_give_back(SIGPIPE, on_pipe);
    gort__table_reset();
    gort__store(&gort__poll_waits, 0, RELAXED);
    gort__os_beat_end();
    gort__os_poll_close(gort__poll_fd);
    gort__poll_fd = -1;
}

uint32_t gort__poll_pending(void)
{
    return gort__load(&gort__poll_waits, ACQUIRE); /* pairs with gort__poll_done */
}

struct gort__poll_waiter *gort__poll_look(int64_t deadline)
{
    struct gort__os_event events[BATCH];
    struct gort__poll_waiter *woken = NULL, **tail = &woken;
    int n = gort__os_poll_wait(gort__poll_fd, events, BATCH, deadline);
    for (int i = 0; i < n; i++) {
        struct gort__fd *f = gort__table_find((uint32_t)events[i].tag);
        if (f)
            gort__fd_event(f, (uint32_t)(events[i].tag >> 32), events[i].what, &tail);
    }
    return woken;
}

int gort__poll_handle(void)
{
    return gort__poll_fd;
}

void gort__poll_kick(void)
{
    gort__os_poll_kick(gort__poll_fd);
}

/* SPDX-License-Identifier: MIT */
/*
 * poll.c - looking for ready fds, and sleeping while there are none.
 *
 * Threads: any; open and close by the keeper, while no other thread is inside.
 */
#include "poll/poll.h"

#include "os/os.h"

bool (*gort__poll_claim)(struct gort__poll_waiter *w);

static int poller = -1;  /* written by open and close only */
static uint32_t pending; /* atomic */

int gort__poll_open(void)
{
    int fd = gort__os_poll_open();
    if (fd < 0)
        return fd;
    poller = fd;
    return 0;
}

void gort__poll_close(void)
{
    if (poller >= 0)
        gort__os_poll_close(poller);
    poller = -1;
}

uint32_t gort__poll_pending(void)
{
    return gort__load(&pending, RELAXED);
}

struct gort__poll_waiter *gort__poll_look(int64_t deadline)
{
    struct gort__os_event events[64];
    int n = gort__os_poll_wait(poller, events, 64, deadline);
    (void)n; /* no fd is known yet */
    return NULL;
}

void gort__poll_kick(void)
{
    gort__os_poll_kick(poller);
}

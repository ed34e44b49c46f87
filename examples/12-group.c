/* SPDX-License-Identifier: MIT */
/*
 * 12-group.c - goroutines that fail together.      cc 12-group.c -o 12-group -lgort
 *
 * The first member of a group that returns an error cancels the context of the others, and gort_group_wait
 * returns that error once all have ended. With a limit, gort_group_go waits for a place; when the
 * group is cancelled it starts nobody and says so.
 */
#include <errno.h>
#include <gort.h>
#include <stdatomic.h>
#include <stdio.h>

enum { FILES = 20, AT_ONCE = 4, BROKEN = 3 };

static gort_chan *answers; /* none ever comes */
static atomic_int running, most;

static int fetch(void *number)
{
    int now = ++running, before = most;
    while (before < now && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    int err = -EIO;
    if ((intptr_t)number != BROKEN)
        err = gort_chan_recv(answers, NULL);
    else
        while (running < AT_ONCE) /* it fails when all places are taken */
            gort_yield();
    running--;
    return err;
}

static int start(void *arg)
{
    gort_group group;
    int err = 0;
    (void)arg;
    answers = gort_chan_new(0, 0);
    if (!answers || gort_group_init(&group, NULL) < 0)
        return 1;
    gort_group_limit(&group, AT_ONCE);
    for (intptr_t i = 0; i < FILES && err == 0; i++)
        err = gort_group_go(&group, fetch, (void *)i); /* -ECANCELED once one has failed */
    err = gort_group_wait(&group);
    printf("the first error: %s; %d were running at the same time\n", gort_strerror(err), most);
    gort_chan_unref(answers);
    return err == -EIO && most == AT_ONCE ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * whole_chan.c - a program with small elements, seen together with the library, as -flto does.
 * Covers: src/sync/chan.c
 */
#include "../../src/sync/chan.c"

#include <gort.h>

static gort_chan *ch;

static void take(void *unused)
{
    char three[3];
    (void)unused;
    while (gort_chan_recv(ch, three) == 1)
        ;
}

int main(void)
{
    ch = gort_chan_new(3, 2);
    return gort_go(take, NULL) + gort_chan_send(ch, "ab");
}

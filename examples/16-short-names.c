/* SPDX-License-Identifier: MIT */
/*
 * 16-short-names.c - less to type.      cc 16-short-names.c -o 16-short-names -lgort
 *
 * gort/short.h gives channels, wait groups, mutexes and GORT_GO names without a prefix. gort.h does not
 * include it: a program chooses it for its own files, a library had better not have it in its headers.
 */
#include <gort/short.h>
#include <stdio.h>

static void player(chan *in, chan *out, gort_wg *wg)
{
    for (int ball; chan_recv(in, &ball) == 1;) {
        ball++;
        if (chan_send(out, &ball) < 0)
            break;
    }
    wg_done(wg);
}

static int start(void *arg)
{
    gort_wg wg = {0};
    int ball = 0;
    chan *ping = chan_new(sizeof ball, 0), *pong = chan_new(sizeof ball, 0);
    (void)arg;
    wg_add(&wg, 1);
    if (!ping || !pong || go(player, ping, pong, &wg) < 0)
        return 1;
    for (int i = 0; i < 1000; i++) {
        chan_send(ping, &ball);
        chan_recv(pong, &ball);
        ball++;
    }
    chan_close(ping);
    wg_wait(&wg);
    printf("the ball was hit %d times\n", ball);
    chan_unref(ping);
    chan_unref(pong);
    return ball == 2000 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * 07-channels.c - hand values from one goroutine to another.      cc 07-channels.c -o 07-channels -lgort
 *
 * A channel carries values of one size, here with room for four that nobody has taken yet. A send waits
 * while there is no room, a receive while there is nothing. Closing says that no more will come: the
 * receiver gets what is left, and then 0. A closed channel refuses to send: -EPIPE, and nobody dies.
 */
#include <gort.h>
#include <stdio.h>

static void produce(gort_chan *squares)
{
    for (int i = 1; i <= 10; i++) {
        int square = i * i;
        if (gort_chan_send(squares, &square) < 0)
            return;
    }
    gort_chan_close(squares);
}

static int start(void *arg)
{
    int square, sum = 0;
    gort_chan *squares = gort_chan_new(sizeof square, 4);
    (void)arg;
    if (!squares || GORT_GO(produce, squares) < 0)
        return 1;
    while (gort_chan_recv(squares, &square) == 1) {
        printf("%d ", square);
        sum += square;
    }
    printf("make %d\n", sum);

    int err = gort_chan_send(squares, &sum);
    printf("one more: %s\n", gort_strerror(err));
    gort_chan_unref(squares); /* the producer's last touch was the close that ended the loop */
    return sum == 385 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

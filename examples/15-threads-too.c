/* SPDX-License-Identifier: MIT */
/*
 * 15-threads-too.c - plain threads take part.      cc 15-threads-too.c -o 15-threads-too -lgort -pthread
 *
 * A thread that gort did not make, as libraries and old code have them, uses the same calls: it sleeps where
 * a goroutine parks. Here a thread sends numbers, goroutines square them, and the main goroutine adds them up.
 */
#include <gort.h>
#include <pthread.h>
#include <stdio.h>

enum { NUMBERS = 1000, WORKERS = 3 };

static gort_chan *numbers, *squares;
static pthread_t thread;

static void *send_numbers(void *unused)
{
    for (long n = 1; n <= NUMBERS; n++)
        if (gort_chan_send(numbers, &n) < 0) /* -ECANCELED: the run is over */
            break;
    gort_chan_close(numbers);
    return unused;
}

static void square(gort_wg *wg)
{
    for (long n; gort_chan_recv(numbers, &n) == 1;) {
        n *= n;
        gort_chan_send(squares, &n);
    }
    gort_wg_done(wg);
}

static int start(void *sum)
{
    gort_wg workers = {0};
    gort_wg_add(&workers, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        if (GORT_GO(square, &workers) < 0)
            return 1;
    if (pthread_create(&thread, NULL, send_numbers, NULL))
        return 1;
    for (long n, i = 0; i < NUMBERS && gort_chan_recv(squares, &n) == 1; i++)
        *(long *)sum += n;
    return gort_wg_wait(&workers);
}

int main(void)
{
    long sum = 0;
    numbers = gort_chan_new(sizeof(long), 0);
    squares = gort_chan_new(sizeof(long), 0);
    if (!numbers || !squares || gort_run(start, &sum) != 0 || pthread_join(thread, NULL))
        return 1;
    printf("the squares up to %d: %ld\n", NUMBERS, sum);
    gort_chan_unref(numbers);
    gort_chan_unref(squares);
    return sum == 333833500 ? 0 : 1;
}

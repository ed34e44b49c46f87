/* SPDX-License-Identifier: MIT */
/*
 * 14-prime-sieve.c - a chain of goroutines that grows.      cc 14-prime-sieve.c -o 14-prime-sieve -lgort
 *
 * Each prime gets a goroutine that lets only those numbers pass that it does not divide; the next number at
 * the end is the next prime. Enough? The last channel is closed; the sender before it gets -EPIPE and closes
 * its own, and so the chain ends link by link. Both ends of a channel hold a reference: the later one frees it.
 */
#include <gort.h>
#include <stdio.h>

enum { PRIMES = 20 };

static void generate(gort_chan *out, gort_wg *wg)
{
    for (int n = 2; gort_chan_send(out, &n) == 0; n++)
        ;
    gort_chan_unref(out);
    gort_wg_done(wg);
}

static void filter(gort_chan *in, gort_chan *out, int prime, gort_wg *wg)
{
    for (int n; gort_chan_recv(in, &n) == 1;)
        if (n % prime != 0 && gort_chan_send(out, &n) < 0)
            break;
    gort_chan_close(in);
    gort_chan_unref(in);
    gort_chan_unref(out);
    gort_wg_done(wg);
}

static int start(void *arg)
{
    gort_wg wg = {0};
    gort_chan *in = gort_chan_new(sizeof(int), 0), *out;
    int prime = 0;
    (void)arg;
    gort_wg_add(&wg, PRIMES + 1);
    if (!in || GORT_GO(generate, gort_chan_ref(in), &wg) < 0)
        return 1;
    for (int i = 0; i < PRIMES; i++, in = out) {
        gort_chan_recv(in, &prime);
        printf("%d ", prime);
        out = gort_chan_new(sizeof(int), 0);
        if (!out || GORT_GO(filter, in, gort_chan_ref(out), prime, &wg) < 0)
            return 1;
    }
    gort_chan_close(in);
    gort_chan_unref(in);
    gort_wg_wait(&wg);
    printf("\n");
    return prime == 71 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * sieve.c - the prime sieve: a chain of filters, one goroutine a prime, joined by unbuffered
 * channels; one operation is one of the first 1500 primes.
 *
 * Why: the best known concurrent program in Go. A million and more hand-offs through a long chain;
 * at 2 procs the question is whether stealing helps or the hand-offs between the Ps eat it up.
 *
 * The numbers end at the last prime, so that the chain closes down: each filter closes what it
 * writes and releases what it reads.
 */
#include "bench.h"

enum { PRIMES = 1500, LAST = 12553 };

static void generate(void *arg)
{
    gort_chan *out = arg;
    for (int64_t v = 2; v <= LAST; v++)
        must(gort_chan_send(out, &v));
    must(gort_chan_close(out));
}

static void filter(gort_chan *in, gort_chan *out, int64_t prime)
{
    int64_t v;
    while (must(gort_chan_recv(in, &v)) == 1) {
        if (v % prime != 0)
            must(gort_chan_send(out, &v));
    }
    must(gort_chan_close(out));
    gort_chan_unref(in);
}

static int sieve(void)
{
    int found = 0;
    int64_t prime;
    gort_chan *in = must_have(gort_chan_new(sizeof(int64_t), 0));
    must(gort_go(generate, in));
    while (must(gort_chan_recv(in, &prime)) == 1) {
        found++;
        gort_chan *out = must_have(gort_chan_new(sizeof(int64_t), 0));
        must(GORT_GO(filter, in, out, prime));
        in = out;
    }
    gort_chan_unref(in);
    return found;
}

static double work(long n)
{
    for (long done = 0; done < n; done += PRIMES) {
        if (sieve() != PRIMES)
            bench_die("wrong number of primes", 0);
    }
    return 0;
}

BENCH_MAIN("sieve", PRIMES, work)

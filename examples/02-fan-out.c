/* SPDX-License-Identifier: MIT */
/*
 * 02-fan-out.c - split work over all cores, wait for all parts.      cc 02-fan-out.c -o 02-fan-out -lgort
 *
 * Each goroutine counts the primes of its own range and writes to its own place: nothing is shared,
 * nothing needs a lock. There are more parts than cores; the scheduler keeps all cores busy.
 */
#include <gort.h>
#include <stdio.h>

enum { PARTS = 64, LIMIT = 1 << 20 };

struct part {
    unsigned from, to, primes;
};

static int is_prime(unsigned n)
{
    for (unsigned d = 2; d * d <= n; d++)
        if (n % d == 0)
            return 0;
    return n > 1;
}

static void count(void *arg)
{
    struct part *part = arg;
    for (unsigned n = part->from; n < part->to; n++)
        part->primes += (unsigned)is_prime(n);
}

static int start(void *arg)
{
    struct part parts[PARTS] = {0};
    gort_wg wg = {0};
    (void)arg;
    for (unsigned i = 0; i < PARTS; i++) {
        parts[i].from = i * (LIMIT / PARTS);
        parts[i].to = (i + 1) * (LIMIT / PARTS);
        if (gort_wg_go(&wg, count, &parts[i]) < 0)
            return 1;
    }
    gort_wg_wait(&wg);

    unsigned primes = 0;
    for (int i = 0; i < PARTS; i++)
        primes += parts[i].primes;
    printf("%u primes below %d\n", primes, LIMIT);
    return primes == 82025 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

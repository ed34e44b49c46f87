/* SPDX-License-Identifier: MIT */
/*
 * 03-copy-arguments.c - hand arguments to a goroutine by value.      cc 03-copy-arguments.c -o 03-copy-arguments -lgort
 *
 * A pointer to a loop variable would be read when the goroutine runs: too late. gort_go_copy hands
 * over a copy of a struct that lives until the function returns. GORT_GO hands over up to six
 * pointers or integers in registers, and the compiler checks them against the function's prototype.
 */
#include <gort.h>
#include <stdio.h>

struct order {
    int number;
    double price;
    gort_wg *wg;
};

static double paid[4];
static long area[4];

static void pay(void *arg)
{
    struct order *order = arg;
    paid[order->number] = order->price;
    gort_wg_done(order->wg);
}

static void multiply(long a, long b, long *out, gort_wg *wg)
{
    *out = a * b;
    gort_wg_done(wg);
}

static int start(void *arg)
{
    gort_wg wg = {0};
    (void)arg;
    gort_wg_add(&wg, 8);
    for (int i = 0; i < 4; i++) {
        struct order order = {i, 1.5 * i, &wg};
        if (gort_go_copy(pay, &order, sizeof order) < 0)
            return 1;
        if (GORT_GO(multiply, i, i + 1, &area[i], &wg) < 0)
            return 1;
    }
    gort_wg_wait(&wg);
    for (int i = 0; i < 4; i++)
        printf("order %d: %.2f paid, area %ld\n", i, paid[i], area[i]);
    return paid[3] == 4.5 && area[3] == 12 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

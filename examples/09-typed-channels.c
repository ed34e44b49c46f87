/* SPDX-License-Identifier: MIT */
/*
 * 09-typed-channels.c - channels that know their type.      cc 09-typed-channels.c -o 09-typed-channels -lgort
 *
 * gort_chan_send takes the address of anything. GORT_CHAN_DEFINE makes a type of channels whose functions
 * take the address of one type only, and the compiler refuses the rest; they cost nothing beyond the plain calls.
 */
#include <gort.h>
#include <stdio.h>

struct point {
    int x, y;
};

GORT_CHAN_DEFINE(points, struct point);

static void walk(points *out, int steps)
{
    for (int i = 0; i < steps; i++) {
        struct point at = {i, i * i};
        /* points_send(out, &i) would not compile. */
        if (points_send(out, &at) < 0)
            break;
    }
    points_close(out);
}

static int start(void *arg)
{
    struct point at, box = {0, 0};
    points *ch = points_new(2);
    (void)arg;
    if (!ch || GORT_GO(walk, ch, 8) < 0)
        return 1;
    while (points_recv(ch, &at) == 1) {
        box.x = at.x > box.x ? at.x : box.x;
        box.y = at.y > box.y ? at.y : box.y;
    }
    printf("the walk needs a box of %d x %d\n", box.x, box.y);
    points_unref(ch);
    return box.x == 7 && box.y == 49 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * 08-select.c - wait for several channels, but not for ever.      cc 08-select.c -o 08-select -lgort
 *
 * GORT_SELECT runs the body of the one case that happened; GORT_SELECTED is what its call returned. A closed
 * channel is always ready, so it is set to NULL when it is drained: that disables its case. With both
 * disabled only the deadline is left. `break` leaves the select, as in a switch.
 */
#include <gort.h>
#include <stdio.h>

static void count(gort_chan *out, int from, int to)
{
    for (int i = from; i < to; i++)
        gort_chan_send(out, &i);
    gort_chan_close(out);
}

static int start(void *arg)
{
    gort_chan *low = gort_chan_new(sizeof(int), 0), *high = gort_chan_new(sizeof(int), 0);
    gort_chan *a = low, *b = high;
    int value, err = 0, lows = 0, highs = 0;
    (void)arg;
    if (!low || !high || GORT_GO(count, low, 0, 10) < 0 || GORT_GO(count, high, 100, 120) < 0)
        return 1;
    while (err == 0) {
        GORT_SELECT(a || b ? GORT_FOREVER : gort_in(10 * GORT_MS))
        {
            GORT_ON_RECV(a, &value)
            {
                if (GORT_SELECTED == 0)
                    a = NULL;
                else
                    lows++;
            }
            GORT_ON_RECV(b, &value)
            {
                if (GORT_SELECTED == 0)
                    b = NULL;
                else
                    highs++;
            }
            GORT_ON_ERROR
            {
                err = GORT_SELECTED;
            }
        }
    }
    printf("%d low and %d high numbers, then: %s\n", lows, highs, gort_strerror(err));
    gort_chan_unref(low);
    gort_chan_unref(high);
    return lows == 10 && highs == 20 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}

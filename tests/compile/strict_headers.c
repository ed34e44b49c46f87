/* SPDX-License-Identifier: MIT */
/*
 * strict_headers.c - every macro and inline function of the headers, for programs that ask for many warnings.
 * Covers: include/gort.h include/gort/
 */
#include <gort.h>
#include <gort/short.h>

struct point {
    int x, y;
};
GORT_CHAN_DEFINE(points, struct point);

static void work(struct point *p, long n, unsigned long m, bool last)
{
    (void)p, (void)n, (void)m, (void)last;
}

int use_all(struct point *p);
int use_all(struct point *p)
{
    points *ch = points_new(2), *other = points_ref(ch);
    gort_case cases[2];
    cases[0] = points_case_recv(ch, p);
    cases[1] = points_case_send(other, p);
    int n = GORT_GO(work, p, 3L, 4ul, true) + go(work, p, 3L, 4ul, false);
    n += points_send(ch, p) + points_try_send(ch, p) + points_send_until(ch, p, gort_in(2 * GORT_SEC));
    n += points_recv(ch, p) + points_try_recv(ch, p) + points_recv_until(ch, p, GORT_FOREVER);
    n += gort_select(cases, 2, GORT_TRY);
    GORT_SELECT(gort_in(GORT_MS + GORT_US))
    {
        GORT_ON_RECV(points_chan(ch), p)
        {
            n++;
        }
        GORT_ON_CASE(points_case_send(ch, p))
        {
            n += GORT_SELECTED;
        }
        GORT_ON_ERROR
        {
            n = errno;
        }
    }
    n += points_len(ch) < points_cap(ch);
    n += points_close(ch);
    points_unref(other);
    return n;
}

/* SPDX-License-Identifier: MIT */
/* good_enum.c - an enum is an integer, also for GORT_GO. */
#include <gort.h>

enum colour { RED, GREEN };
static void paint(enum colour c, int n)
{
    (void)c, (void)n;
}

int start(void);
int start(void)
{
    return GORT_GO(paint, GREEN, 3);
}

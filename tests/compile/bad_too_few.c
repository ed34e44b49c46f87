/* SPDX-License-Identifier: MIT */
/* bad_too_few.c - too few arguments. */
#include <gort.h>

static void f(int a, int b)
{
    (void)a, (void)b;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, 1, 2);
#else
    return GORT_GO(f, 1);
#endif
}

/* SPDX-License-Identifier: MIT */
/* bad_too_many.c - too many arguments. */
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
    return GORT_GO(f, 1, 2, 3);
#endif
}

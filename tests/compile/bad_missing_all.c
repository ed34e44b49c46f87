/* SPDX-License-Identifier: MIT */
/* bad_missing_all.c - no argument for a function with one. */
#include <gort.h>

static void f(int a)
{
    (void)a;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, 1);
#else
    return GORT_GO(f);
#endif
}

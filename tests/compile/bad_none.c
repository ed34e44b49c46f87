/* SPDX-License-Identifier: MIT */
/* bad_none.c - an argument for a function without any. */
#include <gort.h>

static void f(void) {}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f);
#else
    return GORT_GO(f, 1);
#endif
}

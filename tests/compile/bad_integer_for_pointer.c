/* SPDX-License-Identifier: MIT */
/* bad_integer_for_pointer.c - an integer where a pointer is wanted. */
#include <gort.h>

static void f(int *a)
{
    (void)a;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, (int *)0);
#else
    return GORT_GO(f, 7);
#endif
}

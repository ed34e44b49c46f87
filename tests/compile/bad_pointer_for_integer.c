/* SPDX-License-Identifier: MIT */
/* bad_pointer_for_integer.c - a pointer where an integer is wanted. */
#include <gort.h>

static void f(long a)
{
    (void)a;
}
static int n;

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, (long)(intptr_t)&n);
#else
    return GORT_GO(f, &n);
#endif
}

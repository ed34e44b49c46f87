/* SPDX-License-Identifier: MIT */
/* bad_pointer.c - a pointer to the wrong type. */
#include <gort.h>

static void f(int *a)
{
    (void)a;
}
static int n;
static long m;

int start(void);
int start(void)
{
#ifdef GOOD
    return (m = 0, GORT_GO(f, &n));
#else
    return (n = 0, GORT_GO(f, &m));
#endif
}

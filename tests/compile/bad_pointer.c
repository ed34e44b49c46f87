/* SPDX-License-Identifier: MIT */
/*
 * bad_pointer.c - a pointer to the wrong type.
 * Covers: include/gort/typed.h
 *
 * gcc: passing argument 1 of .GORT_GO_function. from incompatible pointer type
 * clang: passing 'GORT_GO_argument_1' (aka 'long \*') to parameter of type 'int \*'
 * c++: GORT_GO: an argument does not convert
 */
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

/* SPDX-License-Identifier: MIT */
/*
 * bad_pointer_for_integer.c - a pointer where an integer is wanted.
 * Covers: include/gort/typed.h
 *
 * gcc: passing argument 1 of .GORT_GO_function. makes integer from pointer
 * clang: passing 'GORT_GO_argument_1' (aka 'int \*') to parameter of type 'long'
 * c++: GORT_GO: an argument does not convert
 */
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

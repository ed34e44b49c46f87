/* SPDX-License-Identifier: MIT */
/*
 * bad_too_few.c - too few arguments.
 * Covers: include/gort/typed.h
 *
 * gcc: too few arguments to function .GORT_GO_function.
 * clang: too few arguments to function call, expected 2, have 1
 * c++: GORT_GO: the number of arguments
 */
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

/* SPDX-License-Identifier: MIT */
/*
 * bad_too_many.c - too many arguments.
 * Covers: include/gort/typed.h
 *
 * gcc: too many arguments to function .GORT_GO_function.
 * clang: too many arguments to function call, expected 2, have 3
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
    return GORT_GO(f, 1, 2, 3);
#endif
}

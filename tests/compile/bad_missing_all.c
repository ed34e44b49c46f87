/* SPDX-License-Identifier: MIT */
/*
 * bad_missing_all.c - no argument for a function with one.
 * Covers: include/gort/typed.h
 *
 * gcc: too few arguments to function .GORT_GO_function.
 * clang: too few arguments to function call
 * c++: GORT_GO: the number of arguments
 */
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

/* SPDX-License-Identifier: MIT */
/*
 * bad_none.c - an argument for a function without any.
 * Covers: include/gort/typed.h
 *
 * gcc: too many arguments to function .GORT_GO_function.
 * clang: too many arguments to function call, expected 0, have 1
 * c++: GORT_GO: the number of arguments
 */
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

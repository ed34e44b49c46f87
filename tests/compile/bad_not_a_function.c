/* SPDX-License-Identifier: MIT */
/*
 * bad_not_a_function.c - something that is not a function.
 * Covers: include/gort/typed.h
 *
 * gcc: called object .GORT_GO_function. is not a function
 * clang: called object type 'GORT_GO_first_argument' (aka 'int') is not a function
 * c++: GORT_GO: the first argument is not a function
 */
#include <gort.h>

static void f(int a)
{
    (void)a;
}
static int n;

int start(void);
int start(void)
{
#ifdef GOOD
    return (n = 0, GORT_GO(f, 1));
#else
    return (f(0), GORT_GO(n, 1));
#endif
}

/* SPDX-License-Identifier: MIT */
/*
 * bad_many.c - far more than six arguments.
 * Covers: include/gort/typed.h
 *
 * gcc: GORT_GO takes up to six arguments
 * clang: GORT_GO takes up to six arguments
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
    return GORT_GO(f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
#endif
}

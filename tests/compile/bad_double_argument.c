/* SPDX-License-Identifier: MIT */
/*
 * bad_double_argument.c - a floating-point argument would be cut off.
 * Covers: include/gort/typed.h
 *
 * gcc: takes pointers and integers; pass floating-point values by address
 * clang: takes pointers and integers; pass floating-point values by address
 * c++: takes pointers and integers; pass floating-point values by address
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
    return GORT_GO(f, 1.5);
#endif
}

/* SPDX-License-Identifier: MIT */
/*
 * bad_float_variable.c - a floating-point argument would be cut off.
 * Covers: include/gort/typed.h
 *
 * gcc: takes pointers and integers; pass floating-point values by address
 * clang: takes pointers and integers; pass floating-point values by address
 * c++: takes pointers and integers; pass floating-point values by address
 */
#include <gort.h>

static void f(long a)
{
    (void)a;
}
static float x;

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, (long)x);
#else
    return GORT_GO(f, x);
#endif
}
